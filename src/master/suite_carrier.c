#include "master/suite_carrier.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "driver/object_store.h"
#include "driver/results.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "link/layout.h"
#include "master/handover.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/secrets.h"
#include "master/suites.h"
#include "master/upkeep/imports.h"
#include "master/upkeep/suite_files.h"
#include "plan/plan.h"
#include "spec/job.h"
#include "sys/loop.h"

#define MOST_BYTES                                                                                 \
	(900u << 10) /* of a submission: the other master takes requests of up to 1 MiB */
/* Of a resource: one may have the names of all runs, and the longest id of a run in place of each <run>. */
#define MOST_SPEC (256u << 10)
#define MOST_NAME 52 /* bytes of the id of a run in a cluster, whose objects are called so */
#define STATE_MAX (64u << 20)
#define MOST_USD 1e9 /* of an entry */

/* Has the other master no on_exit?  It would not have the results of before. */
static bool is_later(const struct live_suite *ls)
{
	return ls->core->carrier > 1;
}

const char *carrier_id(const struct live_suite *ls, struct arena *a)
{
	return is_later(ls) ? arena_printf(a, "%s-r%d", ls->row.id, ls->core->carrier) : ls->row.id;
}

/* What the run of an entry is called at the other master, where each entry starts at most once. */
static const char *run_id(const struct live_suite *ls, int index, struct arena *a)
{
	return arena_printf(a, "%s-%d", carrier_id(ls, a), index + 1);
}

/* ---- making a carrier ---- */

static const struct doc *submission_of(const struct live_suite *ls, int variant)
{
	const struct doc *of = doc_array(ls->request, "of");

	return doc_array(ls->request, "submissions")->array.v[of->array.v[variant]->i];
}

/* The plan of a run of the variant, as this master would make it. */
static bool plan_variant(const struct live_suite *ls, int variant, struct arena *a,
			 struct plan *ret)
{
	const struct doc *given = submission_of(ls, variant);
	const struct job_rules rules = plan_job_rules();
	struct problems *ps = arena_new_of(a, struct problems);
	struct job *job = arena_new_of(a, struct job);
	struct doc *doc;

	if (suite_apply(&ls->plan, &ls->plan.variants[variant], doc_table(given, "job"), a, &doc,
			&(struct err){0}) < 0 ||
	    !job_load(doc, &rules, a, job, ps))
		return false;
	job->base_dir = ls->row.base_dir;
	return plan_make(job, doc_table(given, "facts"), a, ret, ps);
}

/* The cluster of a variant; "": its machines are in none. */
static struct str server_of(const struct live_suite *ls, int variant)
{
	return doc_str(doc_table(submission_of(ls, variant), "facts"), "server", STR(""));
}

/* One machine is enough if every variant would have the same. */
static bool share_a_machine(const struct live_suite *ls, struct arena *a)
{
	struct plan first, other;

	if (!plan_variant(ls, 0, a, &first) || !plan_same_master(&first, &first, a))
		return false;
	for (int v = 1; v < ls->plan.n; v++) {
		CLEANUP(arena_freep) struct arena *b = arena_new();

		if (!str_eq(server_of(ls, v), server_of(ls, 0)) ||
		    !plan_variant(ls, v, b, &other) || !plan_same_master(&first, &other, b))
			return false;
	}
	return true;
}

static struct doc *copy_without(const struct doc *d, const char *const *keys, size_t n,
				struct arena *a)
{
	struct doc *copy = doc_new(a, DOC_TABLE);

	for (size_t i = 0; d && i < d->table.n; i++) {
		size_t k = 0;

		while (k < n && !str_is(d->table.v[i].key, keys[k]))
			k++;
		if (k == n)
			doc_set(a, copy, d->table.v[i].key, doc_copy(a, d->table.v[i].value));
	}
	return copy;
}

/* A suite file without its on_exit. */
static struct doc *without_on_exit(const struct doc *file, struct arena *a)
{
	static const char *const on_exit[] = {"on_exit"};
	struct doc *copy = doc_copy(a, file);

	doc_set(a, copy, STR("suite"), copy_without(doc_table(file, "suite"), on_exit, 1, a));
	return copy;
}

