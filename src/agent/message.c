#include "agent/message.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define PROTOCOL 1
#define MAX_PORT 65535
#define MAX_SHARDS 1000000

/* ---- reading ---- */

static int missing(struct err *err, const char *key, const char *want)
{
	return err_set(err, ERR_PROTOCOL, "key '%s' must be %s", key, want);
}

static int parse(struct str json, struct arena *a, struct doc **ret, struct err *err)
{
	if (json_parse(json, a, ret, err) < 0) {
		err->kind = ERR_PROTOCOL;
		return err_wrap(err, "not JSON");
	}
	if ((*ret)->type != DOC_TABLE)
		return err_set(err, ERR_PROTOCOL, "not a JSON object");
	return 0;
}

static bool plain(struct str s)
{
	return memchr(s.p, '\0', s.n) == NULL;
}

static bool as_text(const struct doc *d, const char **ret)
{
	if (!d || d->type != DOC_STRING || !plain(d->s))
		return false;
	*ret = d->s.p;
	return true;
}

static int want_text(const struct doc *d, const char *key, const char **ret, struct err *err)
{
	return as_text(doc_get(d, key), ret) ? 0 : missing(err, key, "a text");
}

/* Absent or null gives the fallback; any other type is an error. */
static int maybe_text(const struct doc *d, const char *key, const char *fallback, const char **ret,
		      struct err *err)
{
	const struct doc *v = doc_get(d, key);

	*ret = fallback;
	if (!v || v->type == DOC_NULL)
		return 0;
	return as_text(v, ret) ? 0 : missing(err, key, "a text");
}

static bool in_range(const struct doc *v, int64_t min, int64_t max)
{
	return v && v->type == DOC_INT && v->i >= min && v->i <= max;
}

static int want_int(const struct doc *d, const char *key, int64_t min, int64_t max, int64_t *ret,
		    struct err *err)
{
	const struct doc *v = doc_get(d, key);

	if (!in_range(v, min, max))
		return missing(err, key, "a number in its range");
	*ret = v->i;
	return 0;
}

static int maybe_int(const struct doc *d, const char *key, int64_t max, int64_t *ret,
		     struct err *err)
{
	const struct doc *v = doc_get(d, key);

	*ret = 0;
	if (!v || v->type == DOC_NULL)
		return 0;
	return want_int(d, key, 0, max, ret, err);
}

static int want_offsets(const struct doc *d, const char *key, uint64_t ret[static STREAMS],
			struct err *err)
{
	const struct doc *v = doc_array(d, key);

	if (!v || v->array.n != STREAMS)
		return missing(err, key, "a list of 3 offsets");
	for (size_t i = 0; i < STREAMS; i++) {
		if (!in_range(v->array.v[i], 0, INT64_MAX))
			return missing(err, key, "a list of 3 offsets");
		ret[i] = (uint64_t)v->array.v[i]->i;
	}
	return 0;
}

/* A list of texts, NULL-terminated; absent is empty. */
static int texts(const struct doc *d, const char *key, struct arena *a, const char ***ret,
		 size_t *ret_n, struct err *err)
{
	const struct doc *v = doc_get(d, key);
	size_t n = v && v->type == DOC_ARRAY ? v->array.n : 0;

	if (v && v->type != DOC_ARRAY && v->type != DOC_NULL)
		return missing(err, key, "a list of texts");
	*ret = arena_array(a, const char *, n + 1);
	for (size_t i = 0; i < n; i++)
		if (!as_text(v->array.v[i], &(*ret)[i]))
			return missing(err, key, "a list of texts");
	*ret_n = n;
	return 0;
}

int msg_welcome(struct str json, struct arena *a, struct msg_welcome *ret, struct err *err)
{
	struct doc *d;

	if (parse(json, a, &d, err) < 0 ||
	    want_int(d, "lease_ms", 0, INT64_MAX / 2, &ret->lease_ms, err) < 0 ||
	    want_offsets(d, "acks", ret->acks, err) < 0)
		return -1;
	return want_offsets(d, "scanned", ret->scanned, err);
}

int msg_refuse(struct str json, struct arena *a, struct msg_refuse *ret, struct err *err)
{
	struct doc *d;
	const char *kind;

	if (parse(json, a, &d, err) < 0 || want_text(d, "kind", &kind, err) < 0 ||
	    maybe_text(d, "reason", "", &ret->reason, err) < 0)
		return -1;
	ret->kind = err_kind_from_name(kind);
	return 0;
}

