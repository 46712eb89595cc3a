#include "cli/command/suite_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"

#define MAX_REPORT (1024 * 1024)

static int read_doc(struct suite_input *in, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *all;

	buf_init(&text, DOC_MAX_BYTES);
	if (!file_exists(in->path))
		return err_set(err, ERR_NOT_FOUND, "suite file '%s' does not exist", in->path);
	if (file_read(in->path, &text, err) < 0) {
		if (err->kind == ERR_CAPACITY)
			err->kind = ERR_INVALID;
		return err_wrap(err, "suite file");
	}
	if (doc_parse_named(in->path, buf_str(&text), in->a, &all, err) < 0)
		return err_set(err, ERR_INVALID, "%.100s:%.120s", in->path, err->msg);
	if (all->array.n > 1)
		return err_set(err, ERR_INVALID,
			       "%.150s: a suite file is one document, this has %zu", in->path,
			       all->array.n);
	in->doc = all->array.v[0];
	return 0;
}

static int find_dir(struct suite_input *in, struct err *err)
{
	const char *slash = strrchr(in->path, '/');
	const char *dir = !slash ? "."
			  : slash == in->path
				  ? "/"
				  : arena_strndup(in->a, in->path, (size_t)(slash - in->path));
	CLEANUP(freep) char *real = realpath(dir, NULL);

	if (!real)
		return err_errno(err, errno, "directory '%s'", dir);
	in->base_dir = arena_strdup(in->a, real);
	return 0;
}

static void print_problems(struct suite_input *in, struct problems *ps)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct err ignored;

	buf_init(&text, MAX_REPORT);
	buf_init(&out, 4 * MAX_REPORT);
	problems_print(ps, in->path, &text);
	struct str rest = buf_str(&text);
	while (rest.p && rest.n) {
		escape_terminal(&out, str_cut(&rest, '\n'));
		buf_addc(&out, '\n');
	}
	(void)file_write_all(STDERR_FILENO, out.p, out.n, &ignored);
}

int suite_input_read(const char *path, struct suite_input *ret)
{
	struct suite_input in = {.a = arena_new(), .path = path, .here = true};
	struct problems *ps = arena_new_of(in.a, struct problems);
	struct err err;

	if (read_doc(&in, &err) < 0 || find_dir(&in, &err) < 0) {
		suite_input_release(&in);
		return cli_fail(&err);
	}
	if (!suite_load(in.doc, plan_job_schema(in.a), in.a, &in.suite, ps)) {
		print_problems(&in, ps);
		suite_input_release(&in);
		return 2;
	}
	*ret = in;
	return 0;
}

/* The values of a variant as words of --set, so that one reader checks them; it blames their places. */
static size_t make_sets(const struct suite_input *in, const struct suite_variant *v,
			struct arena *a, const char **sets, struct set_place *places)
{
	CLEANUP(buf_release) struct buf text = {0};
	size_t n = 0;

	buf_init(&text, DOC_MAX_BYTES);
	for (int k = 0; k < in->suite.nkeys; k++) {
		if (!v->values[k])
			continue;
		buf_reset(&text);
		buf_printf(&text, "%s=", in->suite.keys[k]);
		doc_value_to_toml(v->values[k], &text);
		struct str t = buf_str(&text);
		places[n].text =
			arena_printf(in->a, "%s:%d:%d: variant %s", in->path,
				     v->values[k]->pos.line, v->values[k]->pos.col, v->name);
		sets[n++] = arena_strndup(a, t.p, t.n);
	}
	return n;
}

static bool is_blamed(const struct set_place *places, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].blamed)
			return true;
	return false;
}

/* 0, or the exit code after a message. */
static int refuse_secrets(const struct suite_input *in, const struct suite_variant *v,
			  const struct job *job)
{
	for (int k = 0; k < in->suite.nkeys; k++) {
		const struct doc *value = v->values[k];
		const char *secret =
			value ? suite_secret_word(job, str_from(in->suite.keys[k]), value) : NULL;

		if (!secret)
			continue;
		cli_say("%s:%d:%d: '%s' %s of %s, and values of variants are shown: leave "
			"it in the job file",
			in->path, value->pos.line, value->pos.col, in->suite.keys[k], secret,
			v->job);
		return 2;
	}
	return 0;
}

static int read_variant(struct suite_input *in, const struct cli_call *c, int i,
			struct job_input *ret)
{
	const struct suite_variant *v = &in->suite.variants[i];
	CLEANUP(freep) char *path = path_join(in->base_dir, v->job);
	struct arena *a = arena_new();
	const char **sets = arena_array(a, const char *, SUITE_MAX_KEYS);
	struct set_place *places =
		arena_array(in->a, struct set_place, (size_t)in->suite.nkeys + 1);
	const struct job_options settings = {
		.sets = sets, .nsets = make_sets(in, v, a, sets, places), .places = places};
	int code = job_input_file(c, a, arena_strdup(a, path), &settings, ret);

	/* The job itself is wrong, or a value that it has. */
	if (code != 0 && i > 0 && !is_blamed(places, (size_t)in->suite.nkeys))
		cli_say("%s: variant %s cannot run", in->path, v->name);
	return code;
}

int suite_input_each(struct suite_input *in, const struct cli_call *c, suite_variant_fn fn,
		     void *ctx)
{
	int code = 0;

	in->nodes = 1;
	for (int i = 0; i < in->suite.n && code == 0; i++) {
		struct job_input job;

		code = read_variant(in, c, i, &job);
		if (code != 0)
			return code;
		code = refuse_secrets(in, &in->suite.variants[i], job.job);
		if (job.plan.crew.n > in->nodes)
			in->nodes = job.plan.crew.n;
		in->here = in->here && plan_shares_files(job.job);
		if (code == 0 && fn)
			code = fn(ctx, i, &job);
		job_input_release(&job);
	}
	return code;
}

void suite_input_release(struct suite_input *in)
{
	in->a = arena_free(in->a);
}
