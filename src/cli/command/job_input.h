#pragma once
/* job_input - the job of a command line, from a file or from the words after "--", checked and planned. */
#include "plan/plan.h"
#include "spec/job.h"

struct arena;
struct cli_call;
struct doc;

struct job_input {
	struct arena *a;
	struct job *job; /* the plan points to it */
	struct doc *doc; /* the document that is sent to the master */
	const char
		*path; /* of the file as it was given; NULL: the job is from the words after "--" */
	struct plan plan; /* as if on this machine; the master chooses the real addresses */
};

/* 0, or the exit code after every problem was printed on stderr. */
int job_input_read(const struct cli_call *c, struct job_input *ret);
void job_input_release(struct job_input *in);
