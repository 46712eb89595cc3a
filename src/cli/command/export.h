#pragma once
/* export - what the ways of `regatta export` share: the samples of a run, and who takes them. */
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct arena;
struct doc;
struct err;

struct export_sample {
	struct str node, name;
	int64_t time_ms, step; /* step -1: the job told none */
	double value;
	uint64_t index; /* in its series: of this name of this node */
};

struct export_run {
	struct arena *a;
	const struct doc *run; /* its object */
	const char *id;
	int csv;	  /* descriptor of its metrics.csv */
	const char *dest; /* directory or URL */
	const char *name; /* of the experiment; NULL: that of the job */
	uint64_t samples; /* exported */
	uint64_t there;	  /* that were there already */
};

/* Every sample, a series after the other, each in the order of time.  The function returns -1 to end it. */
int export_each(const struct export_run *x,
		int (*fn)(void *ctx, const struct export_sample *s, struct err *err), void *ctx,
		struct err *err);

int export_csv(struct export_run *x, struct err *err);
int export_tensorboard(struct export_run *x, struct err *err);
int export_mlflow(struct export_run *x, struct err *err);
