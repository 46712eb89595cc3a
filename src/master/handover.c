#include "master/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "driver/driver.h"
#include "driver/master_way.h"
#include "driver/object_store.h"
#include "driver/results.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/clock.h"
#include "master/data_blobs.h"
#include "master/effects.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/run_json.h"
#include "master/runs.h"
#include "master/secrets.h"
#include "master/suite_carrier.h"
#include "master/upkeep/imports.h"
#include "net/http_client.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define SUBMISSION "submission" /* among the secrets of the run */
#define THREADS 4
#define TASK_MS (30 * 60 * 1000) /* large archives take their time */
#define DIAL_MS 5000
#define CALL_MS 30000
#define MAX_ANSWER (64u << 20)
#define MAX_BODY (8u << 20)
#define NEWEST 100 /* ended runs that a master looks at when it starts */

/* One question, on a worker, which uses only this. */
struct handover_task {
	struct live_run *lr;
	struct effect fx;
	struct arena *a;
	char token[65]; /* of the row */
	struct driver_row row;
	const struct driver *driver;
	struct driver_master at; /* url "": not known yet */
	const char *run, *blobs_dir;
	const char *body; /* of the submission; only to hand over */
	VEC(const char *) blobs;
	const char *results,
		*credentials; /* URL of the run's results; NULL: its master keeps them */
	const char *runs_dir; /* of this home */
	const char *fetched;  /* the directory for them */
	bool kept;	      /* its master keeps those that it cannot copy */
	int lost;	      /* runs of a suite whose results are not there */
	char not_copied[160]; /* why they were fetched from there; "": they were not */
	struct event ev;      /* the answer */
	char state[32];	      /* of the run there */
	const char *counts;   /* of its nodes, JSON; NULL: not told */
	double cost_usd;
	bool carries;
	struct doc *suite; /* of a carrier: as the other master shows it; NULL: not told */
};

/* ---- what is handed over ---- */

void handover_keep(struct live_run *lr, const struct doc *submission)
{
	static const char *const keys[] = {"job",  "client_env",    "base_dir",
					   "path", "source_sha256", "data",
					   "tags", "source",	    "suite"};
	struct doc *kept = doc_new(lr->arena, DOC_TABLE);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct doc *d = doc_get(submission, keys[i]);

		if (d)
			doc_set(lr->arena, kept, str_from(keys[i]), doc_copy(lr->arena, d));
	}
	if (!lr->secrets)
		lr->secrets = doc_new(lr->arena, DOC_TABLE);
	doc_set(lr->arena, lr->secrets, STR(SUBMISSION), kept);
}

/* What the other master need not make. */
static struct doc *adopted(const struct live_run *lr, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);
	int64_t now = master_now(lr->m);

	for (int i = 0; i < lr->plan.nresources; i++) {
		const struct core_resource *res = &lr->core->resources[i];
		struct doc *d = doc_new(a, DOC_TABLE);

		doc_set(a, d, STR("name"), doc_new_str(a, str_from(lr->plan.resources[i].name)));
		doc_set(a, d, STR("id"), doc_new_str(a, str_from(res->id)));
		doc_set(a, d, STR("age_ms"),
			doc_new_int(a, res->paid_from_ms ? now - res->paid_from_ms : 0));
		doc_append(a, list, d);
	}
	return list;
}

/* The facts as the other master needs them: it is there, and so is what the run has made. */
static struct doc *facts_there(const struct live_run *lr, struct arena *a)
{
	struct doc *facts = doc_new(a, DOC_TABLE);

	for (size_t i = 0; lr->facts && i < lr->facts->table.n; i++) {
		const struct doc_entry *e = &lr->facts->table.v[i];

		if (!str_is(e->key, "at"))
			doc_set(a, facts, e->key, e->value);
	}
	doc_set(a, facts, STR("adopted"), adopted(lr, a));
	return facts;
}

/* The other master asks the provider as its machine's own account.  What it needs besides are the credentials for the
 * stores of the run, where those are not the provider's; NULL: there are none. */
static struct doc *credentials_there(const struct live_run *lr, struct arena *a)
{
	const struct doc *stores = run_store_credentials(lr);

