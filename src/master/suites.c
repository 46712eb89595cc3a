#include "master/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "master/api/api.h"
#include "master/clock.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/suite_carrier.h"
#include "master/suite_submission.h"
#include "master/upkeep/space.h"
#include "master/upkeep/suite_files.h"
#include "master/upkeep/suite_requests.h"
#include "plan/plan.h"
#include "sys/loop.h"

#define NAME_TRIES 50
#define PROBLEMS_TEXT (64 * 1024)
#define AUTO_ELSEWHERE 16 /* runs at a time for "auto" where nodes are not on this machine */
#define COST_CHECK_MS 5000

struct run_ref {
	struct live_suite *ls;
	int index, attempt;
};

struct suites {
	struct master *m;
	VEC(struct live_suite *) v; /* that go on */
	struct map *by_run;	    /* id of an active run -> struct run_ref */
	struct loop_timer *timer;   /* for ticks, and to add up costs */
	int64_t cost_at_ms;
};

/* ---- in memory ---- */

static struct live_suite *live_suite_new(struct master *m)
{
	struct live_suite *ls = xcalloc(1, sizeof(*ls));

	ls->m = m;
	ls->arena = arena_new();
	return ls;
}

static void live_suite_free(struct live_suite *ls)
{
	for (int i = 0; ls->runs && i < ls->core->n; i++)
		free(ls->runs[i]);
	free(ls->runs);
	core_suite_free(ls->core);
	suite_effects_release(&ls->fx);
	suite_effects_release(&ls->saved);
	suite_effects_release(&ls->due);
	free(ls->dir);
	arena_free(ls->arena);
	free(ls);
}

static bool is_active(const struct suites *s, const struct live_suite *ls)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (s->v.v[i] == ls)
			return true;
	return false;
}

void live_suite_done(struct live_suite *ls)
{
	if (!is_active(ls->m->suites, ls) && !ls->busy)
		live_suite_free(ls);
}

static int problems_error(struct problems *ps, struct arena *a, const char **ret_details,
			  struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, PROBLEMS_TEXT);
	problems_print(ps, "suite", &text);
	*ret_details = arena_strndup(a, text.p, text.n);
	return err_set(err, ERR_INVALID, "the suite has %zu problem%s", ps->n + ps->more,
		       ps->n + ps->more == 1 ? "" : "s");
}

/* Sets plan, core and directory from the row's document. */
static int make_state(struct live_suite *ls, const char **ret_details, struct err *err)
{
	struct problems *ps = arena_new_of(ls->arena, struct problems);
	struct doc *doc;

	if (json_parse(str_from(ls->row.doc), ls->arena, &doc, err) < 0)
		return err_wrap(err, "the suite");
	if (!suite_load(doc, plan_job_schema(ls->arena), ls->arena, &ls->plan, ps))
		return problems_error(ps, ls->arena, ret_details, err);
	ls->core = core_suite_new(&ls->plan, ls->row.parallel > 0 ? ls->row.parallel : 1);
	ls->runs = xcalloc((size_t)ls->core->n + 1, sizeof(*ls->runs));
	return 0;
}

static void set_dir(struct live_suite *ls)
{
	ls->dir = xasprintf("%s/" LAYOUT_SUITES "/%s", ls->m->home, ls->row.id);
}

static void take_run(void *ctx, int index, const char *run)
{
	struct live_suite *ls = ctx;

	ls->runs[index] = xstrdup(run);
}

static struct live_suite *load(struct suites *s, int64_t no, struct err *err)
{
	struct live_suite *ls = live_suite_new(s->m);
	const char *details = "";

	if (store_suite_get(s->m->store, no, ls->arena, &ls->row, err) < 0 ||
	    make_state(ls, &details, err) < 0 ||
	    store_suite_restore(s->m->store, no, ls->core, take_run, ls, err) < 0) {
		live_suite_free(ls);
		return NULL;
	}
	core_suite_restored(ls->core);
	set_dir(ls);
	ls->ended = suite_phase_is_final(ls->core->phase);
	return ls;
}

struct live_suite *suites_by_no(struct suites *s, int64_t no)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (s->v.v[i]->row.no == no)
			return s->v.v[i];
	return NULL;
}

struct live_suite *suites_at(const struct suites *s, size_t i)
{
	return s->v.v[i];
}

struct live_suite *suites_active_named(const struct suites *s, const char *id)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (strcmp(s->v.v[i]->row.id, id) == 0)
			return s->v.v[i];
	return NULL;
}