/* How the entries stand that are not as in the beginning. */
static struct doc *entries_there(const struct live_suite *ls, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (int i = 0; i < ls->core->n; i++) {
		const struct suite_entry *e = &ls->core->entries[i];
		struct doc *d = doc_new(a, DOC_TABLE);

		if (e->state == ENTRY_WAITING && e->attempt == 1 && e->cost_micro == 0)
			continue;
		doc_set(a, d, STR("at"), doc_new_int(a, i));
		doc_set(a, d, STR("state"), doc_new_str(a, str_from(entry_state_name(e->state))));
		doc_set(a, d, STR("attempt"), doc_new_int(a, e->attempt));
		doc_set(a, d, STR("cost_micro"), doc_new_int(a, e->cost_micro));
		if (*e->cause)
			doc_set(a, d, STR("cause"), doc_new_str(a, str_from(e->cause)));
		doc_append(a, list, d);
	}
	return list;
}

/* What the other master gets: everything but the caller's credentials. */
static struct doc *suite_there(const struct live_suite *ls, struct arena *a)
{
	static const char *const own[] = {"submissions", "client_away"}, *const secret[] = {
										 "credentials"};
	struct doc *d = copy_without(ls->request, own, 2, a), *list = doc_new(a, DOC_ARRAY);
	const struct doc *given = doc_array(ls->request, "submissions");
	struct str client = doc_str(ls->request, "client_away", STR(""));

	for (size_t i = 0; i < given->array.n; i++)
		doc_append(a, list, copy_without(given->array.v[i], secret, 1, a));
	doc_set(a, d, STR("submissions"), list);
	if (client.n)
		doc_set(a, d, STR("client"), doc_new_str(a, client));
	if (is_later(ls)) {
		doc_set(a, d, STR("suite"), without_on_exit(doc_table(ls->request, "suite"), a));
		doc_set(a, d, STR("entries"), entries_there(ls, a));
	}
	return d;
}

/* The archives of all submissions, behind those of the first: they are kept and sent with the run. */
static struct doc *all_data(const struct live_suite *ls, struct arena *a)
{
	const struct doc *given = doc_array(ls->request, "submissions");
	const struct doc *own = doc_array(submission_of(ls, 0), "data");
	struct doc *list = own ? doc_copy(a, own) : doc_new(a, DOC_ARRAY);

	for (size_t i = 0; i < given->array.n; i++) {
		const struct doc *data = doc_array(given->array.v[i], "data");
		struct str source = doc_str(given->array.v[i], "source_sha256", STR(""));
		struct doc *entry = doc_new(a, DOC_TABLE), *sums = doc_new(a, DOC_ARRAY);

		for (size_t k = 0; data && k < data->array.n; k++)
			doc_append(a, list, doc_copy(a, data->array.v[k]));
		if (!source.n)
			continue;
		doc_append(a, sums, doc_new_str(a, source));
		doc_set(a, entry, STR("sha256"), sums);
		doc_append(a, list, entry);
	}
	return list;
}

/* The job of the first variant, for what the machine needs; its limits are those of each run, not of the suite. */
static struct doc *job_of_carrier(const struct live_suite *ls, struct arena *a)
{
	static const char *const limits[] = {"max_runtime", "max_cost", "on_finish", "stall"};
	struct doc *job;

	if (suite_apply(&ls->plan, &ls->plan.variants[0], doc_table(submission_of(ls, 0), "job"), a,
			&job, &(struct err){0}) < 0)
		return NULL;
	job = copy_without(job, limits, sizeof(limits) / sizeof(limits[0]), a);
	doc_set(a, job, STR("name"), doc_new_str(a, str_from(ls->plan.name)));
	return job;
}

struct doc *carrier_submission(const struct live_suite *ls, struct arena *a)
{
	const struct doc *first = submission_of(ls, 0);

	struct doc *body = doc_copy(a, first), *facts = doc_copy(a, doc_table(first, "facts"));
	struct doc *job = job_of_carrier(ls, a);

