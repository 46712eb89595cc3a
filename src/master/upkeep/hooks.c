#include "master/upkeep/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/upkeep/exports.h"
#include "net/http_client.h"
#include "spec/job.h"
#include "spec/secret.h"
#include "sys/child_run.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define DONE_FILE "on_finish.json"
/* Is there from the end of the run until then, with the variables that the command gets, secrets included: hidden, so
 * that it is no part of the results. */
#define OWED_FILE ".on_finish.owed"
#define LOG_FILE "on_finish.log"
#define THREADS 4
#define NEWEST 1000
#define OWED_MS                                                                                    \
	(60LL * 60 * 1000) /* a hook of a run that ended earlier is not tried by a new master */
#define FIRST_PAUSE_MS 500
#define LONGEST_PAUSE_MS 60000
#define POST_MS 10000
#define COMMAND_MS 60000
#define SUMMARY_MAX_BYTES (64u << 20)
#define ANSWER_MAX_BYTES (64u << 10)

/* The hook of one run.  A worker reads it and sets url_done, command_done and err. */
struct hook {
	struct list in_hooks;
	struct hooks *hooks;
	struct arena *a;
	struct loop_timer *timer;
	int64_t no;
	int tries;
	const char *run, *dir, *base_dir, *url;
	const char **command, **env;
	bool url_done, command_done;
	struct err err;
};

struct hooks {
	struct master *m;
	struct list all;
};

/* ---- one try ---- */

static const char *variable(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	return value ? value : getenv(upper);
}

static int post(const char *url, struct str body, const struct deadline *d, struct err *err)
{
	struct http_client *client = NULL;
	struct http_answer answer;
	struct http_url u;

	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return -1;
	CLEANUP(freep) char *path = u.path.n > 0 ? xstrndup(u.path.p, u.path.n) : xstrdup("/");
	const struct http_target there = {
		.host = u.host,
		.port = u.port,
		.tls = {.mode = u.tls ? TLS_CA : TLS_OFF},
		.proxy = {.http_proxy = getenv("http_proxy"),
			  .https_proxy = variable("https_proxy", "HTTPS_PROXY"),
			  .no_proxy = variable("no_proxy", "NO_PROXY")},
		.stop = d->stop,
	};

	if (http_client_open(&there, POST_MS, &client, err) < 0)
		return -1;
	http_answer_init(&answer, ANSWER_MAX_BYTES);
	/* What else it answers is not read. */
	const struct http_outgoing request = {.method = "POST",
					      .path = path,
					      .body = body,
					      .type = "application/json",
					      .timeout_ms = POST_MS};
	int rc = http_send_stream(client, &request, &answer, err);

	if (rc == 0 && (answer.status < 200 || answer.status > 299))
		rc = err_set(err, ERR_UNAVAILABLE, "it answered %d", answer.status);
	http_answer_release(&answer);
	http_client_free(client);
	return rc;
}

static int run_command(const struct hook *h, const char *summary, const struct deadline *d,
		       struct err *err)
{
	CLEANUP(freep) char *log = path_join(h->dir, LOG_FILE);
	const struct deadline limit = deadline_within(d, COMMAND_MS);
	const struct child_job job = {
		.dir = h->base_dir, .in = summary, .log = log, .argv = h->command, .env = h->env};
	int code;

	if (child_run_job(&job, &limit, &code, err) < 0)
		return -1;
	return code == 0 ? 0 : err_set(err, ERR_UNAVAILABLE, "exit code %d, see " LOG_FILE, code);
}

static void work(void *arg, const struct deadline *d)
{
	struct hook *h = arg;
	CLEANUP(freep) char *summary = path_join(h->dir, "summary.json");
	CLEANUP(buf_release) struct buf body = {0};
	struct err err = {0};

	buf_init(&body, SUMMARY_MAX_BYTES);
	h->err = err;
	if (file_read(summary, &body, &h->err) < 0)
		return;
	if (!h->url_done && post(h->url, buf_str(&body), d, &err) < 0)
		err_wrap(&err, "on_finish.url");
	else
		h->url_done = true;
	if (!h->url_done)
		h->err = err;
	err = (struct err){0};
	if (!h->command_done && run_command(h, summary, d, &err) < 0)
		err_wrap(&err, "on_finish.command");
	else
		h->command_done = true;
	if (!h->command_done && h->err.kind == ERR_NONE)
		h->err = err;
}

