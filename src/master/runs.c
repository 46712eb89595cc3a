/*
 * The runs in memory: the active ones, and ended ones for as long as somebody
 * looks at them.  A run is always built from its row, so that a fresh submit and
 * a restart take the same path.
 */
#include "master/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "link/layout.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/messages.h"
#include "master/round.h"
#include "master/streams.h"
#include "master/upkeep/space.h"
#include "master/upkeep/trash.h"
#include "net/digest.h"
#include "plan/plan.h"
#include "spec/job.h"
#include "store/logfile.h"

#define LOCAL_FIRST 0x7f010001u /* 127.1.0.1 */
#define LOCAL_LAST 0x7ffdffffu	/* 127.253.255.255 */
#define NAME_TRIES 50
#define START_SLACK (16 * 1024) /* the id, other addresses and the rank are longer than assumed */
#define START_PER_NODE 512	/* bytes, at most, in all the lists that name every node */
#define PROBLEMS_TEXT (64 * 1024)

static int make_plan(struct live_run *lr, const char **ret_details, struct err *err)
{
	struct problems *ps = arena_new_of(lr->arena, struct problems);
	struct plan_input in = {.local_base = lr->row.local_base};

	lr->job = arena_new_of(lr->arena, struct job);
	if (job_load(lr->job_doc, lr->arena, lr->job, ps)) {
		lr->job->base_dir = lr->row.base_dir;
		if (plan_make(lr->job, &in, lr->arena, &lr->plan, ps))
			return 0;
	}
	struct buf text;
	buf_init(&text, PROBLEMS_TEXT);
	problems_print(ps, "job", &text);
	*ret_details = arena_strndup(lr->arena, buf_str(&text).p, text.n);
	buf_release(&text);
	return err_set(err, ERR_INVALID, "the job has %zu problem%s", ps->n + ps->more,
		       ps->n + ps->more == 1 ? "" : "s");
}

/* Everything but the core's rows, from lr->row (whose strings live in lr->arena). */
static int build(struct live_run *lr, const char **ret_details, struct err *err)
{
	struct master *m = lr->m;

	if (json_parse(str_from(lr->row.job_json), lr->arena, &lr->job_doc, err) < 0)
		return err_wrap(err, "job of run '%s'", lr->row.id);
	if (make_plan(lr, ret_details, err) < 0)
		return -1;
	lr->core = core_run_new(&lr->plan);
	lr->nodes = xcalloc((size_t)lr->plan.crew.n, sizeof(*lr->nodes));
	lr->series = map_new();
	lr->dir = xasprintf("%s/" LAYOUT_RUNS "/%s", m->home, lr->row.id);
	lr->logs_dir = path_join(lr->dir, LAYOUT_LOGS);
	return 0;
}

static struct live_run *live_run_new(struct master *m)
{
	struct live_run *lr = xcalloc(1, sizeof(*lr));

	lr->m = m;
	lr->arena = arena_new();
	list_init(&lr->in_round);
	return lr;
}

struct live_run *live_run_free(struct live_run *lr)
{
	struct str key;
	void *value;

	if (!lr)
		return NULL;
	list_remove(&lr->in_round);
	for (int i = 0; lr->nodes && i < lr->plan.crew.n; i++) {
		streams_close(lr, i);
		vec_release(&lr->nodes[i].series);
	}
	for (size_t i = 0; lr->series && map_at(lr->series, &i, &key, &value);)
		free(value);
	map_free(lr->series);
	vec_release(&lr->dirty_series);
	vec_release(&lr->dirty_scans);
	effects_release(&lr->fx);
	core_run_free(lr->core);
	free(lr->nodes);
	free(lr->dir);
	free(lr->logs_dir);
	arena_free(lr->arena);
	free(lr);
	return NULL;
}

static int restore_scans(struct live_run *lr, struct err *err)
{
	for (int i = 0; i < lr->plan.crew.n; i++) {
		uint64_t scanned[STREAMS];
		if (store_scan_get(lr->m->store, lr->row.no, i, scanned, &lr->nodes[i].bad, err) <
		    0)
			return -1;
		for (int s = 0; s < STREAMS; s++)
			lr->nodes[i].streams[s].scanned = lr->nodes[i].streams[s].scanned_saved =
				scanned[s];
	}
	return 0;
}

static bool last_seq(void *ctx, const struct event_row *row)
{
	*(int64_t *)ctx = row->seq;
	return true;
}

struct live_run *live_run_load(struct master *m, int64_t no, struct err *err)
{
	struct live_run *lr = live_run_new(m);
	const char *details = NULL;

