#include "master/source_state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/live_run.h"

#define DIFF_MAX (512u << 10)
#define STATE_MAX (4u << 10)
#define BRANCH_MAX 256

static bool is_commit(struct str s)
{
	if (s.n != 40 && s.n != 64)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (hex_digit(s.p[i]) < 0)
			return false;
	return true;
}

int source_state_check(const struct doc *source, struct err *err)
{
	if (!source || source->type == DOC_NULL)
		return 0;
	if (source->type != DOC_TABLE || !is_commit(doc_str(source, "revision", STR(""))))
		return err_set(err, ERR_INVALID,
			       "'source.revision' must be a commit: 40 or 64 hexadecimal digits");
	if (doc_str(source, "branch", STR("")).n > BRANCH_MAX)
		return err_set(err, ERR_INVALID, "'source.branch' is longer than %d bytes",
			       BRANCH_MAX);
	if (doc_str(source, "diff", STR("")).n > DIFF_MAX / 3 * 4)
		return err_set(err, ERR_INVALID, "'source.diff' is longer than %u bytes", DIFF_MAX);
	return 0;
}

static void put_state(const struct doc *source, struct jsonw *w)
{
	const struct doc *dirty = doc_get(source, "dirty");
	struct str branch = doc_str(source, "branch", STR(""));

	jsonw_kstr(w, "revision", doc_str(source, "revision", STR("")));
	jsonw_key(w, "branch");
	if (branch.n)
		jsonw_str(w, branch);
	else
		jsonw_null(w);
	jsonw_key(w, "dirty");
	if (dirty && dirty->type == DOC_BOOL)
		jsonw_bool(w, dirty->b);
	else
		jsonw_null(w);
}

int source_state_save(struct live_run *lr, const struct doc *source, struct err *err)
{
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SOURCE_STATE);
	CLEANUP(freep) char *diff_path = path_join(lr->dir, LAYOUT_SOURCE_DIFF);
	CLEANUP(buf_release) struct buf text = {0}, diff = {0};
	struct jsonw w;

	if (!source || source->type != DOC_TABLE)
		return 0;
	buf_init(&text, STATE_MAX);
	buf_init(&diff, DIFF_MAX);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	put_state(source, &w);
	jsonw_close(&w);
	lr->source_state = arena_str(lr->arena, buf_str(&text)).p;
	b64_decode(&diff, doc_str(source, "diff", STR("")));
	if (diff.n && file_write_atomic(diff_path, buf_str(&diff), 0600, false, err) < 0)
		return -1;
	return file_write_atomic(path, buf_str(&text), 0600, false, err);
}

static struct doc *read_state(const char *path, struct buf *text, struct arena *a)
{
	struct doc *d;

	buf_init(text, STATE_MAX);
	return file_read(path, text, NULL) == 0 && json_parse(buf_str(text), a, &d, NULL) == 0 &&
			       d->type == DOC_TABLE && source_state_check(d, NULL) == 0
		       ? d
		       : NULL;
}

const char *source_state_short(const char *home, const char *run, struct arena *a)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" LAYOUT_SOURCE_STATE, home, run);
	CLEANUP(buf_release) struct buf text = {0};
	const struct doc *d = read_state(path, &text, a);

	return d ? arena_printf(a, "%.12s%s", doc_str(d, "revision", STR("")).p,
				doc_bool(d, "dirty", false) ? "+" : "")
		 : NULL;
}

void source_state_load(struct live_run *lr)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SOURCE_STATE);
	CLEANUP(buf_release) struct buf text = {0};

	if (read_state(path, &text, a))
		lr->source_state = arena_str(lr->arena, buf_str(&text)).p;
}

void source_state_to_json(const struct live_run *lr, struct jsonw *w)
{
	jsonw_key(w, "source");
	if (lr->source_state)
		jsonw_raw(w, str_from(lr->source_state));
	else
		jsonw_null(w);
}

const char *source_state_text(const struct live_run *lr, struct arena *a)
{
	struct doc *d;

	if (!lr->source_state || json_parse(str_from(lr->source_state), a, &d, NULL) < 0)
		return NULL;
	struct str branch = doc_str(d, "branch", STR("")),
		   revision = doc_str(d, "revision", STR(""));

	return arena_printf(
		a, "%.*s%s%.*s%s", STR_ARG(revision), branch.n ? " on " : "", STR_ARG(branch),
		doc_bool(d, "dirty", false) ? ", with changes that are not committed (source.diff)"
					    : "");
}

void source_state_to_record(const struct live_run *lr, struct jsonw *w)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SOURCE_DIFF);
	CLEANUP(buf_release) struct buf diff = {0}, text = {0};
	struct doc *d;

	if (!lr->source_state || json_parse(str_from(lr->source_state), a, &d, NULL) < 0)
		return;
	buf_init(&diff, DIFF_MAX);
	buf_init(&text, 2 * DIFF_MAX);
	jsonw_key(w, "source");
	jsonw_open(w, '{');
	put_state(d, w);
	if (file_read(path, &diff, NULL) == 0 && diff.n) {
		b64_encode(&text, diff.p, diff.n);
		jsonw_kstr(w, "diff", buf_str(&text));
	}
	jsonw_close(w);
}