/* ---- the end of a try ---- */

static void hook_free(struct hook *h)
{
	list_remove(&h->in_hooks);
	loop_timer_free(h->timer);
	arena_free(h->a);
	free(h);
}

static void write_done(const struct hook *h)
{
	CLEANUP(freep) char *path = path_join(h->dir, DONE_FILE);
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;
	struct err err = {0};

	buf_init(&text, 8192);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kbool(&w, "done", h->err.kind == ERR_NONE);
	jsonw_kint(&w, "tries", h->tries);
	jsonw_kz(&w, "error", h->err.kind == ERR_NONE ? NULL : h->err.msg);
	jsonw_kint(&w, "at_ms", clock_wall_ms());
	jsonw_close(&w);
	buf_addc(&text, '\n');
	if (file_exists(h->dir) && file_write_atomic(path, buf_str(&text), 0600, true, &err) < 0)
		log_warn("run %s: %s", h->run, err.msg);
}

static void finish(struct hook *h)
{
	CLEANUP(freep) char *owed = path_join(h->dir, OWED_FILE);
	struct live_run *lr = live_run_load(h->hooks->m, h->no, NULL);

	/* Before it counts as done: a master that is killed in between tries once more, and then they are indexed. */
	if (lr)
		exports_run_changed(h->hooks->m->exports, lr);
	write_done(h);
	unlink(owed);
	if (lr && h->err.kind != ERR_NONE)
		run_note(lr, "hook", -1, "given up after %d %s: %s", h->tries,
			 h->tries == 1 ? "try" : "tries", h->err.msg);
	if (lr)
		live_run_done(lr);
	hook_free(h);
}

static void work_done(void *arg, enum err_kind how)
{
	struct hook *h = arg;
	int64_t pause_ms = FIRST_PAUSE_MS;

	if (how != ERR_NONE || !h->hooks->m->pools) {
		hook_free(h); /* the next master goes on */
		return;
	}
	h->tries++;
	for (int i = 1; i < h->tries && pause_ms < LONGEST_PAUSE_MS; i++)
		pause_ms *= 2;
	if (h->err.kind == ERR_NONE || h->err.kind == ERR_INVALID || h->tries >= HOOK_TRIES ||
	    !file_exists(h->dir)) {
		finish(h);
		return;
	}
	log_warn("run %s: %s; tried again", h->run, h->err.msg);
	loop_timer_set(h->timer, pause_ms < LONGEST_PAUSE_MS ? pause_ms : LONGEST_PAUSE_MS);
}

static void try_now(void *ctx)
{
	struct hook *h = ctx;

	workers_submit(pools_get(h->hooks->m->pools, "hooks", THREADS), work, work_done, h, -1);
}

/* ---- the beginning ---- */

static bool has_hook(const struct job *job)
{
	return job->on_finish.url || job->on_finish.command.n;
}

/* The client's variables as they were when the run ended; without that file, as they are shown. */
static const struct doc *client_env(const struct live_run *lr, struct arena *a)
{
	CLEANUP(freep) char *path = path_join(lr->dir, OWED_FILE);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *env = NULL;

	buf_init(&text, DOC_MAX_BYTES);
	if (file_read(path, &text, NULL) == 0 && json_parse(buf_str(&text), a, &env, NULL) == 0)
		return env;
	if (lr->row.client_env && json_parse(str_from(lr->row.client_env), a, &env, NULL) == 0)
		return env;
	return doc_new(a, DOC_TABLE);
}