	if (store_run_get(m->store, no, lr->arena, &lr->row, err) < 0 ||
	    build(lr, &details, err) < 0 || store_run_restore(m->store, no, lr->core, err) < 0)
		return live_run_free(lr);
	core_run_restored(lr->core);
	lr->ended = run_phase_is_final(lr->core->phase);
	if (series_restore(lr, err) < 0 || restore_scans(lr, err) < 0 ||
	    store_events_each(m->store, no, 0, 0, last_seq, &lr->last_seq, err) < 0)
		return live_run_free(lr);
	return lr;
}

struct live_run *live_run_find(struct master *m, struct str id, struct arena *a,
			       const char ***ret_ids, size_t *ret_n, struct err *err)
{
	struct live_run *lr = map_get(m->runs, id);
	int64_t no;

	if (lr)
		return lr;
	if (store_run_find(m->store, id, a, &no, ret_ids, ret_n, err) < 0)
		return NULL;
	struct run_row row;
	if (store_run_get(m->store, no, a, &row, err) < 0)
		return NULL;
	lr = map_get(m->runs, str_from(row.id));
	return lr ? lr : live_run_load(m, no, err);
}

/* A run that was loaded for reading, or has ended and is watched by nobody, leaves the memory. */
void live_run_done(struct live_run *lr)
{
	struct master *m = lr->m;

	if (!lr->ended || lr->watchers || lr->busy || !list_empty(&lr->in_round))
		return;
	for (int i = 0; i < lr->plan.crew.n; i++)
		if (lr->nodes[i].agent)
			return; /* its last words are still being said */
	if (map_get(m->runs, str_from(lr->row.id)) == lr)
		map_del(m->runs, str_from(lr->row.id));
	live_run_free(lr);
}

size_t runs_active(const struct master *m)
{
	size_t n = 0;
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
		n += !((struct live_run *)value)->ended;
	return n;
}

void runs_cancel_all(struct master *m, const char *why)
{
	struct event ev = {.kind = EV_CANCEL};
	struct str id;
	void *value;

	snprintf(ev.text, sizeof(ev.text), "%s", why);
	for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
		run_event(value, &ev);
}

struct resume_list {
	VEC(int64_t) nos;
};

static bool collect_no(void *ctx, const struct run_row *row)
{
	struct resume_list *l = ctx;
	*vec_push(&l->nos) = row->no;
	return true;
}

/* After a start: every run that has not ended goes on. */
int runs_resume(struct master *m, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct resume_list l = {0};
	int rc = store_runs_each(m->store, true, 0, 0, a, collect_no, &l, err);

	for (size_t i = 0; i < l.nos.n && rc == 0; i++) {
		struct err why = {0};
		struct live_run *lr = live_run_load(m, l.nos.v[i], &why);
		if (!lr && why.kind != ERR_INVALID && why.kind != ERR_CONFLICT) {
			*err = why;
			rc = -1;
			break;
		}
		if (!lr) { /* the others must not wait for a job that this regatta cannot read */
			log_error("run %lld stays as it is: %s", (long long)l.nos.v[i], why.msg);
			continue;
		}
		map_put(m->runs, str_from(lr->row.id), lr);
		log_info("run %s goes on: %s", lr->row.id, run_phase_name(lr->core->phase));
		run_event(lr, &(struct event){.kind = EV_RESUME});
	}
	vec_release(&l.nos);
	return rc;
}

static bool base_is_free(const struct master *m, uint32_t base, uint32_t span)
{
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;
		uint32_t from = lr->row.local_base, n = plan_local_span(from, lr->row.nodes);
		if (base < from + n && from < base + span)
			return false;
	}
	return true;
}

/* Addresses that no active run of this master uses; where it begins differs from master to master. */
static uint32_t local_base(struct master *m, int nodes)
{
	for (int tries = 0; tries < 100000; tries++) {
		uint32_t span = plan_local_span(m->next_local, nodes);
		if (m->next_local < LOCAL_FIRST || m->next_local > LOCAL_LAST - span)
			m->next_local = LOCAL_FIRST;
		uint32_t base = m->next_local;
		m->next_local += plan_local_span(base, nodes);
		if (base_is_free(m, base, span))
			return base;
	}
	return LOCAL_FIRST;
}

static void random_letters(char out[static 5])
{
	for (int i = 0; i < 4; i++)
		out[i] = (char)('a' + rand_u64() % 26);
	out[4] = '\0';
}