	if (!job)
		return NULL;
	doc_set(a, facts, STR("carries"), doc_new_bool(a, true));
	doc_set(a, facts, STR("runs"), doc_new_int(a, ls->core->n));
	doc_set(a, body, STR("facts"), facts);
	doc_set(a, body, STR("job"), job);
	doc_set(a, body, STR("data"), all_data(ls, a));
	doc_set(a, body, STR("suite"), suite_there(ls, a));
	doc_set(a, body, STR("run"), doc_new_str(a, str_from(carrier_id(ls, a))));
	doc_set(a, body, STR("request_id"),
		doc_new_str(a, str_from(arena_printf(a, "carrier-of-%s", carrier_id(ls, a)))));
	return body;
}

/* With the number of the next carrier: a suite that is resumed has it. */
static size_t longest_id(const struct live_suite *ls, struct arena *a)
{
	return strlen(arena_printf(a, "%s-r%d-%d", ls->row.id, ls->core->carrier + 1, ls->core->n));
}

/* What is made for the machine, and what the runs make, can be said and named. */
static bool fits(const struct live_suite *ls, const struct doc *body, struct arena *a)
{
	const struct job_rules rules = plan_job_rules();
	struct problems *ps = arena_new_of(a, struct problems);
	struct job *job = arena_new_of(a, struct job);
	struct plan p;

	if (strlen(doc_json_text(a, body)) >= MOST_BYTES ||
	    (server_of(ls, 0).n && longest_id(ls, a) > MOST_NAME) ||
	    !job_load(doc_table(body, "job"), &rules, a, job, ps))
		return false;
	job->base_dir = ls->row.base_dir;
	if (!plan_make(job, doc_table(body, "facts"), a, &p, ps))
		return false;
	for (int i = 0; i < p.nresources; i++)
		if (strlen(p.resources[i].spec) > MOST_SPEC)
			return false;
	return true;
}

bool carrier_is_possible(const struct live_suite *ls, struct arena *a)
{
	const struct doc *body = share_a_machine(ls, a) ? carrier_submission(ls, a) : NULL;

	return body && fits(ls, body, a);
}

static int take_entry(struct core_suite *s, const struct doc *d, struct err *err)
{
	int64_t at = doc_int(d, "at", -1), attempt = doc_int(d, "attempt", 0),
		micro = doc_int(d, "cost_micro", -1);
	enum entry_state state = entry_state_named(doc_str(d, "state", STR("")));

	if (at < 0 || at >= s->n || attempt < 1 || attempt > INT_MAX || micro < 0 ||
	    (state != ENTRY_WAITING && (state == ENTRY_STATES || !entry_state_is_final(state))))
		return err_set(err, ERR_INVALID, "'entries': one is not the state of an entry");
	struct suite_entry *e = &s->entries[at];

	e->state = state;
	e->attempt = (int)attempt;
	e->cost_micro = micro;
	snprintf(e->cause, sizeof(e->cause), "%.*s", STR_ARG(doc_str(d, "cause", STR(""))));
	return 0;
}

int carrier_take_entries(struct core_suite *s, const struct doc *list, struct err *err)
{
	for (size_t i = 0; list && i < list->array.n; i++)
		if (take_entry(s, list->array.v[i], err) < 0)
			return -1;
	core_suite_restored(s);
	return 0;
}

/* ---- following it ---- */

/* The id becomes the name of files. */
static bool may_be_run(struct str id)
{
	return path_is_below(id) && id.p[0] != '.' && !memchr(id.p, '/', id.n);
}