	if (!stores)
		return NULL;
	struct doc *given = doc_new(a, DOC_TABLE), *copy = doc_copy(a, stores);

	object_credentials_carry(copy, a);
	doc_set(a, given, STR(OBJECT_CREDENTIALS), copy);
	return given;
}

/* The same in every try: the other master knows it by its request id. */
static const char *make_body(const struct live_run *lr, struct arena *a)
{
	const struct doc *kept = doc_table(lr->secrets, SUBMISSION);
	struct doc *body = doc_new(a, DOC_TABLE), *credentials = credentials_there(lr, a);

	for (size_t i = 0; kept && i < kept->table.n; i++)
		doc_set(a, body, kept->table.v[i].key, kept->table.v[i].value);
	doc_set(a, body, STR("request_id"), doc_new_str(a, str_from(lr->row.request_id)));
	doc_set(a, body, STR("run"), doc_new_str(a, str_from(lr->row.id)));
	doc_set(a, body, STR("facts"), facts_there(lr, a));
	if (credentials)
		doc_set(a, body, STR("credentials"), credentials);
	return doc_json_text(a, body);
}

static int add_blob(void *ctx, const char *sha256)
{
	struct handover_task *t = ctx;

	*vec_push(&t->blobs) = arena_strdup(t->a, sha256);
	return 0;
}

/* ---- on the worker: speaking to the other master ---- */

static void answer(struct handover_task *t, enum outcome outcome, const struct err *why)
{
	t->ev.outcome = outcome;
	t->ev.err_kind = why ? why->kind : ERR_NONE;
	snprintf(t->ev.text, sizeof(t->ev.text), "%.255s", why ? why->msg : "");
}

/* Not reached: nothing was asked. */
static void not_reached(struct handover_task *t, struct err *why)
{
	if (why->kind == ERR_CANCELLED || why->kind == ERR_PROTOCOL || why->kind == ERR_IO)
		why->kind = ERR_UNAVAILABLE;
	t->at.url[0] = '\0';
	answer(t, OUTCOME_REFUSED, why);
}

static int dial(struct handover_task *t, const struct deadline *d, struct http_client **ret,
		struct err *err)
{
	const struct deadline soon = deadline_within(d, DIAL_MS);

	t->row.deadline = d;
	if (!t->at.url[0] && t->driver->reach(&t->row, &t->at) < 0) {
		*err = t->row.err;
		return -1;
	}
	return master_way_dial(&t->at, t->credentials, &soon, ret, err);
}

static enum err_kind kind_of_status(int status)
{
	switch (status) {
	case 401:
	case 403:
		return ERR_DENIED;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return ERR_CONFLICT;
	case 429:
		return ERR_THROTTLED;
	case 507:
		return ERR_CAPACITY;
	default:
		return status < 500 ? ERR_INVALID : ERR_UNAVAILABLE;
	}
}

/* An answer of a gateway before the other master, which has not got the call, or (-1) may have got it. */
static int refused_before(const struct doc *said, int status, struct err *err)
{
	bool passes_on = status != 401 && status != 403;

	err_set(err, passes_on ? ERR_UNAVAILABLE : ERR_DENIED, "%.*s (HTTP %d)",
		STR_ARG(doc_str(said, "message", STR("it is not reached"))), status);
	return status < 500 || status == 503 ? -2 : -1;
}

/* Another status than 2xx as an error, with the words of the other master.  -2: it has answered. */
static int refused(struct handover_task *t, const struct http_answer *ans, struct err *err)
{
	struct doc *d = NULL;

	if (json_parse(buf_str(&ans->body), t->a, &d, NULL) < 0)
		d = NULL;
	if (master_way_is(t->at.url) && ans->body.n > 0 && !doc_table(d, "error"))
		return refused_before(d, ans->status, err);
	struct str said = doc_str(doc_table(d, "error"), "message", STR(""));

	err_set(err, kind_of_status(ans->status), "%.*s (HTTP %d)", STR_ARG(said), ans->status);
	return -2;
}