struct live_suite *suites_find(struct suites *s, struct str id, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct suite_row row;

	if (store_suite_find(s->m->store, id, a, &row, err) < 0)
		return NULL;
	struct live_suite *ls = suites_by_no(s, row.no);

	return ls ? ls : load(s, row.no, err);
}

/* ---- events ---- */

static int64_t sooner(int64_t x, int64_t y)
{
	return !x || (y && y < x) ? y : x;
}

static void set_timer(struct suites *s)
{
	int64_t next = 0, now = master_now(s->m);
	int64_t cost_at = s->cost_at_ms ? s->cost_at_ms : now; /* 0 would be never */

	for (size_t i = 0; i < s->v.n; i++) {
		const struct live_suite *ls = s->v.v[i];
		int64_t at = ls->core->next_ms;

		if (ls->plan.runs.max_cost > 0 && !ls->ended && (!at || cost_at < at))
			at = cost_at;
		next = sooner(next, at);
	}
	if (next)
		loop_timer_set(s->timer, next > now ? next - now : 0);
	else
		loop_timer_cancel(s->timer);
}

static void mark(struct live_suite *ls)
{
	ls->in_round = true;
}

void suite_event(struct live_suite *ls, const struct suite_event *ev)
{
	enum suite_phase before = ls->core->phase;
	uint64_t changes = ls->fx.changes;

	suite_step(ls->core, ev, master_now(ls->m), &ls->fx);
	if (ls->fx.changes == changes)
		return;
	if (ls->core->phase != before)
		log_info("suite %s: %s%s%s", ls->row.id, suite_phase_name(ls->core->phase),
			 *ls->core->cause ? ": " : "", ls->core->cause);
	mark(ls);
	set_timer(ls->m->suites);
}

void suite_set_run(struct live_suite *ls, int index, const char *run)
{
	if (!ls->runs[index] || strcmp(ls->runs[index], run) != 0) {
		free(ls->runs[index]);
		ls->runs[index] = xstrdup(run);
	}
	suite_link_run(ls, index);
}

void suite_bind(struct live_suite *ls, int index, const char *run)
{
	struct run_ref *ref = xcalloc(1, sizeof(*ref));

	*ref = (struct run_ref){ls, index, ls->core->entries[index].attempt};
	free(map_put(ls->m->suites->by_run, str_from(run), ref));
	suite_set_run(ls, index, run);
}

void suites_run_ended(struct suites *s, struct live_run *lr)
{
	struct run_ref *ref = map_get(s->by_run, str_from(lr->row.id));
	struct suite_event ev = {.kind = SUITE_RUN_ENDED};

	if (!ref)
		return;
	ev.index = ref->index;
	ev.attempt = ref->attempt;
	ev.verdict = lr->core->verdict;
	ev.err_kind = lr->core->cause.kind;
	ev.micro = core_cost(lr->core, master_now(s->m));
	if (ev.verdict != VERDICT_SUCCEEDED)
		snprintf(ev.text, sizeof(ev.text), "%s", lr->core->cause.text);
	suite_event(ref->ls, &ev);
	map_del(s->by_run, str_from(lr->row.id));
	free(ref);
}

static void add_up_costs(struct suites *s)
{
	for (size_t i = 0; i < s->v.n; i++) {
		struct live_suite *ls = s->v.v[i];
		struct suite_event ev = {.kind = SUITE_COST};

		const struct live_run *carrier = carrier_of(s->m, ls->row.id);

		ev.micro = carrier ? core_cost(carrier->core, master_now(s->m)) : 0;
		for (int k = 0; ls->plan.runs.max_cost > 0 && k < ls->core->n; k++) {
			const struct live_run *lr =
				ls->core->entries[k].state == ENTRY_RUNNING && ls->runs[k]
					? map_get(s->m->runs, str_from(ls->runs[k]))
					: NULL;

			ev.micro += lr ? core_cost(lr->core, master_now(s->m)) : 0;
		}
		suite_event(ls, &ev);
	}
}

static void on_timer(void *ctx)
{
	struct suites *s = ctx;

	if (s->cost_at_ms <= master_now(s->m)) {
		s->cost_at_ms = master_now(s->m) + COST_CHECK_MS;
		add_up_costs(s);
	}
	for (size_t i = 0; i < s->v.n; i++)
		suite_event(s->v.v[i], &(struct suite_event){.kind = SUITE_TICK});
	set_timer(s);
}