static void see_entry(struct live_suite *ls, struct live_run *lr, int index, const struct doc *d)
{
	struct str run = doc_str(d, "run", STR(""));
	int64_t attempt = doc_int(d, "attempt", 1);
	double cost_usd = doc_num(d, "cost_usd", 0);
	bool was_running = ls->core->entries[index].state == ENTRY_RUNNING;
	struct suite_event ev = {
		.kind = SUITE_SEEN,
		.index = index,
		.state = entry_state_named(doc_str(d, "state", STR(""))),
		.attempt = (int)attempt,
		.micro = cost_usd >= 0 && cost_usd < MOST_USD ? llround(cost_usd * 1e6) : -1,
	};

	if (ev.state == ENTRY_STATES || attempt < 1 || attempt > INT_MAX || ev.micro < 0 ||
	    (run.n && !may_be_run(run)))
		return;
	snprintf(ev.text, sizeof(ev.text), "%.*s", STR_ARG(doc_str(d, "cause", STR(""))));
	if (run.n && (!ls->runs[index] || !str_is(run, ls->runs[index]))) {
		CLEANUP(freep) char *id = xstrndup(run.p, run.n);

		suite_set_run(ls, index, id);
	}
	suite_event(ls, &ev);
	/* Commands about a run find the master that has it. */
	if (lr && ls->runs[index] && ev.state == ENTRY_RUNNING && !was_running)
		handover_write_context(lr, ls->runs[index]);
	else if (ls->runs[index] && was_running && ev.state != ENTRY_RUNNING)
		handover_remove_context(ls->m, ls->runs[index]);
}

static void see(struct live_suite *ls, struct live_run *lr, const struct doc *suite)
{
	const struct doc *variants = doc_array(suite, "variants");

	snprintf(ls->there, sizeof(ls->there), "%.*s", STR_ARG(doc_str(suite, "state", STR(""))));
	for (int v = 0; variants && v < ls->plan.n && (size_t)v < variants->array.n; v++) {
		const struct doc *runs = doc_array(variants->array.v[v], "runs");

		for (int r = 0; runs && r < (int)ls->plan.runs.repeats && (size_t)r < runs->array.n;
		     r++)
			see_entry(ls, lr, suite_entry_of(ls, v, r), runs->array.v[r]);
	}
	suite_event(ls, &(struct suite_event){.kind = SUITE_SEEN_END,
					      .closed = doc_int(suite, "exit_code", -1) >= 0});
}

/* The suite that this run carries elsewhere; NULL: none. */
static struct live_suite *suite_away(const struct master *m, const char *run)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct str id = layout_suite_of(str_from(run));
	struct live_suite *ls = suites_active_named(m->suites, arena_str(a, id).p);

	return ls && ls->core->away && strcmp(carrier_id(ls, a), run) == 0 ? ls : NULL;
}

void carrier_seen(struct live_run *lr, const struct doc *suite)
{
	struct live_suite *ls = suite_away(lr->m, lr->row.id);

	if (ls)
		see(ls, lr, suite);
}

void carrier_moved(struct live_run *lr)
{
	const struct live_suite *ls = suite_away(lr->m, lr->row.id);

	for (int i = 0; ls && i < ls->core->n; i++)
		if (ls->runs[i] && ls->core->entries[i].state == ENTRY_RUNNING)
			handover_write_context(lr, ls->runs[i]);
}

/* ---- taking it back ---- */

/* The runs of a suite whose carrier has ended are taken in one after the other; then it is back. */
struct coming_back {
	struct master *m;
	struct arena *a;
	const char *suite, *carrier, *url, *credentials;
	int next;
	bool kept;    /* results of its runs were fetched, as far as they are not at the URL */
	bool ran;     /* the suite was there */
	bool guessed; /* the run that is being taken in: it was not seen */
};

static void take_next(struct coming_back *b);

static void end_coming_back(struct coming_back *b)
{
	struct suite_event ev = {.kind = SUITE_BACK};
	struct live_suite *ls = suite_away(b->m, b->carrier);
	struct live_run *lr = live_run_exact(b->m, b->carrier, b->a, &(struct err){0});

	if (lr) {
		ev.verdict = lr->core->verdict;
		ev.err_kind = lr->core->cause.kind;
		snprintf(ev.text, sizeof(ev.text), "%s", lr->core->cause.text);
		live_run_done(lr);
	}
	for (int i = 0; ls && i < ls->core->n; i++)
		if (ls->runs[i])
			handover_remove_context(b->m, ls->runs[i]);
	if (ls)
		suite_event(ls, &ev);
	arena_free(b->a);
	free(b);
}

