#pragma once
/*
 * golden - a text is compared with a file in the tree.  UPDATE_GOLDEN=1, or
 * --update as the test's argument, rewrites the file instead; look at the
 * difference before you commit it.
 */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "spec/job.h"

#define GOLDEN_MAX (4 * 1024 * 1024)

static inline void golden_args(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--update") == 0)
		setenv("UPDATE_GOLDEN", "1", 1);
}

static inline const char *golden_env(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		fail_msg("%s is not set: run this by meson test", name);
	return value;
}

/* "golden/x" below tests/. */
static inline char *golden_path(struct arena *a, const char *name)
{
	return arena_printf(a, "%s/%s", golden_env("REGATTA_TESTS"), name);
}

static inline void golden_check(const char *path, struct str got)
{
	CLEANUP(buf_release) struct buf want;
	const char *update = getenv("UPDATE_GOLDEN");
	struct err err = {0};

	buf_init(&want, GOLDEN_MAX);
	if (update && strcmp(update, "1") == 0) {
		if (file_write_atomic(path, got, 0644, false, &err) < 0)
			fail_msg("%s", err.msg);
		return;
	}
	if (file_read(path, &want, &err) < 0)
		fail_msg("%s (UPDATE_GOLDEN=1 writes it)", err.msg);
	if (!str_eq(buf_str(&want), got))
		fail_msg(
			"%s differs (UPDATE_GOLDEN=1 rewrites it)\n--- expected\n%.*s\n--- got\n%.*s",
			path, STR_ARG(buf_str(&want)), STR_ARG(got));
}

/* A job out of TOML text; the test fails if the text is no TOML. */
static inline bool load_toml_by(struct arena *a, const char *text, const struct job_rules *rules,
				struct job *ret_job, struct problems *ps)
{
	struct err err = {0};
	struct doc *doc;

	if (toml_parse(str_from(text), a, &doc, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
	*ps = (struct problems){0};
	return job_load(doc, rules, a, ret_job, ps);
}

static inline bool load_toml(struct arena *a, const char *text, struct job *ret_job,
			     struct problems *ps)
{
	return load_toml_by(a, text, NULL, ret_job, ps);
}

/* A job that must be good. */
static inline struct job good_job_by(struct arena *a, const char *text,
				     const struct job_rules *rules)
{
	struct problems ps;
	struct job job;

	if (!load_toml_by(a, text, rules, &job, &ps))
		fail_msg("%s\n%s", ps.v[0].text, text);
	return job;
}

static inline struct job good_job(struct arena *a, const char *text)
{
	return good_job_by(a, text, NULL);
}

/* A job that must have exactly this one problem, there. */
static inline void one_problem(const char *text, int line, int col, const char *message)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job job;

	assert_false(load_toml(a, text, &job, &ps));
	if (ps.n != 1 || strcmp(ps.v[0].text, message) != 0)
		fail_msg("%zu problems, first: %s\nwanted: %s", ps.n, ps.v[0].text, message);
	assert_int_equal(ps.v[0].pos.line, line);
	assert_int_equal(ps.v[0].pos.col, col);
}