static int add_row(struct live_run *lr, struct err *err)
{
	char letters[5];

	for (int i = 0; i < NAME_TRIES; i++) {
		random_letters(letters);
		lr->row.id = arena_printf(lr->arena, "%s-%s", lr->job->name, letters);
		*err = (struct err){0};
		store_begin(lr->m->store);
		if (store_run_add(lr->m->store, &lr->row, err) == 0)
			return 0;
		if (err->kind != ERR_CONFLICT)
			return -1;
	}
	return err_wrap(err, "no free name for '%s'", lr->job->name);
}

static int write_file(const char *dir, const char *name, const struct buf *text, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	return file_write(path, buf_str(text), 0600, err);
}

/* The run's directory, for people: the rows are the truth. */
static int write_dir(struct live_run *lr, struct err *err)
{
	struct buf text;
	int rc;

	CLEANUP(freep) char *outputs = path_join(lr->dir, LAYOUT_OUTPUTS);
	if (file_mkdir_p(lr->logs_dir, 0700, err) < 0 || file_mkdir_p(outputs, 0700, err) < 0)
		return -1;
	buf_init(&text, SIZE_MAX / 2);
	doc_to_toml(lr->job_doc, &text);
	rc = write_file(lr->dir, "job.toml", &text, err);
	buf_reset(&text);
	if (rc == 0) {
		plan_to_json(&lr->plan, lr->row.id, lr->arena, &text);
		rc = write_file(lr->dir, "plan.json", &text, err);
	}
	buf_release(&text);
	return rc;
}

static const char *as_json(struct arena *a, const struct doc *d)
{
	struct buf text;

	if (!d)
		return "{}";
	buf_init(&text, DOC_MAX_BYTES * 2);
	doc_to_json(d, &text);
	const char *z = arena_strndup(a, buf_str(&text).p, text.n);
	buf_release(&text);
	return z;
}

static int check_source(struct live_run *lr, struct err *err)
{
	const char *sha = lr->row.source_sha256;

	if (!lr->job->source)
		return 0;
	if (strlen(sha) == 64 && strspn(sha, "0123456789abcdef") == 64) {
		CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", lr->m->home, sha);
		if (file_exists(path))
			return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "the archive of source '%s' was not uploaded",
		       lr->job->source);
}

/* Whatever a node has to be told fits into one frame: said now, not when it is too late. */
static int check_start(const struct live_run *lr, struct err *err)
{
	const struct crew *crew = &lr->plan.crew;
	size_t about = strlen(lr->row.job_json) + strlen(lr->row.client_env) +
		       (size_t)crew->n * START_PER_NODE;

	if (about < FRAME_MAX_PAYLOAD / 4)
		return 0;
	for (int i = 0; i < crew->n; i++) {
		if (i > 0 && crew->members[i].role == crew->members[i - 1].role)
			continue; /* of a role, all have about the same to hear */
		struct buf text;
		buf_init(&text, FRAME_MAX_PAYLOAD - START_SLACK);
		node_start_put(lr, i, 1, &text);
		bool fits = !text.overflow;
		buf_release(&text);
		if (!fits)
			return err_set(
				err, ERR_INVALID,
				"role '%s': its command and environment, with the addresses of %d nodes, "
				"take more than %d KiB",
				crew->roles[crew->members[i].role].name, crew->n,
				(FRAME_MAX_PAYLOAD - START_SLACK) / 1024);
	}
	return 0;
}

static int fill_row(struct live_run *lr, const struct doc *body, const char **ret_details,
		    struct err *err)
{
	struct arena *a = lr->arena;
	uint8_t secret[32];
	char *hex = arena_alloc(a, 65);
	const struct doc *job = doc_table(body, "job");

	if (!job)
		return err_set(err, ERR_INVALID, "'job' must be a table");
	rand_bytes(secret, sizeof(secret));
	hex_encode(secret, sizeof(secret), hex);
	lr->row.secret = hex;
	lr->row.job_json = as_json(a, job);
	lr->row.client_env = as_json(a, doc_table(body, "client_env"));
	lr->row.base_dir = arena_str(a, doc_str(body, "base_dir", STR("/"))).p;
	lr->row.source_sha256 = arena_str(a, doc_str(body, "source_sha256", STR(""))).p;
	lr->row.seed = rand_u64();
	lr->row.created_ms = clock_wall_ms();
	lr->row.id = "new";
	lr->row.local_base = LOCAL_FIRST;
	if (build(lr, ret_details, err) < 0)
		return -1;
	/* Planned once to count the nodes, and again with addresses that are free. */
	lr->row.nodes = lr->plan.crew.n;
	lr->row.local_base = local_base(lr->m, lr->row.nodes);
	lr->row.name = lr->job->name;
	lr->row.engine = lr->job->engine;
	lr->row.strategy = lr->plan.strategy->name;
	if (make_plan(lr, ret_details, err) < 0)
		return -1;
	return check_start(lr, err);
}