static int call(struct handover_task *t, struct http_client *c, const char *method,
		const char *path, struct str body, struct buf *ret, struct err *err)
{
	struct http_answer ans;
	int rc;

	http_answer_init(&ans, MAX_ANSWER);
	rc = http_call(c, method, path, body, body.n ? "application/json" : NULL, CALL_MS, &ans,
		       err);
	if (rc == 0 && ans.status / 100 != 2)
		rc = refused(t, &ans, err);
	else if (rc == 0 && ret)
		buf_addstr(ret, buf_str(&ans.body));
	http_answer_release(&ans);
	return rc;
}

static int send_blob(struct handover_task *t, struct http_client *c, const char *sha256,
		     const struct deadline *d, struct err *err)
{
	CLEANUP(freep) char *file = path_join(t->blobs_dir, sha256);
	CLEANUP(close_fdp) int fd = open(file, O_RDONLY | O_CLOEXEC);
	char path[96];
	struct http_answer ans;
	struct stat st;
	int rc;

	snprintf(path, sizeof(path), "/api/v1/blobs/%.64s", sha256);
	if (call(t, c, "HEAD", path, STR(""), NULL, err) == 0)
		return 0;
	if (err->kind == ERR_DENIED) /* the answer to a HEAD has no words */
		(void)call(t, c, "GET", path, STR(""), NULL, err);
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_INVALID, "an archive of the run is not here any more");
	http_answer_init(&ans, MAX_BODY);
	rc = http_upload(c, "PUT", path, fd, (uint64_t)st.st_size,
			 (int)(deadline_left_ms(d) < TASK_MS ? deadline_left_ms(d) : TASK_MS), &ans,
			 err);
	if (rc == 0 && ans.status / 100 != 2)
		rc = refused(t, &ans, err);
	http_answer_release(&ans);
	return rc;
}

static void offer(struct handover_task *t, const struct deadline *d)
{
	struct http_client *c = NULL;
	struct err err = {0};
	int rc = dial(t, d, &c, &err);

	for (size_t i = 0; i < t->blobs.n && rc == 0; i++)
		rc = send_blob(t, c, t->blobs.v[i], d, &err);
	if (rc < 0) {
		not_reached(t, &err);
		http_client_free(c);
		return;
	}
	rc = call(t, c, "POST", "/api/v1/runs", str_from(t->body), NULL, &err);
	http_client_free(c);
	if (rc == 0) {
		/* Without it the run goes on, but is not found from other machines. */
		if (t->driver->publish)
			(void)t->driver->publish(&t->row, &t->at);
		answer(t, OUTCOME_DONE, NULL);
	} else if (rc == -2) {
		/* An archive was removed between the look and the offer. */
		if (err.kind == ERR_NOT_FOUND)
			err.kind = ERR_UNAVAILABLE;
		answer(t, OUTCOME_REFUSED, &err);
	} else {
		answer(t, OUTCOME_UNSURE, &err);
	}
}

static enum verdict verdict_of(struct str name)
{
	for (int v = VERDICT_SUCCEEDED; v <= VERDICT_CANCELLED; v++)
		if (str_is(name, verdict_name((enum verdict)v)))
			return (enum verdict)v;
	return VERDICT_NONE;
}

static enum err_kind kind_of(struct str name)
{
	for (int k = 0; k < ERR_KINDS; k++)
		if (name.n && str_is(name, err_kind_name((enum err_kind)k)))
			return (enum err_kind)k;
	return ERR_NONE;
}

/* What the run waits for there: the first entry, or the first of this kind; NULL: nothing. */
static const struct doc *first_wait(const struct doc *run, const char *kind)
{
	const struct doc *list = doc_array(run, "waiting");

	for (size_t i = 0; list && i < list->array.n; i++)
		if (!kind || str_is(doc_str(list->array.v[i], "kind", STR("")), kind))
			return list->array.v[i];
	return NULL;
}

static void take_wait(struct handover_task *t, const struct doc *wait)
{
	if (!wait)
		return;
	t->ev.err_kind = kind_of(doc_str(wait, "why_kind", STR("")));
	snprintf(t->ev.text, sizeof(t->ev.text), "%.*s %.*s %.*s: %.*s",
		 STR_ARG(doc_str(wait, "kind", STR(""))), STR_ARG(doc_str(wait, "name", STR(""))),
		 STR_ARG(doc_str(wait, "state", STR(""))), STR_ARG(doc_str(wait, "why", STR(""))));
}

