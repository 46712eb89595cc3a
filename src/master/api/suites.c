/* Handlers about suites. */
#include "master/suites.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "master/api/api.h"
#include "master/round.h"
#include "master/suite_submission.h"
#include "master/upkeep/suite_files.h"

#define ANSWER_MAX_BYTES (64u << 20)
#define LIST_DEFAULT 100
#define LIST_MAX 10000

static int reply_suite(struct api_call *c, struct live_suite *ls, bool brief)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, ANSWER_MAX_BYTES);
	suite_to_json(ls, brief, &text);
	buf_addc(&text, '\n');
	api_reply_json(c, 200, &text);
	live_suite_done(ls);
	return 0;
}

/* The answer to a change: sent when the change is stored. */
static int reply_changed(struct api_call *c, struct live_suite *ls, struct err *err)
{
	ls->busy++; /* keeps it in memory: it may end in this round */
	round_end(c->m);
	ls->busy--;
	if (!c->m->exit_code)
		return reply_suite(c, ls, true);
	live_suite_done(ls);
	return err_set(err, ERR_IO, "the suite could not be stored");
}

static bool put_suite(void *ctx, const struct suite_row *row)
{
	struct buf *text = ctx;

	if (text->p[text->n - 1] != '[')
		buf_addc(text, ',');
	suite_row_to_json(row, text);
	return !text->overflow;
}

int api_suites_list(struct api_call *c, struct err *err)
{
	struct str state = query_get(&c->req->query, "state", STR("all"));
	struct str limit = query_get(&c->req->query, "limit", STR(""));
	CLEANUP(buf_release) struct buf text = {0};
	int64_t n = LIST_DEFAULT;

	if (!str_is(state, "all") && !str_is(state, "active"))
		return err_set(err, ERR_INVALID, "'state' must be all or active");
	if (limit.n && (!str_to_i64(limit, &n) || n < 1 || n > LIST_MAX))
		return err_set(err, ERR_INVALID, "'limit' must be a whole number from 1 to %d",
			       LIST_MAX);
	buf_init(&text, ANSWER_MAX_BYTES);
	buf_addz(&text, "{\"suites\":[");
	if (store_suites_each(c->m->store, str_is(state, "active"), (int)n, c->arena, put_suite,
			      &text, err) < 0)
		return -1;
	buf_addz(&text, "]}\n");
	api_reply_json(c, 200, &text);
	return 0;
}

