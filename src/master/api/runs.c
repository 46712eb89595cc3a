/* Handlers about runs. */
#include "master/api/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/run_filter.h"
#include "master/api/slices.h"
#include "master/api/watch.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/run_cost.h"
#include "master/run_json.h"
#include "master/runs.h"
#include "master/secrets.h"
#include "master/source_state.h"
#include "spec/secret.h"

#define ANSWER_MAX_BYTES (64u << 20)
#define LIST_DEFAULT 100
#define LIST_MAX 10000
#define LIST_MAX_FULL 200 /* each run is loaded completely */
#define LIST_PIECE 128	  /* rows per slice */
#define LIST_PIECE_FULL 8

int api_reply_run(struct api_call *c, int status, struct live_run *lr)
{
	struct buf text;

	buf_init(&text, ANSWER_MAX_BYTES);
	run_to_json(lr, true, &text);
	buf_addc(&text, '\n');
	api_reply_json(c, status, &text);
	buf_release(&text);
	live_run_done(lr);
	return 0;
}

int api_query_int(const struct api_call *c, const char *name, int64_t fallback, int64_t max,
		  int64_t *ret, struct err *err)
{
	struct str text = query_get(&c->req->query, name, STR(""));

	*ret = fallback;
	if (!text.n || (str_to_i64(text, ret) && *ret >= 0 && *ret <= max))
		return 0;
	return err_set(err, ERR_INVALID, "'%s' must be a whole number from 0 to %lld", name,
		       (long long)max);
}

/* The list of runs, newest first, made in slices. */
struct run_list {
	struct slice_job job;
	struct master *m;
	struct http_exchange *x;
	struct buf text;
	struct arena *a; /* the texts of the filter */
	struct run_filter filter;
	bool full;
	int64_t before_no; /* the last run that was looked at; 0: none yet */
	int64_t left;	   /* how many runs may follow; -1: all */
	int got;	   /* runs that were looked at in this slice */
	bool first;
};

static void run_list_free(struct run_list *l)
{
	buf_release(&l->text);
	arena_free(l->a);
	free(l);
}

static void run_list_drop(void *ctx)
{
	struct run_list *l = ctx;
	struct err err = {0};

	err_set(&err, ERR_UNAVAILABLE, "the master is about to stop");
	api_reply_error(l->x, &err);
	run_list_free(l);
}

static bool put_run(void *ctx, const struct run_row *row)
{
	struct run_list *l = ctx;

	l->before_no = row->no;
	l->got++;
	if (!run_filter_fits(&l->filter, row))
		return true;
	if (!l->first)
		buf_addc(&l->text, ',');
	l->first = false;
	if (l->left > 0)
		l->left--;
	struct live_run *lr = map_get(l->m->runs, str_from(row->id));
	if (!lr && l->full)
		lr = live_run_load(l->m, row->no, NULL);
	if (lr)
		run_to_json(lr, l->full, &l->text);
	else
		row_to_json(row, &l->text);
	if (lr)
		live_run_done(lr);
	return !l->text.overflow && l->left != 0;
}

/* With the number of all runs, whatever was asked for. */
static void end_list(struct run_list *l, struct err *err)
{
	int64_t total = 0;

	if (err->kind == ERR_NONE)
		(void)store_run_count(l->m->store, &total, err);
	buf_printf(&l->text, "],\"total\":%" PRId64 "}\n", total);
}

static bool run_list_piece(void *ctx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_list *l = ctx;
	struct err err = {0};
	int n = l->full ? LIST_PIECE_FULL : LIST_PIECE;

	if (l->left >= 0 && n > l->left && !l->filter.any)
		n = (int)l->left;
	l->got = 0;
	if (store_runs_each(l->m->store, l->filter.active, l->before_no, n, a, put_run, l, &err) ==
		    0 &&
	    l->text.overflow)
		err_set(&err, ERR_QUOTA,
			"too many runs for one answer: ask for fewer with 'limit' and 'before'");
	if (err.kind == ERR_NONE && l->got == n && l->left != 0)
		return true;
	end_list(l, &err);
	if (err.kind == ERR_NONE)
		http_reply(l->x, 200, "application/json", buf_str(&l->text));
	else
		api_reply_error(l->x, &err);
	run_list_free(l);
	return false;
}

