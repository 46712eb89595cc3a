/* What the core asks for a suite: runs are made and cancelled, on_exit is run, the report is made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/suite_carrier.h"
#include "master/suite_submission.h"
#include "master/suites.h"
#include "master/upkeep/suite_files.h"
#include "master/upkeep/suite_requests.h"
#include "sys/command_list.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define ON_EXIT_THREADS 4

/* ---- starting ---- */

/* The submission of an entry: that of its variant, with the variant's job and a request id. */
static int make_body(const struct live_suite *ls, const struct suite_effect *fx, struct arena *a,
		     struct doc **ret, struct err *err)
{
	int variant = ls->core->entries[fx->index].variant;

	if (!ls->request)
		return err_set(
			err, ERR_NOT_FOUND,
			"what was submitted is not there any more: '%.120s/" SUITE_REQUEST_FILE
			"' is missing or damaged",
			ls->dir);
	const struct doc *list = doc_array(ls->request, "submissions");
	const struct doc *of = doc_array(ls->request, "of")->array.v[variant];
	const struct doc *given = list->array.v[of->i];
	struct doc *body = doc_new(a, DOC_TABLE), *job;

	if (suite_apply(&ls->plan, &ls->plan.variants[variant], doc_table(given, "job"), a, &job,
			err) < 0)
		return -1;
	for (size_t i = 0; i < given->table.n; i++) {
		const struct doc_entry *e = &given->table.v[i];

		/* The id of a run is not the client's to choose. */
		if (!str_is(e->key, "job") && !str_is(e->key, "run"))
			doc_set(a, body, e->key, e->value);
	}
	doc_set(a, body, STR("job"), job);
	doc_set(a, body, STR("request_id"),
		doc_new_str(a, str_from(arena_printf(a, "suite-%s-%d-%d", ls->row.id, fx->index,
						     fx->attempt))));
	carrier_adapt(ls, fx->index, a, body);
	*ret = body;
	return 0;
}

static void first_line(const char *text, char *out, size_t size)
{
	struct str rest = str_from(text), line = str_cut(&rest, '\n');

	snprintf(out, size, "%.*s", STR_ARG(line));
}

static void refuse(struct live_suite *ls, const struct suite_effect *fx, const struct err *why,
		   const char *details)
{
	struct suite_event ev = {.kind = SUITE_REFUSED,
				 .index = fx->index,
				 .attempt = fx->attempt,
				 .err_kind = why->kind};

	first_line(details ? details : why->msg, ev.text, sizeof(ev.text));
	log_warn("suite %s: variant %s: %s", ls->row.id,
		 ls->plan.variants[ls->core->entries[fx->index].variant].name, ev.text);
	suite_event(ls, &ev);
}

static void start(struct live_suite *ls, const struct suite_effect *fx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct suite_entry *e = &ls->core->entries[fx->index];
	struct live_run *lr = NULL;
	const char *details = NULL;
	struct err err = {0};
	struct doc *body;
	bool is_new;

	if (e->state != ENTRY_STARTING || e->attempt != fx->attempt)
		return;
	if (make_body(ls, fx, a, &body, &err) < 0 ||
	    runs_submit(ls->m, body, a, &lr, &is_new, &details, &err) < 0) {
		refuse(ls, fx, &err, details);
		return;
	}
	suite_bind(ls, fx->index, lr->row.id);
	suite_event(ls, &(struct suite_event){
				.kind = SUITE_STARTED, .index = fx->index, .attempt = fx->attempt});
	/* It was made before the master was restarted, and has ended since. */
	if (lr->ended)
		suites_run_ended(ls->m->suites, lr);
	if (!is_new)
		live_run_done(lr);
}

static void cancel(struct live_suite *ls, const struct suite_effect *fx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct core_suite *s = ls->core;
	const char *run = fx->index < 0 ? carrier_id(ls, a) : ls->runs[fx->index];
	int attempt = fx->index < 0 ? s->carrier : s->entries[fx->index].attempt;
	struct live_run *lr = run ? map_get(ls->m->runs, str_from(run)) : NULL;
	struct event ev = {.kind = EV_CANCEL, .hurry = fx->hurry};

	if (!lr || attempt != fx->attempt)
		return;
	snprintf(ev.text, sizeof(ev.text), "its suite was stopped");
	run_event(lr, &ev);
}

/* ---- on_exit ---- */

struct closing {
	struct live_suite *ls;
	struct arena *a;
	struct command_list list;
};

static void close_work(void *arg, const struct deadline *d)
{
	struct closing *c = arg;

	command_list_run(&c->list, d);
}

static void close_done(void *arg, enum err_kind how)
{
	struct closing *c = arg;
	struct suite_event ev = {.kind = SUITE_CLOSED};

	c->ls->busy--;
	/* If the master stops, the next one runs them again. */
	if (how == ERR_NONE && c->list.done) {
		snprintf(ev.text, sizeof(ev.text), "%s", c->list.failed);
		if (*ev.text)
			log_warn("suite %s: on_exit: %s", c->ls->row.id, ev.text);
		suite_event(c->ls, &ev);
	}
	arena_free(c->a);
	free(c);
}