/* The run as the other master shows it, or as its results have it. */
static int read_state(struct handover_task *t, struct str text, struct err *err)
{
	struct doc *run;

	if (json_parse_limited(text, MAX_ANSWER, DOC_MAX_NODES, t->a, &run, err) < 0)
		return err_wrap(err, "the state of the run");
	struct str cause = doc_str(run, "cause", STR(""));

	snprintf(t->state, sizeof(t->state), "%.*s", STR_ARG(doc_str(run, "state", STR(""))));
	answer(t, OUTCOME_DONE, NULL);
	if (doc_table(run, "counts"))
		t->counts = doc_json_text(t->a, doc_table(run, "counts"));
	t->cost_usd = doc_num(run, "cost_usd", 0);
	if (doc_int(run, "ended_ms", 0) <= 0) {
		take_wait(t, first_wait(run, NULL));
		return 0;
	}
	t->ev.verdict = verdict_of(doc_str(run, "verdict", STR("")));
	t->ev.err_kind = kind_of(doc_str(run, "cause_kind", STR("")));
	snprintf(t->ev.text, sizeof(t->ev.text), "%.*s", STR_ARG(cause));
	return 0;
}

static int parse_suite(struct handover_task *t, const struct buf *text, struct err *err)
{
	if (json_parse_limited(arena_str(t->a, buf_str(text)), MAX_ANSWER, PLAN_MAX_VALUES, t->a,
			       &t->suite, err) == 0)
		return 0;
	t->suite = NULL;
	return -1;
}

static int ask_suite(struct handover_task *t, struct http_client *c, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	char path[160];

	buf_init(&text, MAX_ANSWER);
	snprintf(path, sizeof(path), "/api/v1/suites/%.100s", t->run);
	int rc = call(t, c, "GET", path, STR(""), &text, err);

	return rc == 0 ? parse_suite(t, &text, err) : rc;
}

static int ask_state(struct handover_task *t, struct http_client *c, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	char path[160];
	int rc = 0;

	buf_init(&text, MAX_ANSWER);
	if (t->fx.cancel) {
		snprintf(path, sizeof(path), "/api/v1/runs/%.100s/cancel", t->run);
		rc = call(t, c, "POST", path,
			  t->fx.hurry ? STR("{\"hurry\":true}") : STR("{\"hurry\":false}"), NULL,
			  err);
	}
	/* The suite first: when its carrier has ended, this was its end.  Without an answer it is asked the next time. */
	if (rc == 0 && t->carries)
		(void)ask_suite(t, c, &(struct err){0});
	snprintf(path, sizeof(path), "/api/v1/runs/%.100s", t->run);
	if (rc == 0)
		rc = call(t, c, "GET", path, STR(""), &text, err);
	return rc == 0 ? read_state(t, buf_str(&text), err) : rc;
}

/* A text of results that were fetched; NULL: only whether they were. */
static int read_fetched(const struct handover_task *t, const char *name, struct buf *out,
			struct err *err)
{
	CLEANUP(freep) char *index = path_join(t->fetched, RESULTS_INDEX);
	CLEANUP(freep) char *path = path_join(t->fetched, name ? name : RESULTS_INDEX);

	if (!file_exists(index))
		return err_set(err, ERR_NOT_FOUND, "its results were not fetched");
	return name ? file_read(path, out, err) : 0;
}

/* A text of the run's results, if they are complete. */
static int read_result(struct handover_task *t, const char *name, const struct deadline *d,
		       struct buf *out, struct err *err)
{
	if (!t->results || read_fetched(t, NULL, NULL, err) == 0)
		return read_fetched(t, name, out, err);
	const struct object_access who = {.credentials = t->credentials, .own = true};
	CLEANUP(object_store_freep) struct object_store *st = NULL;
	struct object index;

	if (object_store_open(t->results, &who, d, &st, err) < 0 ||
	    object_head(st, RESULTS_INDEX, d, &index, err) < 0)
		return -1;
	return name ? object_get_text(st, name, out, d, err) : 0;
}

