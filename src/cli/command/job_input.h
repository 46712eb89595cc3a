#pragma once
/* job_input - the job of a command line, from a file or from the words after "--", checked and planned. */
#include "plan/plan.h"
#include "spec/job.h"

struct arena;
struct cli_call;
struct doc;
struct err;
struct input_found;

struct job_input {
	struct arena *a;
	struct job *job;	 /* the plan points to it */
	struct doc *doc;	 /* the document that is sent to the master */
	struct job_options opts; /* with which it was read, without its rules */
	const char
		*path; /* of the file as it was given; NULL: the job is from the words after "--" */
	/* of the engine, given on the command line (--prices); NULL: none */
	struct doc *facts;
	/* of an archive that the master has; NULL: the source is packed */
	const char *source_sha256;
	struct doc *tags; /* list of strings; NULL: none */
	/* of the source of an earlier run, as the master told it; NULL: the repository is asked */
	const struct doc *source_state;
	bool no_diff;	  /* what is not committed is not sent */
	struct plan plan; /* as if on this machine; the master chooses the real addresses */
};

/* 0, or the exit code after every problem was printed on stderr. */
int job_input_read(const struct cli_call *c, struct job_input *ret);
/* The same from a file, with settings (sets, nsets, places) that are not from the command line.  Takes the
 * arena, which has path and sets. */
int job_input_file(const struct cli_call *c, struct arena *a, const char *path,
		   const struct job_options *settings, struct job_input *ret);
/* The same for this engine, whatever the file says; NULL: as file and options say. */
int job_input_read_for(const struct cli_call *c, const char *engine, struct job_input *ret);
/* The same from a tree that `convert` makes native.  Takes the arena, which has the tree. */
int job_input_convert(struct arena *a, struct doc *doc, job_convert_fn *convert,
		      struct job_input *ret);
/* The same from the record of a run and its job, which may have been changed; --set and others change it further. */
int job_input_again(const struct cli_call *c, const struct doc *record, const struct doc *job,
		    struct job_input *ret);
/* Asks what an input consists of that nodes fetch by themselves (driver/input_find.h). */
int job_input_find(const struct job_input *in, const struct data_spec *d, int fd,
		   struct input_found *ret, struct err *err);
/* Prints the job in its native form; the exit code. */
int job_input_print(const struct cli_call *c, const struct job_input *in);
void job_input_release(struct job_input *in);