size_t suites_active(const struct suites *s)
{
	return s->v.n;
}

void suites_cancel_all(struct suites *s, const char *why)
{
	struct suite_event ev = {.kind = SUITE_CANCEL};

	snprintf(ev.text, sizeof(ev.text), "%s", why);
	for (size_t i = 0; i < s->v.n; i++)
		suite_event(s->v.v[i], &ev);
}

/* ---- the round ---- */

bool suites_pending(const struct suites *s)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (s->v.v[i]->in_round)
			return true;
	return false;
}

static int save_one(struct live_suite *ls, struct err *err)
{
	struct store *st = ls->m->store;
	struct core_suite *c = ls->core;

	store_begin(st);
	for (size_t i = 0; i < ls->fx.entries.n; i++) {
		int index = ls->fx.entries.v[i];

		if (store_suite_entry_save(st, ls->row.no, index, &c->entries[index],
					   ls->runs[index], err) < 0)
			return -1;
		c->entries[index].dirty = false;
	}
	if (c->dirty && store_suite_save(st, ls->row.no, c, master_now(ls->m), err) < 0)
		return -1;
	c->dirty = false;
	if (!suite_phase_is_final(c->phase) || ls->ended)
		return 0;
	ls->row.ended_ms = clock_wall_ms();
	return store_suite_ended(st, ls->row.no, ls->row.ended_ms, err);
}

/* What runs tell it between the commit and suites_hand_out() belongs to the next round. */
int suites_save(struct suites *s, struct err *err)
{
	for (size_t i = 0; i < s->v.n; i++) {
		struct live_suite *ls = s->v.v[i];

		if (!ls->in_round)
			continue;
		if (save_one(ls, err) < 0)
			return -1;
		ls->in_round = false;
		ls->is_saved = true;
		ls->saved = ls->fx;
		ls->fx = (struct suite_effects){0};
	}
	return 0;
}

static void reply_stored(struct live_suite *ls)
{
	struct http_exchange *x = ls->answer;
	CLEANUP(buf_release) struct buf text = {0};

	ls->answer = NULL;
	buf_init(&text, 1u << 20);
	suite_to_json(ls, true, &text);
	buf_addc(&text, '\n');
	http_reply(x, 201, "application/json", buf_str(&text));
}

static void carry_out_all(void *ctx)
{
	struct suites *s = ctx;

	for (size_t i = 0; i < s->v.n; i++)
		suite_carry_out(s->v.v[i]);
}

void suites_hand_out(struct suites *s)
{
	bool due = false;

	for (size_t i = 0; i < s->v.n; i++) {
		struct live_suite *ls = s->v.v[i];
		struct suite_effects fx = ls->saved;

		due |= ls->in_round; /* the loop goes round again, and saves it */
		if (!ls->is_saved)
			continue;
		ls->is_saved = false;
		ls->saved = (struct suite_effects){0};
		if (ls->answer)
			reply_stored(ls);
		due |= suite_effects_take(ls, &fx);
		suite_effects_release(&fx);
	}
	if (due)
		loop_soon(s->m->loop, carry_out_all, s);
	for (size_t i = 0; i < s->v.n;) {
		struct live_suite *ls = s->v.v[i];

		if (!ls->ended || ls->in_round) {
			i++;
			continue;
		}
		memmove(&s->v.v[i], &s->v.v[i + 1], (s->v.n - i - 1) * sizeof(s->v.v[0]));
		s->v.n--;
		live_suite_done(ls);
	}
}

void suites_not_stored(struct suites *s, const struct err *why)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (s->v.v[i]->answer) {
			api_reply_error(s->v.v[i]->answer, why);
			s->v.v[i]->answer = NULL;
		}
}

/* ---- submitting ---- */

/* The run that may carry the suite gets the same id. */
static int find_taken(const struct live_suite *ls, struct err *err)
{
	struct suite_row row;
	const char **ids;
	int64_t no;
	size_t n;

	if (store_suite_find(ls->m->store, str_from(ls->row.id), ls->arena, &row, err) == 0)
		return 0;
	return err->kind != ERR_NOT_FOUND ? -1
					  : store_run_find(ls->m->store, str_from(ls->row.id),
							   ls->arena, &no, &ids, &n, err);
}