/* True: this try is over. */
static bool is_put_off(struct coming_back *b, const struct err *err)
{
	struct live_suite *ls = suite_away(b->m, b->carrier);

	if (ls)
		suite_event(ls,
			    &(struct suite_event){.kind = SUITE_NOT_BACK, .err_kind = err->kind});
	if (ls && suite_returns_later(ls->core))
		ls->returns = false;
	else if (err->kind != ERR_CANCELLED) /* else the next master goes on */
		return false;
	log_info("suite %s: its results are not all here yet: %s", b->suite, err->msg);
	arena_free(b->a);
	free(b);
	return true;
}

/* Those of a lost master may have started since it was last seen.  Others were made before this carrier. */
static const char *run_to_take(struct coming_back *b, const struct live_suite *ls, int index)
{
	const struct suite_entry *e = &ls->core->entries[index];
	const char *run = ls->runs[index];

	if (run && !str_is(layout_carrier_of(str_from(run)), b->carrier))
		run = NULL;
	b->guessed = b->ran && !run && !ls->core->closed_there && !entry_state_is_final(e->state);
	return b->guessed ? run_id(ls, index, b->a) : run;
}

/* Its results tell the end of a run that the other master was not seen to have ended. */
static void take_end(struct coming_back *b, int index)
{
	struct live_suite *ls = suite_away(b->m, b->carrier);
	const char *run = ls ? run_to_take(b, ls, index) : NULL;
	struct live_run *lr = run ? live_run_exact(b->m, run, b->a, &(struct err){0}) : NULL;

	if (!lr)
		return;
	if (lr->ended && !entry_state_is_final(ls->core->entries[index].state)) {
		suite_set_run(ls, index, run);
		suite_tell_end(ls, index, lr);
	}
	live_run_done(lr);
}

static void taken(void *ctx, const struct err *err)
{
	struct coming_back *b = ctx;

	if (is_put_off(b, err))
		return;
	if (err->kind == ERR_NONE)
		take_end(b, b->next - 1);
	else if (!b->guessed || err->kind != ERR_NOT_FOUND)
		log_warn("suite %s: a run was not taken in: %s", b->suite, err->msg);
	take_next(b);
}

static bool was_fetched(const struct coming_back *b, const char *run)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" LAYOUT_FETCHED "/" RESULTS_INDEX,
			       b->m->home, run);

	return file_exists(path);
}

static void take(struct coming_back *b, const char *run, import_done_fn done)
{
	const struct import_source from = {
		.run = run,
		.url = was_fetched(b, run) ? NULL : b->url,
		.credentials = b->credentials,
	};

	import_start(b->m, &from, done, b);
}

static void take_next(struct coming_back *b)
{
	const struct live_suite *ls = suite_away(b->m, b->carrier);
	const char *run = NULL;

	while (ls && b->next < ls->core->n && !run)
		run = run_to_take(b, ls, b->next++);
	if (!run) {
		end_coming_back(b);
		return;
	}
	take(b, run, taken);
}

/* The state that the other master has left; NULL: none. */
static struct doc *read_state(const struct master *m, const char *carrier, struct arena *a)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" SUITE_STATE_FILE, m->home, carrier);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *d;

	buf_init(&text, STATE_MAX);
	if (file_read(path, &text, &(struct err){0}) < 0 ||
	    json_parse_limited(arena_str(a, buf_str(&text)), STATE_MAX, PLAN_MAX_VALUES, a, &d,
			       NULL) < 0)
		return NULL;
	return d;
}

/* The state that the carrier has brought goes before what was told. */
static void take_runs(struct coming_back *b)
{
	const struct doc *state = read_state(b->m, b->carrier, b->a);
	struct live_suite *ls = suite_away(b->m, b->carrier);

	if (ls && state)
		see(ls, NULL, state);
	if (b->url || b->kept)
		take_next(b);
	else
		end_coming_back(b);
}

static void taken_carrier(void *ctx, const struct err *err)
{
	struct coming_back *b = ctx;

	if (!is_put_off(b, err))
		take_runs(b);
}