static void follow_results(struct handover_task *t, const struct deadline *d)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct err err = {0};

	buf_init(&text, MAX_ANSWER);
	if (read_result(t, "summary.json", d, &text, &err) < 0)
		answer(t, err.kind == ERR_NOT_FOUND ? OUTCOME_ABSENT : OUTCOME_UNSURE, &err);
	else if (read_state(t, buf_str(&text), &err) < 0)
		answer(t, OUTCOME_UNSURE, &err);
}

static void follow(struct handover_task *t, const struct deadline *d)
{
	struct http_client *c = NULL;
	struct err err = {0};

	if (dial(t, d, &c, &err) < 0) {
		not_reached(t, &err);
		return;
	}
	int rc = ask_state(t, c, &err);

	http_client_free(c);
	if (rc < 0)
		answer(t, rc == -2 && err.kind == ERR_NOT_FOUND ? OUTCOME_ABSENT : OUTCOME_UNSURE,
		       &err);
}

/* For results: a way there that is not found is no answer of the other master. */
static int dial_for_results(struct handover_task *t, const struct deadline *d,
			    struct http_client **ret, struct err *err)
{
	int rc = dial(t, d, ret, err);

	if (rc < 0 && err->kind == ERR_NOT_FOUND)
		err->kind = ERR_UNAVAILABLE;
	return rc;
}

/* The results are not in the store: what does the other master, which makes the copy, say of it? */
static int ask_for_copy(struct handover_task *t, const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct http_client *c = NULL;
	struct doc *run;
	char path[160];

	buf_init(&text, MAX_ANSWER);
	snprintf(path, sizeof(path), "/api/v1/runs/%.100s", t->run);
	if (dial_for_results(t, d, &c, err) < 0)
		return -1;
	int rc = call(t, c, "GET", path, STR(""), &text, err);

	http_client_free(c);
	if (rc < 0 ||
	    json_parse_limited(buf_str(&text), MAX_ANSWER, DOC_MAX_NODES, t->a, &run, err) < 0)
		return -1;
	const struct doc *wait = first_wait(run, WAIT_RESULTS);
	bool given_up = str_is(doc_str(wait, "state", STR("")), WAIT_GIVEN_UP);

	answer(t, given_up ? OUTCOME_REFUSED : OUTCOME_HELD, NULL);
	t->ev.err_kind = wait ? kind_of(doc_str(wait, "why_kind", STR(""))) : ERR_UNAVAILABLE;
	snprintf(t->ev.text, sizeof(t->ev.text), "%.*s",
		 STR_ARG(doc_str(wait, "why", STR("its results are being copied"))));
	return 0;
}

/* Fetches the results from the master that keeps them. */
static int fetch_results(struct handover_task *t, const struct deadline *d, struct err *err)
{
	struct http_client *c = NULL;
	struct results_sum sum;

	if (dial_for_results(t, d, &c, err) < 0)
		return -1;
	int rc = results_fetch(c, t->run, t->fetched, d, &sum, err);

	http_client_free(c);
	return rc;
}

/* Of results that the other master keeps.  One that cannot be asked may be gone: its machine is looked at. */
static void await_fetched(struct handover_task *t, const struct deadline *d)
{
	struct err err = {0}, there = {0};

	if (read_fetched(t, NULL, NULL, &err) == 0 ||
	    (!t->fx.gone && fetch_results(t, d, &err) == 0))
		answer(t, OUTCOME_DONE, NULL);
	else if (t->fx.gone || err.kind != ERR_NOT_FOUND || ask_for_copy(t, d, &there) < 0)
		answer(t, OUTCOME_ABSENT, there.kind != ERR_NONE ? &there : &err);
}

/* The store has answered, and this master will not get to read the results.  The other one knows whether it
 * could write them. */
static bool is_refused(enum err_kind kind)
{
	return kind == ERR_DENIED || kind == ERR_INVALID;
}

/* The other master has given up the copy, and keeps the results. */
static void fetch_instead(struct handover_task *t, const struct deadline *d)
{
	char why[sizeof(t->not_copied)];

	snprintf(why, sizeof(why), "%.159s", t->ev.text);
	await_fetched(t, d);
	if (t->ev.outcome == OUTCOME_DONE)
		memcpy(t->not_copied, why, sizeof(why));
}