static int choose_id(struct live_suite *ls, struct err *err)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		struct err why = {0};
		char letters[5] = {0};

		for (int k = 0; k < 4; k++)
			letters[k] = (char)('a' + rand_u64() % 26);
		ls->row.id = arena_printf(ls->arena, "%s-%s", ls->plan.name, letters);
		if (find_taken(ls, &why) == 0)
			continue;
		if (why.kind == ERR_NOT_FOUND)
			return 0;
		*err = why;
		return -1;
	}
	return err_set(err, ERR_CONFLICT, "no free name for '%s'", ls->plan.name);
}

/* Nodes on this machine share its processors. */
static int choose_parallel(const struct live_suite *ls, const struct doc *body)
{
	const struct doc *facts = doc_table(body, "auto");
	int64_t nodes = doc_int(facts, "nodes", 1);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (ls->plan.parallel > 0)
		return (int)ls->plan.parallel;
	if (!doc_bool(facts, "here", true))
		return AUTO_ELSEWHERE;
	int64_t n = nodes > 0 ? cpus / nodes : cpus;

	return n < 1 ? 1 : n > SUITE_MAX_PARALLEL ? SUITE_MAX_PARALLEL : (int)n;
}

/* The archives that the runs will need, for store_source_used(). */
static const char *sources_of(const struct live_suite *ls)
{
	const struct doc *list = doc_array(ls->request, "submissions");
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, DOC_MAX_BYTES);
	for (size_t i = 0; i < list->array.n; i++) {
		const struct doc *data = doc_get(list->array.v[i], "data");

		buf_addstr(&text, doc_str(list->array.v[i], "source_sha256", STR("")));
		buf_addc(&text, ' ');
		if (data)
			doc_to_json(data, &text);
	}
	return arena_strndup(ls->arena, text.p ? text.p : "", text.n);
}

static int fill(struct live_suite *ls, const struct doc *body, const char **ret_details,
		struct err *err)
{
	const struct doc *doc = doc_table(body, "suite");

	if (!doc)
		return err_set(err, ERR_INVALID, "'suite' must be a table");
	ls->request = doc_copy(ls->arena, body);
	ls->row.doc = doc_json_text(ls->arena, doc);
	ls->row.base_dir = arena_str(ls->arena, doc_str(body, "base_dir", STR("/"))).p;
	ls->row.created_ms = clock_wall_ms();
	ls->row.cause = "";
	if (make_state(ls, ret_details, err) < 0 || suite_submission_check(ls, err) < 0 ||
	    (!ls->row.id && choose_id(ls, err) < 0))
		return -1;
	ls->row.name = ls->plan.name;
	ls->row.sources = sources_of(ls);
	ls->row.parallel = choose_parallel(ls, body);
	ls->core->parallel = ls->row.parallel;
	set_dir(ls);
	return 0;
}

/* Written before the row is committed: a suite with a row can always be resumed. */
static int write_dir(const struct live_suite *ls, const struct doc *body, struct err *err)
{
	CLEANUP(freep) char *experiments = path_join(ls->dir, "experiments");
	CLEANUP(freep) char *file = path_join(ls->dir, "suite.toml");
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 4 * DOC_MAX_BYTES);
	doc_to_toml(doc_table(body, "suite"), &text);
	if (file_mkdir_p(experiments, 0700, err) < 0 ||
	    file_write(file, buf_str(&text), 0600, err) < 0)
		return -1;
	return suite_submission_save(ls, err);
}

/* Makes the run that carries the suite, which is to have a master of its own. */
static int make_carrier(struct live_suite *ls, struct arena *a, struct live_run **ret,
			const char **ret_details, struct err *err)
{
	struct doc *body = carrier_submission(ls, a);
	bool is_new;

	if (!body)
		return err_set(err, ERR_INVALID, "the suite's job cannot be read");
	if (runs_submit(ls->m, body, a, ret, &is_new, ret_details, err) < 0)
		return -1;
	if (is_new)
		return 0;
	/* It failed when an earlier resume made it, and carries nothing. */
	const char *id = arena_strdup(a, (*ret)->row.id);

	live_run_done(*ret);
	*ret = NULL;
	return err_set(err, ERR_CONFLICT,
		       "there is a run '%s' already: 'regatta cleanup %s' removes it", id, id);
}

static void drop_carrier(struct live_run *lr, const struct err *why)
{
	struct event ev = {.kind = EV_CANCEL};

	snprintf(ev.text, sizeof(ev.text), "%.199s", why->msg);
	run_event(lr, &ev);
}

int suites_submit(struct suites *s, const struct doc *body, struct arena *a,
		  struct live_suite **ret, bool *ret_new, const char **ret_details, struct err *err)
{
	return suites_submit_as(s, body, NULL, a, ret, ret_new, ret_details, err);
}

