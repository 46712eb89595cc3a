#pragma once
/* job_input - the job that a command line means: a file or words after "--", checked and planned. */
#include "plan/plan.h"
#include "spec/job.h"

struct arena;
struct cli_call;
struct doc;

struct job_input {
	struct arena *a;
	struct job *job;  /* the plan points to it */
	struct doc *doc;  /* what is sent to the master */
	const char *path; /* of the file as it was given; NULL: from the command line */
	struct plan plan; /* as on this machine; the real addresses are chosen by the master */
};

/* 0, or the exit code after every problem was said on stderr. */
int job_input_read(const struct cli_call *c, struct job_input *ret);
void job_input_release(struct job_input *in);