static void await_one(struct handover_task *t, const struct deadline *d)
{
	struct err err = {0}, there = {0};

	if (!t->results) {
		await_fetched(t, d);
		return;
	}
	if (read_result(t, NULL, d, NULL, &err) == 0)
		answer(t, OUTCOME_DONE, NULL);
	else if (err.kind == ERR_INVALID && t->fx.gone)
		answer(t, OUTCOME_REFUSED,
		       &err); /* of a bucket elsewhere: it will not be another one */
	else if (err.kind != ERR_NOT_FOUND && (t->fx.gone || !is_refused(err.kind)))
		answer(t, OUTCOME_UNSURE, &err);
	else if (t->fx.gone || ask_for_copy(t, d, &there) < 0)
		answer(t, OUTCOME_ABSENT, t->fx.gone ? &err : &there);
	else if (t->ev.outcome == OUTCOME_REFUSED && t->kept)
		fetch_instead(t, d);
}

/* The same of a run of the suite.  False: not yet. */
static bool await_entry(struct handover_task *t, const char *run, const struct deadline *d)
{
	struct handover_task one = *t;

	one.run = run;
	one.results = t->results ? arena_printf(t->a, "%.*s%s/",
						(int)(strlen(t->results) - strlen(t->run) - 1),
						t->results, run)
				 : NULL;
	one.fetched = arena_printf(t->a, "%s/%s/" LAYOUT_FETCHED, t->runs_dir, run);
	one.not_copied[0] = '\0';
	await_one(&one, d);
	t->at = one.at;
	if (one.not_copied[0])
		memcpy(t->not_copied, one.not_copied, sizeof(one.not_copied));
	if (one.ev.outcome == OUTCOME_DONE)
		return true;
	/* What it has given up, or does not know, will never be there. */
	if (one.ev.outcome == OUTCOME_REFUSED ||
	    (one.ev.outcome == OUTCOME_ABSENT && one.ev.err_kind == ERR_NOT_FOUND)) {
		t->lost++;
		return true;
	}
	t->ev = one.ev;
	return false;
}

/* All runs of the variant that this carrier has started. */
static bool await_variant(struct handover_task *t, const struct doc *variant,
			  const struct deadline *d)
{
	const struct doc *runs = doc_array(variant, "runs");

	for (size_t i = 0; runs && i < runs->array.n; i++) {
		struct str run = doc_str(runs->array.v[i], "run", STR(""));

		if (str_is(layout_carrier_of(run), t->run) &&
		    !await_entry(t, arena_str(t->a, run).p, d))
			return false;
	}
	return true;
}

/* The suite at its end, as the other master tells it, or as it has left it. */
static int read_suite(struct handover_task *t, const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct http_client *c = NULL;
	int rc;

	if (t->fx.gone) {
		buf_init(&text, MAX_ANSWER);
		rc = read_result(t, SUITE_STATE_FILE, d, &text, err);
		return rc == 0 ? parse_suite(t, &text, err) : rc;
	}
	rc = dial_for_results(t, d, &c, err);
	if (rc == 0)
		rc = ask_suite(t, c, err);
	http_client_free(c);
	return rc;
}

/* A carrier's own results are here: those of the runs of its suite, which the same master keeps, go before it.  Once
 * that one is gone it is only told how many are missing. */
static void await_entries(struct handover_task *t, const struct deadline *d)
{
	struct err err = {0};
	int rc = read_suite(t, d, &err);
	const struct doc *variants = t->suite ? doc_array(t->suite, "variants") : NULL;

	/* It has lost what it had, as one whose disk is new: nobody knows of results to wait for. */
	if (rc < 0 && !t->fx.gone)
		answer(t, err.kind == ERR_NOT_FOUND ? OUTCOME_REFUSED : OUTCOME_ABSENT, &err);
	for (size_t i = 0; variants && i < variants->array.n; i++)
		if (!await_variant(t, variants->array.v[i], d))
			return;
}

static void await_results(struct handover_task *t, const struct deadline *d)
{
	await_one(t, d);
	if (t->ev.outcome == OUTCOME_DONE && t->carries && t->kept)
		await_entries(t, d);
}