int suites_submit_as(struct suites *s, const struct doc *body, const char *id, struct arena *a,
		     struct live_suite **ret, bool *ret_new, const char **ret_details,
		     struct err *err)
{
	struct str request = doc_str(body, "request_id", STR(""));
	struct str client = doc_str(body, "client", STR(""));
	const char *details = NULL;
	int64_t no;

	if (client.n >= SUITE_CLIENT_SIZE)
		return err_set(err, ERR_INVALID, "'client' must have less than %d characters",
			       SUITE_CLIENT_SIZE);
	if (request.n < 16 || request.n > 64)
		return err_set(err, ERR_INVALID,
			       "'request_id' must be a text of 16 to 64 characters");
	if (store_suite_by_request(s->m->store, arena_str(a, request).p, &no, err) < 0)
		return -1;
	if (no) {
		struct suite_row row;
		*ret_new = false;
		if (store_suite_get(s->m->store, no, a, &row, err) < 0)
			return -1;
		*ret = suites_find(s, str_from(row.id), err);
		return *ret ? 0 : -1;
	}
	if (space_for_run(s->m->space, err) < 0)
		return -1;
	struct live_suite *ls = live_suite_new(s->m);
	struct live_run *carrier = NULL;

	ls->row.request_id = arena_str(ls->arena, request).p;
	ls->row.id = id ? arena_strdup(ls->arena, id) : NULL;
	int rc = fill(ls, body, &details, err);
	if (rc == 0 && id)
		rc = carrier_take_entries(ls->core, doc_array(body, "entries"), err);
	if (rc == 0 && !id)
		ls->core->away = carrier_is_possible(ls, a);
	if (rc == 0 && (rc = write_dir(ls, body, err)) == 0 &&
	    (!ls->core->away || (rc = make_carrier(ls, a, &carrier, &details, err)) == 0)) {
		store_begin(s->m->store);
		rc = store_suite_add(s->m->store, &ls->row, ls->core, err);
	}
	if (rc < 0) {
		*ret_details = details ? arena_strdup(a, details) : NULL;
		if (carrier)
			drop_carrier(carrier, err);
		if (ls->dir)
			(void)file_remove_tree(ls->dir, NULL);
		live_suite_free(ls);
		return -1;
	}
	*vec_push(&s->v) = ls;
	snprintf(ls->core->client, sizeof(ls->core->client), "%.*s", STR_ARG(client));
	suite_event(ls, &(struct suite_event){.kind = SUITE_ACCEPTED});
	*ret = ls;
	*ret_new = true;
	return 0;
}

/* It is not stored that it goes on. */
static void end_again(struct live_suite *ls)
{
	ls->m->suites->v.n--;
	live_suite_done(ls);
}

static int go_on_elsewhere(struct live_suite *ls, struct arena *a, const char **ret_details,
			   struct err *err)
{
	struct live_run *carrier = NULL;

	return ls->core->away ? make_carrier(ls, a, &carrier, ret_details, err) : 0;
}

int suites_again(struct suites *s, struct str id, const struct doc *body, struct arena *a,
		 struct live_suite **ret, const char **ret_details, struct err *err)
{
	struct live_suite *ls = suites_find(s, id, err);
	bool failed = doc_bool(body, "failed", false);
	struct suite_event ev = {.kind = SUITE_AGAIN, .failed = failed};

	if (!ls)
		return -1;
	*ret = ls;
	if (!ls->ended) {
		if (suite_goes_on(ls->core))
			return 0;
		return err_set(err, ERR_CONFLICT,
			       "suite %s is %s: 'regatta suite resume %s' once it has ended",
			       ls->row.id, suite_phase_name(ls->core->phase), ls->row.id);
	}
	/* The machine ends with the run that carried the suite: nobody would wait for what is made from here. */
	int rc =
		s->m->own_machine
			? err_set(err, ERR_CONFLICT,
				  "suite %s was carried here: 'regatta suite resume %s' at the "
				  "master that it was submitted to",
				  ls->row.id, ls->row.id)
		: suite_is_done(ls->core)
			? err_set(err, ERR_CONFLICT,
				  "every run of suite %s has succeeded: there is nothing to resume; "
				  "'regatta suite run' starts its file anew",
				  ls->row.id)
			: suite_submission_load(ls, err);

