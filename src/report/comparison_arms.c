/* Which runs a word of the command line means. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "report/comparison_internal.h"
#include "store/store.h"

static int add_run(struct compare_arm *arm, const struct run_row *row, struct arena *a,
		   struct err *err)
{
	for (size_t i = 0; i < arm->runs.n; i++)
		if (arm->runs.v[i].no == row->no)
			return 0;
	if (arm->runs.n == COMPARISON_MAX_RUNS)
		return err_set(err, ERR_INVALID,
			       "'%s' means more than %d runs: take fewer with @lastN", arm->label,
			       COMPARISON_MAX_RUNS);
	*vec_push(&arm->runs) =
		(struct compare_run){.no = row->no,
				     .id = arena_strdup(a, row->id),
				     .succeeded = row->verdict == VERDICT_SUCCEEDED};
	return 0;
}

struct by_name {
	struct compare_arm *arm;
	struct str name;
	int64_t last; /* 0 = all */
	int64_t found;
	struct arena *a;
	struct err *err;
	bool failed;
};

/* Newest first. */
static bool take_named(void *ctx, const struct run_row *row)
{
	struct by_name *bn = ctx;

	if (!row->ended_ms || !str_is(bn->name, row->name))
		return true;
	if (row->verdict != VERDICT_SUCCEEDED) {
		bn->arm->left_out++;
		return true;
	}
	bn->failed = add_run(bn->arm, row, bn->a, bn->err) < 0;
	return !bn->failed && ++bn->found != bn->last;
}

/* "name@last5" -> name, 5; without '@' last is 0. */
static int split_last(struct str word, struct str *ret_name, int64_t *ret_last, struct err *err)
{
	const char *at = memrchr(word.p, '@', word.n);
	struct str tail;

	*ret_name = word;
	*ret_last = 0;
	if (!at)
		return 0;
	*ret_name = (struct str){word.p, (size_t)(at - word.p)};
	tail = (struct str){at + 1, word.n - ret_name->n - 1};
	if (str_starts(tail, STR("last")) &&
	    str_to_i64((struct str){tail.p + 4, tail.n - 4}, ret_last) && *ret_last > 0)
		return 0;
	return err_set(err, ERR_INVALID, "'%.*s': expected lastN after '@', e.g. name@last5",
		       STR_ARG(word));
}

static int find_one(struct store *st, struct str word, struct arena *a, struct compare_arm *arm,
		    const char ***ret_ids, size_t *ret_nids, struct err *err)
{
	struct run_row row;
	int64_t no, last;
	struct by_name bn = {.arm = arm, .a = a, .err = err};
	struct err why = {0};
	size_t left_out = arm->left_out;

	if (split_last(word, &bn.name, &last, err) < 0)
		return -1;
	bn.last = last;
	/* In this order: a whole id, a name, the beginning of an id. */
	int rc = last ? -1 : store_run_find(st, word, a, &no, ret_ids, ret_nids, &why);
	if (rc == 0) {
		if (store_run_get(st, no, a, &row, err) < 0)
			return -1;
		if (str_is(word, row.id))
			return add_run(arm, &row, a, err);
	} else if (!last && why.kind != ERR_NOT_FOUND && why.kind != ERR_CONFLICT) {
		*err = why;
		return -1;
	}
	if (store_runs_each(st, false, 0, 0, a, take_named, &bn, err) < 0 || bn.failed)
		return -1;
	if (bn.found)
		return 0;
	if (rc == 0)
		return add_run(arm, &row, a, err);
	if (arm->left_out > left_out)
		return err_set(err, ERR_NOT_FOUND, "no run of '%.*s' has succeeded",
			       STR_ARG(bn.name));
	if (!last && why.kind == ERR_CONFLICT) {
		*err = why;
		return -1;
	}
	return err_set(err, ERR_NOT_FOUND, "no run '%.*s', and no run of that name has ended",
		       STR_ARG(bn.name));
}

int compare_find_arm(struct store *st, struct str word, struct arena *a, struct compare_arm *arm,
		     const char ***ret_ids, size_t *ret_nids, struct err *err)
{
	struct str rest = word;

	arm->label = arena_str(a, word).p;
	while (rest.p) {
		struct str one = str_trim(str_cut(&rest, ','));
		if (!one.n)
			return err_set(err, ERR_INVALID, "'%s': a run is missing beside a comma",
				       arm->label);
		if (find_one(st, one, a, arm, ret_ids, ret_nids, err) < 0)
			return -1;
	}
	return 0;
}