static void sweep(struct handover_task *t, const struct deadline *d)
{
	t->row.deadline = d;
	enum outcome outcome = t->driver->sweep ? t->driver->sweep(&t->row) : OUTCOME_DONE;

	answer(t, outcome, outcome == OUTCOME_DONE ? NULL : &t->row.err);
}

static void work(void *arg, const struct deadline *d)
{
	struct handover_task *t = arg;

	if (t->fx.kind == FX_HAND_OVER)
		offer(t, d);
	else if (t->fx.kind == FX_AWAIT_RESULTS)
		await_results(t, d);
	else if (t->fx.kind == FX_SWEEP)
		sweep(t, d);
	else if (t->fx.gone)
		follow_results(t, d);
	else
		follow(t, d);
}

/* ---- on the loop ---- */

static char *context_path(const struct master *m, const char *run)
{
	return xasprintf("%s/" LAYOUT_CONTEXTS "/%s.json", m->home, run);
}

/* For the commands of this home; without it they only find the run here. */
static void write_context(const struct live_run *lr, const char *run,
			  const struct driver_master *at)
{
	CLEANUP(freep) char *path = context_path(lr->m, run);
	CLEANUP(freep) char *dir = xstrndup(path, (size_t)(path_base(path) - path));
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;
	struct err err = {0};

	buf_init(&text, 4096);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "url", at->url);
	jsonw_kz(&w, "pin", at->pin);
	jsonw_kz(&w, "token", at->token);
	jsonw_kz(&w, "run", run);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	if (file_mkdir_p(dir, 0700, &err) < 0 ||
	    file_write_atomic(path, buf_str(&text), 0600, false, &err) < 0)
		log_warn("run %s: %s", lr->row.id, err.msg);
}

void handover_write_context(struct live_run *lr, const char *run)
{
	write_context(lr, run, &lr->remote.at);
}

void handover_remove_context(const struct master *m, const char *run)
{
	CLEANUP(freep) char *path = context_path(m, run);

	unlink(path);
}

static void take(struct handover_task *t)
{
	struct live_run *lr = t->lr;
	bool answered =
		t->ev.outcome == OUTCOME_DONE && t->fx.kind < FX_AWAIT_RESULTS && !t->fx.gone;

	/* One that could not be reached is not known any more, and is found anew. */
	bool moved =
		answered && (!lr->remote.has_context || strcmp(lr->remote.at.url, t->at.url) != 0);

	lr->remote.at = t->at;
	if (moved) {
		write_context(lr, lr->row.id, &t->at);
		carrier_moved(lr);
		lr->remote.has_context = true;
	}
	if (t->suite)
		carrier_seen(lr, t->suite);
	if (t->state[0])
		memcpy(lr->remote.state, t->state, sizeof(t->state));
	if (t->counts && strlen(t->counts) < sizeof(lr->remote.counts)) {
		snprintf(lr->remote.counts, sizeof(lr->remote.counts), "%s", t->counts);
		lr->remote.cost_usd = t->cost_usd;
	}
	if (t->not_copied[0])
		run_note(lr, "results", -1, "not copied, and fetched from its master: %s",
			 t->not_copied);
	if (t->lost && t->ev.outcome == OUTCOME_DONE)
		run_note(lr, "results", -1, "of %d runs of the suite there are none", t->lost);
	run_event(lr, &t->ev);
	round_mark(lr);
}

static void task_free(struct handover_task *t)
{
	vec_release(&t->blobs);
	arena_free(t->a);
	free(t);
}

static void work_done(void *arg, enum err_kind how)
{
	struct handover_task *t = arg;

	t->lr->busy--;
	if (how == ERR_NONE) /* otherwise the next master asks */
		take(t);
	live_run_done(t->lr);
	task_free(t);
}