	if (rc == 0)
		rc = suite_credentials_renew(ls, doc_table(body, "credentials"), err);
	if (rc < 0) {
		live_suite_done(ls);
		return -1;
	}
	*vec_push(&s->v) = ls;
	ev.away = carrier_is_possible(ls, a);
	suite_event(ls, &ev);
	if (!ls->in_round) {
		err_set(err, ERR_CONFLICT, "suite %s: there is nothing to resume%s", ls->row.id,
			failed ? "" : "; --failed starts what has failed again");
		end_again(ls);
		return -1;
	}
	if (go_on_elsewhere(ls, a, ret_details, err) < 0) {
		end_again(ls);
		return -1;
	}
	ls->ended = false;
	ls->row.ended_ms = 0;
	store_begin(s->m->store);
	return store_suite_ended(s->m->store, ls->row.no, 0, err);
}

/* ---- after a restart ---- */

void suite_tell_end(struct live_suite *ls, int index, const struct live_run *lr)
{
	struct suite_event ev = {.kind = SUITE_RUN_ENDED,
				 .index = index,
				 .attempt = ls->core->entries[index].attempt,
				 .verdict = lr->core->verdict,
				 .err_kind = lr->core->cause.kind,
				 .micro = lr->row.cost_micro};

	snprintf(ev.text, sizeof(ev.text), "%s",
		 ev.verdict == VERDICT_SUCCEEDED ? "" : lr->core->cause.text);
	suite_event(ls, &ev);
}

/* How the run of an entry stands: bound to it if it goes on, else its end is told. */
static void find_run(struct live_suite *ls, int index)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct suite_event ev = {.kind = SUITE_RUN_ENDED,
				 .index = index,
				 .attempt = ls->core->entries[index].attempt,
				 .verdict = VERDICT_FAILED,
				 .err_kind = ERR_NOT_FOUND,
				 .text = "its run was removed"};
	struct live_run *lr = ls->runs[index]
				      ? live_run_exact(ls->m, ls->runs[index], a, &(struct err){0})
				      : NULL;

	if (!lr) {
		suite_event(ls, &ev);
	} else if (!lr->ended) {
		suite_bind(ls, index, ls->runs[index]);
	} else {
		suite_tell_end(ls, index, lr);
		live_run_done(lr);
	}
}

static void take_up(struct live_suite *ls)
{
	log_info("suite %s is resumed: %s", ls->row.id, suite_phase_name(ls->core->phase));
	for (int i = 0; i < ls->core->n && !ls->core->away; i++)
		if (ls->core->entries[i].state == ENTRY_RUNNING)
			find_run(ls, i);
	suite_event(ls, &(struct suite_event){.kind = SUITE_RESUME});
	mark(ls);
}

struct found_suites {
	VEC(int64_t) nos;
};

static bool collect(void *ctx, const struct suite_row *row)
{
	struct found_suites *f = ctx;

	*vec_push(&f->nos) = row->no;
	return true;
}

int suites_resume(struct suites *s, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct found_suites f = {0};
	int rc = store_suites_each(s->m->store, true, 0, a, collect, &f, err);

	for (size_t i = f.nos.n; i > 0 && rc == 0; i--) {
		struct err why = {0};
		struct live_suite *ls = load(s, f.nos.v[i - 1], &why);

		/* The others are resumed without it. */
		if (!ls) {
			log_error("suite number %lld is not resumed: %s", (long long)f.nos.v[i - 1],
				  why.msg);
			continue;
		}
		/* What runs goes on; what would start is refused, so that it ends. */
		if (suite_submission_load(ls, &why) < 0)
			log_error("suite %s: what was submitted: %s", ls->row.id, why.msg);
		*vec_push(&s->v) = ls;
		take_up(ls);
	}
	vec_release(&f.nos);
	return rc < 0 ? -1 : suite_requests_sweep(s->m, err);
}

struct suites *suites_new(struct master *m)
{
	struct suites *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->by_run = map_new();
	s->timer = loop_timer_new(m->loop, on_timer, s);
	return s;
}

struct suites *suites_free(struct suites *s)
{
	struct str key;
	void *value;

	if (!s)
		return NULL;
	for (size_t i = 0; map_at(s->by_run, &i, &key, &value);)
		free(value);
	map_free(s->by_run);
	for (size_t i = 0; i < s->v.n; i++)
		live_suite_free(s->v.v[i]);
	vec_release(&s->v);
	loop_timer_free(s->timer);
	free(s);
	return NULL;
}