int api_suite_submit(struct api_call *c, struct err *err)
{
	struct live_suite *ls = NULL;
	struct doc *body;
	bool is_new;

	if (c->m->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the master is about to stop");
	if (api_read_body(c, &body, err) < 0)
		return -1;
	if (suites_submit(c->m->suites, body, c->arena, &ls, &is_new, &c->details, err) < 0)
		return -1;
	if (!is_new)
		return reply_changed(c, ls, err);
	ls->answer = c->x; /* suites_hand_out() answers when the suite is stored */
	return 0;
}

int api_suite_get(struct api_call *c, struct err *err)
{
	struct live_suite *ls = suites_find(c->m->suites, c->params[0], err);

	if (!ls)
		return -1;
	return reply_suite(c, ls, str_is(query_get(&c->req->query, "brief", STR("0")), "1"));
}

int api_suite_cancel(struct api_call *c, struct err *err)
{
	struct suite_event ev = {.kind = SUITE_CANCEL};
	struct live_suite *ls;
	struct doc *body;

	if (api_read_body(c, &body, err) < 0 ||
	    !(ls = suites_find(c->m->suites, c->params[0], err)))
		return -1;
	ev.hurry = doc_bool(body, "now", false);
	snprintf(ev.text, sizeof(ev.text), "cancelled by the user");
	if (!ls->ended)
		suite_event(ls, &ev);
	return reply_changed(c, ls, err);
}

int api_suite_resume(struct api_call *c, struct err *err)
{
	struct live_suite *ls;
	struct doc *body;

	if (c->m->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the master is about to stop");
	if (api_read_body(c, &body, err) < 0 ||
	    suites_again(c->m->suites, c->params[0], body, c->arena, &ls, &c->details, err) < 0)
		return -1;
	return reply_changed(c, ls, err);
}

/* What a resume needs credentials for.  Once every run has succeeded there is nothing. */
int api_suite_engines(struct api_call *c, struct err *err)
{
	struct live_suite *ls = suites_find(c->m->suites, c->params[0], err);
	CLEANUP(buf_release) struct buf text = {0};

	if (!ls)
		return -1;
	if (!ls->request)
		(void)suite_submission_load(ls, &(struct err){0});
	buf_init(&text, ANSWER_MAX_BYTES);
	suite_engines_to_json(ls, &text);
	buf_addc(&text, '\n');
	live_suite_done(ls);
	api_reply_json(c, 200, &text);
	return 0;
}

/* The client that stays runs on_exit, goes on with it, or has run it. */
int api_suite_on_exit(struct api_call *c, struct err *err)
{
	struct suite_event ev = {.kind = SUITE_CLAIM};
	struct live_suite *ls;
	struct doc *body;

	if (api_read_body(c, &body, err) < 0 ||
	    !(ls = suites_find(c->m->suites, c->params[0], err)))
		return -1;
	snprintf(ev.client, sizeof(ev.client), "%.*s", STR_ARG(doc_str(body, "client", STR(""))));
	if (doc_bool(body, "done", false)) {
		ev.kind = SUITE_CLOSED;
		snprintf(ev.text, sizeof(ev.text), "%.*s",
			 STR_ARG(doc_str(body, "failed", STR(""))));
	}
	/* Whoever asks again after the end has been heard before. */
	bool over = ls->ended && ev.kind == SUITE_CLOSED && *ev.client &&
		    strcmp(ls->core->client, ev.client) == 0 && ls->core->closer == CLOSER_CLIENT;
	bool before = suite_is_claimed_by(ls->core, ev.client);
	if (!ls->ended && *ev.client)
		suite_event(ls, &ev);
	if (over || (ev.kind == SUITE_CLOSED ? before : suite_is_claimed_by(ls->core, ev.client)))
		return reply_changed(c, ls, err);
	err_set(err, ERR_CONFLICT, "suite %s: on_exit is not this client's to run", ls->row.id);
	live_suite_done(ls);
	return -1;
}

/* A file of its directory, for who runs on_exit elsewhere. */
int api_suite_file(struct api_call *c, struct err *err)
{
	static const struct {
		const char *name, *type;
	} files[] = {{"suite.toml", "text/plain; charset=utf-8"},
		     {"summary.json", "application/json"},
		     {"table.csv", "text/csv; charset=utf-8"},
		     {"report.html", "text/html; charset=utf-8"}};
	struct live_suite *ls = suites_find(c->m->suites, c->params[0], err);
	const char *type = NULL, *name = NULL;
	struct stat st;

	if (!ls)
		return -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (str_is(c->params[1], files[i].name)) {
			name = files[i].name;
			type = files[i].type;
		}
	CLEANUP(freep) char *path = name ? path_join(ls->dir, name) : NULL;
	live_suite_done(ls);
	CLEANUP(close_fdp) int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, "the suite has no file '%.*s'",
			       STR_ARG(c->params[1]));
	http_reply_file(c->x, 200, type, TAKE_FD(fd), 0, st.st_size);
	return 0;
}

static void report_made(void *ctx, struct str summary, const struct err *why)
{
	struct http_exchange *x = ctx;

	if (why->kind != ERR_NONE)
		api_reply_error(x, why);
	else
		http_reply(x, 200, "application/json", summary);
}

int api_suite_report(struct api_call *c, struct err *err)
{
	struct live_suite *ls = suites_find(c->m->suites, c->params[0], err);

	if (!ls)
		return -1;
	if (str_is(query_get(&c->req->query, "files", STR("1")), "0"))
		suite_read_summary(ls, report_made, c->x);
	else
		suite_renew_files(ls, report_made, c->x);
	live_suite_done(ls);
	return 0;
}
