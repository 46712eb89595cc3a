#pragma once
/* suite_input - a suite file, checked, with the plan of each of its variants. */
#include "cli/command/job_input.h"
#include "spec/suite.h"

struct suite_input {
	struct arena *a;
	const char *path, *base_dir;
	struct doc *doc; /* of the suite file */
	struct suite suite;
	int nodes; /* most nodes of a variant */
	bool here; /* all nodes are on the master's machine */
};

/* Called for each variant with its job; 0, or the exit code that ends the walk. */
typedef int (*suite_variant_fn)(void *ctx, int variant, struct job_input *in);

/* Reads the suite file.  0, or the exit code after every problem was printed on stderr. */
int suite_input_read(const char *path, struct suite_input *ret);
/* Reads and plans the job of each variant, in order, and calls fn, which may be NULL. */
int suite_input_each(struct suite_input *in, const struct cli_call *c, suite_variant_fn fn,
		     void *ctx);
void suite_input_release(struct suite_input *in);