/* The client's variables, and what the command is about.  A secret that is not known any more is not set. */
static const char **make_env(const struct live_run *lr, struct arena *a)
{
	const struct doc *env = client_env(lr, a);
	size_t n = env->type == DOC_TABLE ? env->table.n : 0, k = 0;
	const char **v = arena_array(a, const char *, n + 4);

	for (size_t i = 0; i < n; i++)
		if (env->table.v[i].value->type == DOC_STRING &&
		    !str_is(env->table.v[i].value->s, SECRET_SHOWN))
			v[k++] = arena_printf(a, "%.*s=%.*s", STR_ARG(env->table.v[i].key),
					      STR_ARG(env->table.v[i].value->s));
	v[k++] = arena_printf(a, "REGATTA_RUN=%s", lr->row.id);
	v[k++] = arena_printf(a, "REGATTA_RUN_DIR=%s", lr->dir);
	v[k++] = arena_printf(a, "REGATTA_VERDICT=%s", verdict_name(lr->core->verdict));
	return v;
}

/* A run that another master has is that one's. */
static bool is_owed(const struct live_run *lr)
{
	CLEANUP(freep) char *done = path_join(lr->dir, DONE_FILE);

	return !lr->unreadable && !lr->plan.hands_over && has_hook(lr->job) && !file_exists(done);
}

void hooks_note_owed(const struct live_run *lr)
{
	CLEANUP(freep) char *path = path_join(lr->dir, OWED_FILE);
	const char *env = lr->client_env && lr->job->on_finish.command.n ? lr->client_env : "{}";
	struct err err = {0};

	if (is_owed(lr) && file_write(path, str_from(env), 0600, &err) < 0)
		log_warn("run %s: %s", lr->row.id, err.msg);
}

void hooks_run_ended(struct hooks *hs, struct live_run *lr)
{
	if (!hs->m->pools || !is_owed(lr))
		return;
	struct hook *h = xcalloc(1, sizeof(*h));
	const struct strs *command = &lr->job->on_finish.command;

	h->hooks = hs;
	h->a = arena_new();
	h->no = lr->row.no;
	h->run = arena_strdup(h->a, lr->row.id);
	h->dir = arena_strdup(h->a, lr->dir);
	h->base_dir = arena_strdup(h->a, lr->row.base_dir);
	h->url = lr->job->on_finish.url ? arena_strdup(h->a, lr->job->on_finish.url) : NULL;
	h->command = arena_array(h->a, const char *, command->n + 1);
	for (size_t i = 0; i < command->n; i++)
		h->command[i] = arena_strdup(h->a, command->v[i]);
	h->env = make_env(lr, h->a);
	h->url_done = !h->url;
	h->command_done = command->n == 0;
	h->timer = loop_timer_new(hs->m->loop, try_now, h);
	list_append(&hs->all, &h->in_hooks);
	loop_timer_set(h->timer, 0);
}

struct owed_hooks {
	VEC(int64_t) nos;
	const char *home;
};

static bool collect(void *ctx, const struct run_row *row)
{
	struct owed_hooks *l = ctx;
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" OWED_FILE, l->home, row->id);

	if (row->ended_ms && clock_wall_ms() - row->ended_ms > OWED_MS)
		unlink(path);
	else if (row->ended_ms && file_exists(path))
		*vec_push(&l->nos) = row->no;
	return true;
}

void hooks_check(struct hooks *hs)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct owed_hooks l = {.home = hs->m->home};
	struct err err = {0};

	if (store_runs_each(hs->m->store, false, 0, NEWEST, a, collect, &l, &err) < 0)
		log_warn("%s", err.msg);
	for (size_t i = 0; i < l.nos.n; i++) {
		struct live_run *lr = live_run_load(hs->m, l.nos.v[i], NULL);

		if (lr && lr->ended)
			hooks_run_ended(hs, lr);
		if (lr)
			live_run_done(lr);
	}
	vec_release(&l.nos);
}

bool hooks_waiting(const struct hooks *hs)
{
	return !list_empty(&hs->all);
}

struct hooks *hooks_new(struct master *m)
{
	struct hooks *hs = xcalloc(1, sizeof(*hs));

	hs->m = m;
	list_init(&hs->all);
	return hs;
}

struct hooks *hooks_free(struct hooks *hs)
{
	if (!hs)
		return NULL;
	while (!list_empty(&hs->all))
		hook_free(list_item(hs->all.next, struct hook, in_hooks));
	free(hs);
	return NULL;
}