void handover_do(struct live_run *lr, const struct effect *fx)
{
	struct handover_task *t = xcalloc(1, sizeof(*t));
	const struct effect row_fx = {.kind = FX_OBSERVE, .index = fx->index};

	t->lr = lr;
	t->fx = *fx;
	t->a = arena_new();
	t->ev = (struct event){.kind = EV_REMOTE, .attempt = fx->attempt};
	effect_row(lr, &row_fx, t->a, &t->row, t->token);
	t->driver = driver_for(t->row.kind);
	t->at = lr->remote.at;
	t->run = arena_strdup(t->a, lr->row.id);
	t->blobs_dir = arena_printf(t->a, "%s/" LAYOUT_BLOBS, lr->m->home);
	const struct plan_results to = plan_results(&lr->plan, t->a);

	t->results = to.url ? arena_printf(t->a, "%s%s/", to.url, lr->row.id) : NULL;
	t->kept = to.there_ms > 0;
	t->runs_dir = arena_printf(t->a, "%s/" LAYOUT_RUNS, lr->m->home);
	t->fetched = arena_printf(t->a, "%s/" LAYOUT_FETCHED, lr->dir);
	t->credentials = lr->credentials;
	t->carries = lr->plan.carries;
	if (fx->kind == FX_HAND_OVER) {
		t->body = make_body(lr, t->a);
		run_each_blob(lr, add_blob, t);
	}
	lr->busy++;
	workers_submit(pools_get(lr->m->pools, "handover", THREADS), work, work_done, t, TASK_MS);
}

/* ---- after the end ---- */

bool handover_owes_results(const struct live_run *lr)
{
	CLEANUP(freep) char *note = path_join(lr->dir, LAYOUT_RESULTS);

	return lr->plan.hands_over && lr->core->phase_at_ms[RUN_RUNNING] && !file_exists(note);
}

struct taking_in {
	struct master *m;
	char *run;
};

/* What is not there now never will be: the run stays as it was here. */
static void give_up(const struct taking_in *t)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" LAYOUT_SECRETS, t->m->home, t->run);

	unlink(path);
}

static void taken_in(void *ctx, const struct err *err)
{
	struct taking_in *t = ctx;

	if (err->kind != ERR_NONE && err->kind != ERR_CANCELLED)
		log_warn("run %s: its results were not taken in: %s", t->run, err->msg);
	if (err->kind == ERR_NOT_FOUND || err->kind == ERR_INVALID)
		give_up(t);
	if (err->kind != ERR_CANCELLED)
		carrier_came_back(t->m, t->run);
	free(t->run);
	free(t);
}

static void take_in(const struct live_run *lr, const char *credentials)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct taking_in *t = xcalloc(1, sizeof(*t));
	const char *index = arena_printf(a, "%s/" LAYOUT_FETCHED "/" RESULTS_INDEX, lr->dir);
	const struct import_source from = {
		.run = lr->row.id,
		.url = file_exists(index) ? NULL : plan_results(&lr->plan, a).url,
		.credentials = credentials,
	};

	*t = (struct taking_in){lr->m, xstrdup(lr->row.id)};
	import_start(lr->m, &from, taken_in, t);
}

void handover_ended(struct live_run *lr)
{
	if (!lr->plan.hands_over)
		return;
	handover_remove_context(lr->m, lr->row.id);
	if (lr->m->pools && handover_owes_results(lr))
		take_in(lr, lr->credentials);
	else
		carrier_came_back(lr->m, lr->row.id);
}

struct owed_runs {
	const char *home;
	VEC(int64_t) nos;
};

/* An ended run that keeps secrets may owe something. */
static bool add_owed(void *ctx, const struct run_row *row)
{
	struct owed_runs *o = ctx;
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" LAYOUT_SECRETS, o->home, row->id);

	if (row->ended_ms && file_exists(path))
		*vec_push(&o->nos) = row->no;
	return true;
}

void handover_check(struct master *m)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct owed_runs o = {.home = m->home};
	struct err err = {0};

	if (store_runs_each(m->store, false, 0, NEWEST, a, add_owed, &o, &err) < 0)
		log_warn("%s", err.msg);
	for (size_t i = 0; i < o.nos.n; i++) {
		struct live_run *lr = live_run_load(m, o.nos.v[i], NULL);

		if (lr && !lr->unreadable && handover_owes_results(lr))
			take_in(lr, run_credentials_read(lr, a));
		if (lr)
			live_run_done(lr);
	}
	vec_release(&o.nos);
}