int api_runs_list(struct api_call *c, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_filter filter;
	struct str before = query_get(&c->req->query, "before", STR(""));
	int64_t limit, full, before_no = 0;

	if (run_filter_read(&c->req->query, a, &filter, err) < 0 ||
	    api_query_int(c, "limit", LIST_DEFAULT, LIST_MAX, &limit, err) < 0 ||
	    api_query_int(c, "full", 0, 1, &full, err) < 0)
		return -1;
	/* A limit of 0 means all. */
	if (full && (limit == 0 || limit > LIST_MAX_FULL))
		return err_set(
			err, ERR_INVALID,
			"with 'full', 'limit' must be a whole number from 1 to %d: go on with 'before'",
			LIST_MAX_FULL);
	if (before.n &&
	    store_run_find(c->m->store, before, c->arena, &before_no, &c->ids, &c->nids, err) < 0)
		return -1;
	struct run_list *l = xcalloc(1, sizeof(*l));
	slice_job_init(&l->job, run_list_piece, run_list_drop, l);
	l->m = c->m;
	l->x = c->x;
	l->a = TAKE_PTR(a);
	l->filter = filter;
	l->full = full;
	l->before_no = before_no;
	l->left = limit ? limit : -1;
	l->first = true;
	buf_init(&l->text, ANSWER_MAX_BYTES);
	buf_addz(&l->text, "{\"runs\":[");
	/* A short list is complete after the first slice. */
	if (run_list_piece(l))
		slices_add(c->m->slices, auth_client(c->x), &l->job);
	return 0;
}