static int read_data(const struct doc *d, struct arena *a, struct msg_inputs *ret, struct err *err)
{
	const struct doc *list = doc_array(d, "data");

	ret->ndata = list ? list->array.n : 0;
	ret->data = arena_array(a, struct msg_data, ret->ndata + 1);
	for (size_t i = 0; i < ret->ndata; i++) {
		const struct doc *e = list->array.v[i];
		struct msg_data *m = &ret->data[i];

		if (want_text(e, "src", &m->src, err) < 0 ||
		    want_text(e, "path", &m->path, err) < 0 ||
		    maybe_int(e, "shard_count", MAX_SHARDS, &m->shard_count, err) < 0 ||
		    maybe_int(e, "shard_index", MAX_SHARDS, &m->shard_index, err) < 0)
			return err_wrap(err, "data[%zu]", i);
		if (m->shard_count == 0)
			m->shard_count = 1;
		if (m->shard_index >= m->shard_count)
			return err_set(err, ERR_PROTOCOL, "data[%zu]: no shard %d of %d", i,
				       (int)m->shard_index, (int)m->shard_count);
	}
	return 0;
}

static int read_metrics(const struct doc *d, struct arena *a, struct msg_inputs *ret,
			struct err *err)
{
	const struct doc *list = doc_array(d, "metrics");

	ret->nmetrics = list ? list->array.n : 0;
	ret->metrics = arena_array(a, struct msg_metric, ret->nmetrics + 1);
	for (size_t i = 0; i < ret->nmetrics; i++) {
		const struct doc *e = list->array.v[i];

		/* Without a name the pattern's own group gives it. */
		if (maybe_text(e, "name", NULL, &ret->metrics[i].name, err) < 0 ||
		    want_text(e, "pattern", &ret->metrics[i].pattern, err) < 0)
			return err_wrap(err, "metrics[%zu]", i);
	}
	return 0;
}

int msg_inputs(struct str json, struct arena *a, struct msg_inputs *ret, struct err *err)
{
	int64_t port, memory;
	struct doc *d;

	*ret = (struct msg_inputs){0};
	if (parse(json, a, &d, err) < 0)
		return -1;
	const struct doc *source = doc_table(d, "source");

	if (source && (want_text(source, "path", &ret->source, err) < 0 ||
		       want_text(source, "sha256", &ret->source_sha256, err) < 0))
		return err_wrap(err, "source");
	if (read_data(d, a, ret, err) < 0 || read_metrics(d, a, ret, err) < 0 ||
	    maybe_text(d, "cwd", "", &ret->cwd, err) < 0 ||
	    want_text(d, "argv0", &ret->argv0, err) < 0 ||
	    maybe_text(d, "path", "", &ret->path, err) < 0 ||
	    maybe_text(d, "address", "", &ret->address, err) < 0 ||
	    maybe_int(d, "port", MAX_PORT, &port, err) < 0 ||
	    maybe_int(d, "memory", INT64_MAX, &memory, err) < 0 ||
	    maybe_text(d, "metric_prefix", NULL, &ret->metric_prefix, err) < 0 ||
	    maybe_int(d, "sample_ms", INT64_MAX / 2, &ret->sample_ms, err) < 0 ||
	    texts(d, "keep", a, &ret->keep, &ret->nkeep, err) < 0 ||
	    maybe_text(d, "output_dir", "", &ret->output_dir, err) < 0)
		return -1;
	ret->port = (int)port;
	ret->memory = (uint64_t)memory;
	return 0;
}

static int read_env(const struct doc *d, struct arena *a, struct msg_start *ret, struct err *err)
{
	const struct doc *table = doc_table(d, "env");

	if (!table)
		return missing(err, "env", "an object of texts");
	ret->nenv = table->table.n;
	ret->env = arena_array(a, const char *, ret->nenv + 1);
	for (size_t i = 0; i < ret->nenv; i++) {
		const struct doc_entry *e = &table->table.v[i];
		const char *value;

		if (!as_text(e->value, &value) || e->key.n == 0 || !plain(e->key) ||
		    memchr(e->key.p, '=', e->key.n))
			return missing(err, "env", "an object of texts with usable names");
		ret->env[i] = arena_printf(a, "%.*s=%s", STR_ARG(e->key), value);
	}
	return 0;
}

int msg_start(struct str json, struct arena *a, struct msg_start *ret, struct err *err)
{
	int64_t attempt, port, memory;
	struct doc *d;
	size_t argc;

	*ret = (struct msg_start){0};
	if (parse(json, a, &d, err) < 0 || want_int(d, "attempt", 1, INT_MAX, &attempt, err) < 0 ||
	    texts(d, "argv", a, &ret->argv, &argc, err) < 0)
		return -1;
	if (argc == 0)
		return missing(err, "argv", "a list with at least the command");
	if (read_env(d, a, ret, err) < 0 || maybe_text(d, "cwd", "", &ret->cwd, err) < 0 ||
	    maybe_text(d, "hostfile", "", &ret->hostfile, err) < 0 ||
	    maybe_text(d, "machinefile", "", &ret->machinefile, err) < 0 ||
	    maybe_text(d, "address", "", &ret->address, err) < 0 ||
	    maybe_int(d, "port", MAX_PORT, &port, err) < 0 ||
	    want_int(d, "grace_ms", 0, INT64_MAX / 2, &ret->grace_ms, err) < 0 ||
	    maybe_int(d, "memory", INT64_MAX, &memory, err) < 0 ||
	    maybe_int(d, "deadline_ms", INT64_MAX / 2, &ret->deadline_ms, err) < 0)
		return -1;
	ret->attempt = (int)attempt;
	ret->port = (int)port;
	ret->memory = (uint64_t)memory;
	return 0;
}