int runs_submit(struct master *m, const struct doc *body, struct arena *a, struct live_run **ret,
		bool *ret_new, const char **ret_details, struct err *err)
{
	struct str request = doc_str(body, "request_id", STR(""));
	int64_t no;

	if (request.n < 16 || request.n > 64)
		return err_set(err, ERR_INVALID,
			       "'request_id' must be a text of 16 to 64 characters");
	const char *request_id = arena_str(a, request).p;
	if (store_run_by_request(m->store, request_id, &no, err) < 0)
		return -1;
	if (no) {
		struct run_row row;
		if (store_run_get(m->store, no, a, &row, err) < 0)
			return -1;
		*ret = live_run_find(m, str_from(row.id), a, NULL, NULL, err);
		*ret_new = false;
		return *ret ? 0 : -1;
	}

	if (space_for_run(m->space, err) < 0)
		return -1;
	struct live_run *lr = live_run_new(m);
	lr->row.request_id = arena_strdup(lr->arena, request_id);
	const char *details = NULL;
	if (fill_row(lr, body, &details, err) < 0 || check_source(lr, err) < 0 ||
	    add_row(lr, err) < 0) {
		*ret_details = details ? arena_strdup(a, details) : NULL;
		live_run_free(lr);
		return -1;
	}
	/* The core and the paths were made for the first plan, under no name. */
	core_run_free(lr->core);
	lr->core = core_run_new(&lr->plan);
	free(lr->dir);
	free(lr->logs_dir);
	lr->dir = xasprintf("%s/" LAYOUT_RUNS "/%s", m->home, lr->row.id);
	lr->logs_dir = path_join(lr->dir, LAYOUT_LOGS);
	map_put(m->runs, str_from(lr->row.id), lr);
	if (write_dir(lr, err) < 0) {
		/* The row is in the open transaction: end the run at once instead of half accepting it. */
		struct event ev = {.kind = EV_CANCEL};
		snprintf(ev.text, sizeof(ev.text), "%.199s", err->msg);
		run_event(lr, &ev);
		return -1;
	}
	run_event(lr, &(struct event){.kind = EV_ACCEPTED, .seed = lr->row.seed});
	*ret = lr;
	*ret_new = true;
	return 0;
}

/* The source's archive goes with the last run that used it. */
static int remove_blob(const struct live_run *lr, struct err *err)
{
	const char *sha256 = lr->row.source_sha256;
	bool used;

	if (!sha256 || !sha256[0])
		return 0;
	if (store_source_used(lr->m->store, sha256, lr->row.no, &used, err) < 0)
		return -1;
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", lr->m->home, sha256);
	return used ? 0 : trash_put(lr->m->trash, path, sha256, err);
}

/* There may be a great many files: only their names' place changes here. */
static int remove_dir(const struct live_run *lr, struct err *err)
{
	CLEANUP(freep) char *name = xasprintf("%s.%lld", lr->row.id, (long long)lr->row.no);

	return trash_put(lr->m->trash, lr->dir, name, err);
}

int runs_remove(struct live_run *lr, struct err *err)
{
	struct master *m = lr->m;
	struct store *st = m->store;

	/* Nobody may speak of it any more, and what others have in this round is committed whole. */
	for (int i = 0; i < lr->plan.crew.n; i++)
		agent_drop(lr, i);
	lr->busy++;
	round_end(m);
	lr->busy--;
	if (m->exit_code)
		return err_set(err, ERR_IO, "the master cannot go on");
	if (map_get(m->runs, str_from(lr->row.id)) == lr)
		map_del(m->runs, str_from(lr->row.id));
	if (remove_blob(lr, err) < 0 || remove_dir(lr, err) < 0)
		return -1;
	store_begin(st);
	if (store_run_remove(st, lr->row.no, err) < 0)
		return -1;
	int rc = store_commit(st, err);
	trash_sweep(m->trash, false);
	return rc;
}

int rank_of(const struct live_run *lr, struct str node)
{
	for (int i = 0; i < lr->plan.crew.n; i++)
		if (str_is(node, lr->plan.crew.members[i].name))
			return i;
	return -1;
}

void node_token(const struct live_run *lr, int rank, char out[static 65])
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 *s = sha256_new();

	sha256_add(s, lr->row.secret, strlen(lr->row.secret));
	sha256_add(s, lr->plan.crew.members[rank].name, strlen(lr->plan.crew.members[rank].name));
	sha256_end(s, digest);
	hex_encode(digest, sizeof(digest), out);
}