int api_run_submit(struct api_call *c, struct err *err)
{
	struct doc *body = NULL;
	struct live_run *lr = NULL;
	bool is_new = false;

	if (c->m->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the master is about to stop");
	if (json_parse(c->req->body, c->arena, &body, err) < 0)
		return err_wrap(err, "request body");
	if (body->type != DOC_TABLE)
		return err_set(err, ERR_INVALID, "request body: a JSON object is expected");
	if (doc_get(body, "run") && c->scope != API_ADMIN)
		return err_set(err, ERR_DENIED,
			       "'run' is for the admin: the id of a run is chosen");
	if (runs_submit(c->m, body, c->arena, &lr, &is_new, &c->details, err) < 0)
		return -1;
	/* The answer must not be sent before the run is on disk. */
	if (is_new) {
		lr->answer = c->x; /* round_end() answers when the run is stored */
		return 0;
	}
	lr->busy++; /* keeps it in memory: it may end in this round */
	round_end(c->m);
	lr->busy--;
	if (c->m->exit_code)
		return err_set(err, ERR_IO, "the run could not be stored");
	return api_reply_run(c, 200, lr);
}

void api_run_stored(struct live_run *lr, const struct err *why_not)
{
	struct http_exchange *x = lr->answer;
	struct buf text;

	lr->answer = NULL;
	if (why_not) {
		api_reply_error(x, why_not);
		return;
	}
	buf_init(&text, ANSWER_MAX_BYTES);
	run_to_json(lr, true, &text);
	buf_addc(&text, '\n');
	http_reply(x, 201, "application/json", buf_str(&text));
	buf_release(&text);
}

int api_run_get(struct api_call *c, struct err *err)
{
	struct live_run *lr = api_run(c, err);

	return lr ? api_reply_run(c, 200, lr) : -1;
}

int api_run_watch(struct api_call *c, struct err *err)
{
	int64_t last, deltas;

	if (api_query_int(c, "last", 0, 1, &last, err) < 0 ||
	    api_query_int(c, "deltas", 0, 1, &deltas, err) < 0 || api_stream_allowed(c, err) < 0)
		return -1;
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	if (deltas && !last)
		watch_deltas(c->m->watch, lr, c->x);
	else
		watch_object(c->m->watch, lr, c->x, last);
	return 0;
}

int api_run_events(struct api_call *c, struct err *err)
{
	int64_t after, follow;

	if (api_query_int(c, "after", 0, INT64_MAX, &after, err) < 0 ||
	    api_query_int(c, "follow", 0, 1, &follow, err) < 0 || api_stream_allowed(c, err) < 0)
		return -1;
	struct live_run *lr = api_run(c, err);
	if (!lr)
		return -1;
	watch_events(c->m->watch, lr, c->x, after, follow);
	return 0;
}

int api_run_cost(struct api_call *c, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	buf_init(&text, ANSWER_MAX_BYTES);
	run_costs_to_json(lr, &text);
	buf_addc(&text, '\n');
	live_run_done(lr);
	http_reply(c->x, 200, "application/json", buf_str(&text));
	return 0;
}

int api_run_metrics(struct api_call *c, struct err *err)
{
	int64_t host, limit;
	struct buf text;

	if (api_query_int(c, "host", 0, 1, &host, err) < 0 ||
	    api_query_int(c, "limit", 0, INT64_MAX, &limit, err) < 0)
		return -1;
	struct live_run *lr = api_run(c, err);
	if (!lr)
		return -1;
	struct str node = query_get(&c->req->query, "node", STR(""));
	if (node.n && run_find_rank(lr, node) < 0) {
		err_set(err, ERR_NOT_FOUND, "run '%s' has no node '%.*s'", lr->row.id,
			STR_ARG(node));
		live_run_done(lr);
		return -1;
	}
	buf_init(&text, ANSWER_MAX_BYTES);
	metrics_to_json(lr, query_get(&c->req->query, "name", STR("")), node, host, limit, &text);
	buf_addc(&text, '\n');
	live_run_done(lr);
	if (text.overflow)
		err_set(err, ERR_QUOTA,
			"too many points: ask for fewer with 'limit' or for one node");
	else
		api_reply_json(c, 200, &text);
	int rc = text.overflow ? -1 : 0;
	buf_release(&text);
	return rc;
}

static int reply_run_file(struct api_call *c, const char *name, const char *type, struct err *err)
{
	struct live_run *lr = api_run(c, err);
	struct buf text;

	if (!lr)
		return -1;
	CLEANUP(freep) char *path = path_join(lr->dir, name);
	live_run_done(lr);
	buf_init(&text, ANSWER_MAX_BYTES);
	int rc = file_read(path, &text, err);
	if (rc == 0)
		http_reply(c->x, 200, type, buf_str(&text));
	buf_release(&text);
	return rc;
}

int api_run_job(struct api_call *c, struct err *err)
{
	return reply_run_file(c, "job.toml", "application/toml", err);
}

int api_run_plan(struct api_call *c, struct err *err)
{
	return reply_run_file(c, "plan.json", "application/json", err);
}

/* Names of the variables that came from the submitting shell and whose values are not in the record. */
static void passed_secrets_to_json(const struct live_run *lr, struct jsonw *w)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *env = NULL;
	bool known = lr->row.client_env &&
		     json_parse(str_from(lr->row.client_env), a, &env, NULL) == 0 &&
		     env->type == DOC_TABLE;

	jsonw_key(w, "passed_secrets");
	jsonw_open(w, '[');
	for (size_t i = 0; known && i < env->table.n; i++)
		if (env->table.v[i].value->type == DOC_STRING &&
		    str_is(env->table.v[i].value->s, SECRET_SHOWN))
			jsonw_str(w, env->table.v[i].key);
	jsonw_close(w);
}

/* What another run of the same needs.  Secrets are masked. */
int api_run_record(struct api_call *c, struct err *err)
{
	struct live_run *lr = api_run(c, err);
	struct buf text;
	struct jsonw w;

	if (!lr)
		return -1;
	buf_init(&text, ANSWER_MAX_BYTES);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", lr->row.id);
	jsonw_key(&w, "job");
	jsonw_raw(&w, str_from(lr->row.job_json));
	jsonw_kz(&w, "base_dir", lr->row.base_dir);
	jsonw_kz(&w, "source_sha256", lr->row.source_sha256);
	jsonw_key(&w, "tags");
	jsonw_raw(&w, str_from(lr->row.tags ? lr->row.tags : "[]"));
	passed_secrets_to_json(lr, &w);
	source_state_to_record(lr, &w);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	live_run_done(lr);
	api_reply_json(c, 200, &text);
	buf_release(&text);
	return 0;
}