static const char **make_env(const struct live_suite *ls, struct arena *a)
{
	const struct doc *list = ls->request ? doc_array(ls->request, "submissions") : NULL;
	const struct doc *env = list ? doc_table(list->array.v[0], "client_env") : NULL;
	size_t n = env ? env->table.n : 0, k = 0;
	const char **v = arena_array(a, const char *, n + 4);

	for (size_t i = 0; i < n; i++)
		if (env->table.v[i].value->type == DOC_STRING)
			v[k++] = arena_printf(a, "%.*s=%.*s", STR_ARG(env->table.v[i].key),
					      STR_ARG(env->table.v[i].value->s));
	v[k++] = arena_printf(a, "REGATTA_SUITE=%s", ls->row.id);
	v[k++] = arena_printf(a, "REGATTA_SUITE_DIR=%s", ls->dir);
	v[k++] = arena_printf(a, "REGATTA_SUITE_STATE=%s",
			      suite_phase_name(suite_outcome(ls->core)));
	return v;
}

/* The report is there; without it they run all the same. */
static void close_now(void *ctx, struct str summary, const struct err *why)
{
	struct closing *c = ctx;

	(void)summary;
	if (why->kind != ERR_NONE)
		log_warn("suite %s: report: %s", c->ls->row.id, why->msg);
	if (c->ls->m->pools)
		workers_submit(pools_get(c->ls->m->pools, "on_exit", ON_EXIT_THREADS), close_work,
			       close_done, c, -1);
	else
		close_done(c, ERR_CANCELLED);
}

static void close_suite(struct live_suite *ls)
{
	struct closing *c = xcalloc(1, sizeof(*c));
	const struct strs *commands = &ls->plan.runs.on_exit;
	struct arena *a = arena_new();
	const char **copies = arena_array(a, const char *, commands->n + 1);
	CLEANUP(freep) char *log = path_join(ls->dir, "on_exit.log");

	for (size_t i = 0; i < commands->n; i++)
		copies[i] = arena_strdup(a, commands->v[i]);
	*c = (struct closing){.ls = ls, .a = a};
	/* A suite of another machine has a directory that may not be here. */
	c->list = (struct command_list){
		.dir = arena_strdup(a, file_exists(ls->row.base_dir) ? ls->row.base_dir : ls->dir),
		.log = arena_strdup(a, log),
		.commands = copies,
		.n = commands->n,
		.env = make_env(ls, a),
		.each_ms = SUITE_ON_EXIT_MS};
	ls->busy++;
	suite_write_files(ls, close_now, c);
}

/* ---- effects ---- */

struct carried_end {
	struct master *m;
	char *suite;
};

/* Without its files the run that carries the suite ends all the same. */
static void carried_end(void *ctx, struct str summary, const struct err *why)
{
	struct carried_end *c = ctx;

	(void)summary;
	if (why->kind != ERR_NONE)
		log_warn("suite %s: report: %s", c->suite, why->msg);
	if (c->m->pools) /* else the next master ends it */
		carrier_suite_ended(c->m, c->suite);
	free(c->suite);
	free(c);
}

static void end(struct live_suite *ls)
{
	ls->ended = true;
	suite_request_drop(ls->dir, ls->core);
	if (!carrier_of(ls->m, ls->row.id)) {
		suite_write_files(ls, NULL, NULL);
		return;
	}
	struct carried_end *c = xcalloc(1, sizeof(*c));

	*c = (struct carried_end){ls->m, xstrdup(ls->row.id)};
	suite_write_files(ls, carried_end, c);
}

static void take_back(struct live_suite *ls)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	carrier_came_back(ls->m, carrier_id(ls, a));
}

static void carry_out(struct live_suite *ls, const struct suite_effect *fx)
{
	switch (fx->kind) {
	case SUITE_FX_START:
		if (!ls->m->stopping)
			start(ls, fx);
		return;
	case SUITE_FX_CANCEL:
		cancel(ls, fx);
		return;
	case SUITE_FX_RETURN:
		take_back(ls);
		return;
	case SUITE_FX_CLOSE:
		close_suite(ls);
		return;
	case SUITE_FX_ENDED:
		return; /* done at once */
	}
}

void suite_carry_out(struct live_suite *ls)
{
	struct suite_effects due = ls->due;

	ls->due = (struct suite_effects){0};
	/* The master leaves: the next one carries out the effects. */
	for (size_t i = 0; i < due.v.n && ls->m->pools && !ls->m->exit_code; i++)
		carry_out(ls, &due.v.v[i]);
	suite_effects_release(&due);
}

bool suite_effects_take(struct live_suite *ls, const struct suite_effects *fx)
{
	for (size_t i = 0; i < fx->v.n; i++) {
		if (fx->v.v[i].kind == SUITE_FX_ENDED)
			end(ls);
		else
			*vec_push(&ls->due.v) = fx->v.v[i];
	}
	return ls->due.v.n > 0;
}
