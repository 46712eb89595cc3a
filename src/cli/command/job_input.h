#pragma once
/* job_input - the job that a command line means: a file or words after "--", checked and planned. */
#include "plan/plan.h"
#include "spec/job.h"

struct arena;
struct call;
struct doc;

struct jobinput {
	struct arena *a;
	struct job *job;  /* the plan points to it */
	struct doc *doc;  /* what is sent to the master */
	const char *path; /* of the file as it was given; NULL: from the command line */
	struct plan plan; /* as on this machine; the real addresses are chosen by the master */
};

/* 0, or the exit code after every problem was said on stderr. */
int jobinput_read(const struct call *c, struct jobinput *ret);
void jobinput_release(struct jobinput *in);