int msg_signal(struct str json, struct arena *a, bool *ret_hurry, struct err *err)
{
	struct doc *d;

	if (parse(json, a, &d, err) < 0)
		return -1;
	const struct doc *v = doc_get(d, "hurry");

	if (v && v->type != DOC_BOOL)
		return missing(err, "hurry", "true or false");
	*ret_hurry = v && v->b;
	return 0;
}

const char *msg_bye(struct str json, struct arena *a)
{
	struct err ignored = {0};
	const char *reason = "";
	struct doc *d;

	if (parse(json, a, &d, &ignored) == 0)
		as_text(doc_get(d, "reason"), &reason);
	return reason;
}

/* ---- writing ---- */

void exit_add_reason(struct exit_report *e, const char *text)
{
	size_t n = strlen(e->reason), room = sizeof(e->reason) - n - 1;

	snprintf(e->reason + n, room + 1, "%s%.*s", n ? "; " : "", (int)room, text);
}

static void put_streams(struct jsonw *w, const uint64_t v[static STREAMS])
{
	jsonw_key(w, "streams");
	jsonw_open(w, '[');
	for (int i = 0; i < STREAMS; i++)
		jsonw_int(w, (int64_t)v[i]);
	jsonw_close(w);
}

static void put_gaps(struct jsonw *w, const struct exit_report *e)
{
	if (e->ngaps == 0)
		return;
	jsonw_key(w, "gaps");
	jsonw_open(w, '[');
	for (size_t i = 0; i < e->ngaps; i++) {
		jsonw_open(w, '{');
		jsonw_kz(w, "stream", stream_name(e->gaps[i].stream));
		jsonw_kint(w, "offset", (int64_t)e->gaps[i].offset);
		jsonw_kint(w, "bytes", (int64_t)e->gaps[i].bytes);
		jsonw_close(w);
	}
	jsonw_close(w);
}

static void put_exit(struct jsonw *w, const struct exit_report *e)
{
	jsonw_open(w, '{');
	jsonw_kint(w, "attempt", e->attempt);
	jsonw_kint(w, "code", e->code);
	jsonw_kint(w, "signal", e->signal);
	jsonw_kbool(w, "oom", e->oom);
	jsonw_kz(w, "kind", err_kind_name(e->kind));
	jsonw_kz(w, "reason", e->reason);
	put_streams(w, e->streams);
	put_gaps(w, e);
	jsonw_close(w);
}

void msg_put_exit(struct buf *out, const struct exit_report *e)
{
	struct jsonw w;

	jsonw_init(&w, out);
	put_exit(&w, e);
}

void msg_put_hello(struct buf *out, const struct msg_hello *m)
{
	static const char *const names[] = {
		[HOLDS_NOTHING] = "nothing",
		[HOLDS_STARTED] = "started",
		[HOLDS_OTHER_BOOT] = "other_boot",
	};
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "proto", PROTOCOL);
	jsonw_kz(&w, "run", m->run);
	jsonw_kz(&w, "node", m->node);
	jsonw_kz(&w, "token", m->token);
	jsonw_kz(&w, "boot_id", m->boot_id);
	jsonw_kint(&w, "pid", m->pid);
	jsonw_kz(&w, "version", REGATTA_VERSION);
	jsonw_kint(&w, "attempt", m->attempt);
	jsonw_kz(&w, "holds", names[m->holds]);
	put_streams(&w, m->streams);
	if (m->exit) {
		jsonw_key(&w, "exit");
		put_exit(&w, m->exit);
	}
	jsonw_close(&w);
}

void msg_put_ready(struct buf *out, const struct err *why)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kbool(&w, "ok", why->kind == ERR_NONE);
	if (why->kind != ERR_NONE) {
		jsonw_kz(&w, "kind", err_kind_name(why->kind));
		jsonw_kz(&w, "reason", why->msg);
	}
	jsonw_close(&w);
}

void msg_put_started(struct buf *out, int attempt, int64_t pid)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "attempt", attempt);
	jsonw_kint(&w, "pid", pid);
	jsonw_close(&w);
}

void msg_put_serving(struct buf *out, int attempt)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "attempt", attempt);
	jsonw_close(&w);
}

void msg_put_collected(struct buf *out, uint64_t files, uint64_t bytes, const char *error)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "files", (int64_t)files);
	jsonw_kint(&w, "bytes", (int64_t)bytes);
	if (error)
		jsonw_kz(&w, "error", error);
	jsonw_close(&w);
}

void msg_put_bye(struct buf *out, const char *reason)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "reason", reason);
	jsonw_close(&w);
}