int api_run_cancel(struct api_call *c, struct err *err)
{
	struct doc *body = NULL;
	struct event ev = {.kind = EV_CANCEL, .text = "cancelled by the user"};

	if (c->req->body.n && json_parse(c->req->body, c->arena, &body, err) < 0)
		return -1;
	ev.hurry = doc_bool(body, "hurry", false);
	struct live_run *lr = api_run(c, err);
	/* If several runs have this name, the only active one is meant. */
	if (!lr && err->kind == ERR_CONFLICT)
		lr = live_run_active_named(c->m, c->params[0]);
	if (!lr)
		return -1;
	const struct doc *credentials = doc_table(body, "credentials");

	if (credentials && !lr->ended && run_credentials_renew(lr, credentials, err) < 0)
		return -1;
	ev.renews = credentials != NULL;
	run_event(lr, &ev);
	lr->busy++; /* keeps it in memory: the commit may end it */
	round_end(c->m);
	lr->busy--;
	return api_reply_run(c, 200, lr);
}

static int role_named(const struct crew *c, struct str name)
{
	for (int k = 0; k < c->nroles; k++)
		if (str_is(name, c->roles[k].name))
			return k;
	return -1;
}

static int resize_event(const struct live_run *lr, const struct doc_entry *size, struct event *ret,
			struct err *err)
{
	int64_t want = size->value->type == DOC_INT ? size->value->i : -1;
	int role = role_named(&lr->plan.crew, size->key);

	if (role < 0)
		return err_set(err, ERR_NOT_FOUND,
			       "run '%s' has no role '%.*s': 'regatta status %s' shows its nodes",
			       lr->row.id, STR_ARG(size->key), lr->row.id);
	if (want < 0 || want > JOB_MAX_NODES)
		return err_set(err, ERR_INVALID, "the size of role '%.*s' is no number of nodes",
			       STR_ARG(size->key));
	*ret = (struct event){.kind = EV_RESIZE, .index = role, .want = (int)want};
	snprintf(ret->text, sizeof(ret->text), "%.*s=%d", STR_ARG(size->key), (int)want);
	return core_resize_check(lr->core, role, (int)want, err);
}

/* All sizes in one round, or none. */
static int resize_all(struct live_run *lr, const struct doc *sizes, struct err *err)
{
	struct event ev;

	if (!sizes || sizes->table.n == 0)
		return err_set(err, ERR_INVALID, "'sizes' is missing: {\"sizes\":{ROLE:N}}");
	for (size_t i = 0; i < sizes->table.n; i++)
		if (resize_event(lr, &sizes->table.v[i], &ev, err) < 0)
			return -1;
	for (size_t i = 0; i < sizes->table.n; i++)
		if (resize_event(lr, &sizes->table.v[i], &ev, err) == 0)
			run_event(lr, &ev);
	return 0;
}

int api_run_resize(struct api_call *c, struct err *err)
{
	struct doc *body = NULL;

	if (json_parse(c->req->body, c->arena, &body, err) < 0)
		return -1;
	struct live_run *lr = api_run(c, err);
	if (!lr)
		return -1;
	if (resize_all(lr, doc_table(body, "sizes"), err) < 0) {
		live_run_done(lr);
		return -1;
	}
	lr->busy++; /* keeps it in memory: the commit may end it */
	round_end(c->m);
	lr->busy--;
	return api_reply_run(c, 200, lr);
}

/* Removes a run that has ended.  A client that wants an active run removed cancels it, watches
 * it to its end, and asks again. */
int api_run_cleanup(struct api_call *c, struct err *err)
{
	struct live_run *lr = api_run(c, err);
	struct buf text;
	struct jsonw w;

	if (!lr)
		return -1;
	if (!lr->ended) {
		return err_set(err, ERR_CONFLICT, "run '%s' has not ended (%s): cancel it first",
			       lr->row.id, run_phase_name(lr->core->phase));
	}
	if (lr->busy || watch_has_run(c->m->watch, lr->row.no)) {
		err_set(err, ERR_CONFLICT, "run '%s' is being watched: try again", lr->row.id);
		live_run_done(lr);
		return -1;
	}
	if (runs_remove(lr, err) < 0) {
		live_run_done(lr);
		return -1;
	}
	buf_init(&text, 8192);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kbool(&w, "removed", true);
	jsonw_kz(&w, "id", lr->row.id);
	jsonw_kz(&w, "dir", lr->dir);
	jsonw_close(&w);
	api_reply_json(c, 200, &text);
	buf_release(&text);
	live_run_done(lr);
	return 0;
}