void carrier_came_back(struct master *m, const char *run)
{
	struct live_suite *ls = suite_away(m, run);
	struct coming_back *b;

	if (!ls || ls->returns || !m->pools)
		return;
	b = xcalloc(1, sizeof(*b));
	ls->returns = true;
	*b = (struct coming_back){.m = m, .a = arena_new()};
	b->suite = arena_strdup(b->a, ls->row.id);
	b->carrier = arena_strdup(b->a, run);
	struct live_run *lr = live_run_exact(m, run, b->a, &(struct err){0});
	const struct doc *secret =
		ls->request ? doc_table(submission_of(ls, 0), "credentials") : NULL;

	b->credentials = secret ? doc_json_text(b->a, secret) : NULL;
	bool owes = lr && handover_owes_results(lr);

	if (lr) {
		b->ran = lr->core->phase_at_ms[RUN_RUNNING] > 0;

		const char *url = plan_results(&lr->plan, b->a).url;

		b->url = url ? arena_strdup(b->a, url) : NULL;
		b->kept = plan_keeps_results(&lr->plan);
		live_run_done(lr);
	}
	if (owes && (b->url || was_fetched(b, b->carrier)))
		take(b, b->carrier, taken_carrier);
	else
		take_runs(b);
}

/* ---- on the machine ---- */

struct live_run *carrier_of(const struct master *m, const char *suite)
{
	struct live_run *lr = map_get(m->runs, str_from(suite));

	return lr && lr->plan.carries && !lr->plan.hands_over && !lr->ended ? lr : NULL;
}

int carrier_take(struct live_run *lr, const struct doc *body, struct arena *a,
		 const char **ret_details, struct err *err)
{
	const struct doc *suite = doc_table(body, "suite");
	struct live_suite *ls;
	bool is_new;

	if (!suite)
		return err_set(err, ERR_INVALID, "'suite' must be a table");
	return suites_submit_as(lr->m->suites, suite, lr->row.id, a, &ls, &is_new, ret_details,
				err);
}

bool carrier_run_id_ok(const struct master *m, struct str id)
{
	struct str of = layout_carrier_of(id);
	CLEANUP(freep) char *suite = xstrndup(of.n ? of.p : "", of.n);

	return of.n && carrier_of(m, suite) != NULL;
}

/* The machine is paid by the carrier alone: without age_ms (plan_adopt()). */
static struct doc *adopted(const struct live_run *carrier, struct arena *a)
{
	static const char *const age[] = {"age_ms"};
	const struct doc *given = doc_array(carrier->facts, "adopted");
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (size_t i = 0; given && i < given->array.n; i++)
		doc_append(a, list, copy_without(given->array.v[i], age, 1, a));
	return list;
}

/* Those for stores, which the carrier has for all. */
static void add_credentials(const struct live_run *carrier, struct doc *body, struct arena *a)
{
	const struct doc *stores = run_store_credentials(carrier);
	struct doc *given = doc_new(a, DOC_TABLE);

	if (!stores)
		return;
	doc_set(a, given, STR(OBJECT_CREDENTIALS), doc_copy(a, stores));
	doc_set(a, body, STR("credentials"), given);
}

void carrier_adapt(const struct live_suite *ls, int index, struct arena *a, struct doc *body)
{
	static const char *const at[] = {"at"};
	const struct live_run *carrier = carrier_of(ls->m, ls->row.id);

	if (!carrier)
		return;
	struct doc *facts = copy_without(doc_table(body, "facts"), at, 1, a);
	doc_set(a, facts, STR("carried"), doc_new_bool(a, true));
	doc_set(a, facts, STR("adopted"), adopted(carrier, a));
	doc_set(a, body, STR("facts"), facts);
	add_credentials(carrier, body, a);
	doc_set(a, body, STR("run"), doc_new_str(a, str_from(run_id(ls, index, a))));
}

void carrier_cancel_suite(struct live_run *lr, bool hurry)
{
	struct live_suite *ls = suites_active_named(lr->m->suites, lr->row.id);
	struct suite_event ev = {.kind = SUITE_CANCEL, .hurry = hurry};

	if (!ls) {
		carrier_suite_ended(lr->m, lr->row.id);
		return;
	}
	snprintf(ev.text, sizeof(ev.text), "cancelled");
	suite_event(ls, &ev);
}

static int write_state(const struct live_run *lr, const struct live_suite *ls, struct err *err)
{
	CLEANUP(freep) char *path = path_join(lr->dir, SUITE_STATE_FILE);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, STATE_MAX);
	suite_to_json(ls, false, &text);
	buf_addc(&text, '\n');
	return file_write_atomic(path, buf_str(&text), 0600, true, err);
}

static void end_carrier(struct live_run *lr, const struct core_suite *s)
{
	struct event ev = {.kind = EV_CARRIED, .verdict = VERDICT_SUCCEEDED};

	if (!suite_phase_is_final(s->phase)) {
		ev.verdict = VERDICT_FAILED;
		ev.err_kind = ERR_IO;
		snprintf(ev.text, sizeof(ev.text),
			 "its suite cannot go on: the log of its master says why");
	} else if (s->phase == SUITE_CANCELLED) {
		ev.verdict = VERDICT_CANCELLED;
		ev.err_kind = ERR_CANCELLED;
		snprintf(ev.text, sizeof(ev.text), "%s", *s->cause ? s->cause : "cancelled");
	} else if (s->phase == SUITE_FAILED) {
		ev.verdict = VERDICT_FAILED;
		ev.err_kind = s->too_dear ? s->kind : ERR_NONE;
		if (s->too_dear)
			snprintf(ev.text, sizeof(ev.text), "%s", s->cause);
		else
			snprintf(ev.text, sizeof(ev.text), "%d of %d runs have not succeeded",
				 s->n - s->count[ENTRY_SUCCEEDED], s->n);
	}
	run_event(lr, &ev);
}

/* Cancels them, if asked to. */
static bool has_active_runs(const struct master *m, const struct live_run *carrier)
{
	struct event ev = {.kind = EV_CANCEL, .hurry = carrier->core->hurry};
	bool any = false;
	struct str id;
	void *value;

	snprintf(ev.text, sizeof(ev.text), "its suite was stopped");
	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		struct live_run *lr = value;

		if (lr->ended || !str_is(layout_carrier_of(id), carrier->row.id))
			continue;
		any = true;
		if (carrier->core->cancel_asked)
			run_event(lr, &ev);
	}
	return any;
}

void carrier_suite_ended(struct master *m, const char *suite)
{
	struct live_run *lr = carrier_of(m, suite);
	struct err err = {0};

	/* Whoever made the machine ends it with the carrier, and takes all that the runs made for gone. */
	if (!lr || has_active_runs(m, lr))
		return;
	struct live_suite *ls = suites_find(m->suites, str_from(suite), &err);

	if (!ls) {
		struct event ev = {
			.kind = EV_CARRIED, .verdict = VERDICT_FAILED, .err_kind = err.kind};

		snprintf(ev.text, sizeof(ev.text), "its suite cannot be read: %.200s", err.msg);
		run_event(lr, &ev);
		return;
	}
	if (write_state(lr, ls, &err) < 0)
		log_warn("suite %s: %s", suite, err.msg);
	end_carrier(lr, ls->core);
	live_suite_done(ls);
}

/* ---- when a master starts ---- */

static void check_carrier(struct master *m, const struct live_run *lr)
{
	if (lr->plan.carries && !lr->plan.hands_over && !lr->ended &&
	    !suites_active_named(m->suites, lr->row.id))
		carrier_suite_ended(m, lr->row.id);
}

static void check_carriers(void *ctx)
{
	struct master *m = ctx;
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
		check_carrier(m, value);
}

void carrier_run_ended(const struct live_run *lr)
{
	struct str of = layout_carrier_of(str_from(lr->row.id));
	CLEANUP(freep) char *suite = xstrndup(of.n ? of.p : "", of.n);

	if (of.n && carrier_of(lr->m, suite) && !suites_active_named(lr->m->suites, suite))
		loop_soon(lr->m->loop, check_carriers, lr->m);
}

void carriers_check(struct master *m)
{
	check_carriers(m);
	for (size_t i = 0; i < suites_active(m->suites); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		const struct live_suite *ls = suites_at(m->suites, i);
		const char *run = carrier_id(ls, a);

		if (ls->core->away && !map_get(m->runs, str_from(run)) && !import_goes_on(m, run))
			carrier_came_back(m, run);
	}
}
