/* The runs of this master: submitting, resuming after a start, removing.  run_load.c loads a run
 * from its rows. */
#include "master/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/rand.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "link/layout.h"
#include "master/agents.h"
#include "master/data_blobs.h"
#include "master/handover.h"
#include "master/internal.h"
#include "master/listen.h"
#include "master/live_run.h"
#include "master/messages.h"
#include "master/queue.h"
#include "master/round.h"
#include "master/run_make.h"
#include "master/secrets.h"
#include "master/source_state.h"
#include "master/start_table.h"
#include "master/streams.h"
#include "master/suite_carrier.h"
#include "master/upkeep/space.h"
#include "master/upkeep/trash.h"
#include "net/digest.h"
#include "plan/plan.h"
#include "spec/job.h"
#include "spec/tag.h"
#include "store/logfile.h"

#define NAME_TRIES 50
/* By so much the real id, addresses and rank may be longer than in the estimate. */
#define START_SLACK (16 * 1024)

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
	VEC(struct live_run *) found;
};

static bool collect_no(void *ctx, const struct run_row *row)
{
	struct resume_list *l = ctx;
	*vec_push(&l->nos) = row->no;
	return true;
}

static void take_up(struct live_run *lr)
{
	if (lr->unreadable && lr->core->verdict == VERDICT_NONE) {
		log_error("run %s cannot be read and waits for 'regatta kill': %s", lr->row.id,
			  lr->unreadable);
		return;
	}
	log_info("run %s is resumed: %s", lr->row.id, run_phase_name(lr->core->phase));
	run_event(lr, &(struct event){.kind = EV_RESUME});
}

/* When the master starts: resumes every run that has not ended. */
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
		/* Its rows contradict each other: the other runs are resumed without it. */
		if (!lr) {
			log_error("run number %lld is not resumed: %s", (long long)l.nos.v[i],
				  why.msg);
			continue;
		}
		map_put(m->runs, str_from(lr->row.id), lr);
		*vec_push(&l.found) = lr;
	}
	/* Too few descriptors: an agent that cannot be accepted would wait until its lease ends,
	 * and its run with it. */
	if (rc == 0)
		rc = listen_check_files_of_found(m, err);
	for (size_t i = 0; i < l.found.n && rc == 0; i++)
		take_up(l.found.v[i]);
	/* The end of a round sets the timer, but there is none if no row has changed: the resources of every
	 * run may wait for their next try. */
	master_set_tick(m);
	vec_release(&l.nos);
	vec_release(&l.found);
	return rc;
}

static void random_letters(char out[static 5])
{
	for (int i = 0; i < 4; i++)
		out[i] = (char)('a' + rand_u64() % 26);
	out[4] = '\0';
}

/* Chooses an id that no run has.  Only the loop thread does this, so no other run can take the
 * id meanwhile. */
static int choose_id(struct live_run *lr, struct err *err)
{
	char letters[5];
	const char **ids;
	size_t n;
	int64_t no;

	for (int i = 0; i < NAME_TRIES; i++) {
		struct err why = {0};

		random_letters(letters);
		lr->row.id = arena_printf(lr->arena, "%s-%s", lr->job->name, letters);
		if (store_run_find(lr->m->store, str_from(lr->row.id), lr->arena, &no, &ids, &n,
				   &why) == 0 ||
		    why.kind == ERR_CONFLICT)
			continue;
		if (why.kind == ERR_NOT_FOUND)
			return 0;
		*err = why;
		return -1;
	}
	return err_set(err, ERR_CONFLICT, "no free name for '%s'", lr->job->name);
}

/* Has a run exactly this id?  That of an entry of a suite may be the beginning of another's. */
static int find_id(const struct live_run *lr, struct str id, bool *ret, struct err *err)
{
	struct run_row row = {.id = ""};
	struct err why = {0};
	const char **ids;
	int64_t no;
	size_t n;
	int rc = store_run_find(lr->m->store, id, lr->arena, &no, &ids, &n, &why);

	if (rc < 0 && why.kind != ERR_NOT_FOUND && why.kind != ERR_CONFLICT) {
		*err = why;
		return -1;
	}
	if (rc == 0 && store_run_get(lr->m->store, no, lr->arena, &row, err) < 0)
		return -1;
	*ret = str_is(id, row.id);
	return 0;
}

/* The id that a run has with the master that handed it over; else one is chosen. */
static int take_id(struct live_run *lr, const struct doc *body, struct err *err)
{
	bool carries = doc_bool(doc_table(body, "facts"), "carries", false);
	struct str given = doc_str(body, "run", STR(""));
	struct str id = carries ? layout_suite_of(given) : given;
	size_t name = strlen(lr->job->name);
	bool taken;

	if (!given.n)
		return choose_id(lr, err);
	bool of_suite = carrier_run_id_ok(lr->m, given);

	if (!of_suite &&
	    (id.n != name + 5 || strncmp(id.p, lr->job->name, name) != 0 || id.p[name] != '-' ||
	     strspn(id.p + name + 1, "abcdefghijklmnopqrstuvwxyz") != 4))
		return err_set(err, ERR_INVALID, "'run': '%.*s' is no id of a run of job '%s'",
			       STR_ARG(given), lr->job->name);
	if (find_id(lr, given, &taken, err) < 0)
		return -1;
	if (taken)
		return err_set(err, ERR_CONFLICT, "there is a run '%.*s' already", STR_ARG(given));
	lr->row.id = arena_str(lr->arena, given).p;
	return 0;
}

static int add_row(struct live_run *lr, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	plan_to_stored(&lr->plan, &text);
	lr->row.plan = buf_str(&text).p;
	store_begin(lr->m->store);
	int rc = store_run_add(lr->m->store, &lr->row, err);
	lr->row.plan = NULL; /* large, and not needed in memory */
	return rc;
}

/* Makes the run's directory.  job.toml and plan.json are for people; the master reads the rows. */
static int write_dir(struct live_run *lr, const struct doc *body, struct err *err)
{
	CLEANUP(freep) char *outputs = path_join(lr->dir, LAYOUT_OUTPUTS);

	if (file_mkdir_p(lr->logs_dir, 0700, err) < 0 || file_mkdir_p(outputs, 0700, err) < 0 ||
	    run_secrets_save(lr, err) < 0 ||
	    source_state_save(lr, doc_get(body, "source"), err) < 0)
		return -1;
	return run_write_texts(lr, err);
}

/* Without source and data a job on this machine runs in the directory of its job file, which
 * does not exist here if the client is on another machine. */
static int check_base_dir(const struct live_run *lr, struct err *err)
{
	struct stat st;

	if (!plan_runs_in_place(lr->job) ||
	    (stat(lr->row.base_dir, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"the master's machine has no directory '%.120s' to run in: 'source = \".\"' (or "
		"--set source=.) sends yours along",
		lr->row.base_dir);
}

static int check_source(struct live_run *lr, struct err *err)
{
	const char *sha = lr->row.source_sha256;

	if (!lr->job->source)
		return check_base_dir(lr, err);
	if (!input_is_packed(lr->job->source))
		return 0; /* data_blobs_take() checks what nodes fetch */
	if (strlen(sha) == 64 && strspn(sha, "0123456789abcdef") == 64) {
		CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", lr->m->home, sha);
		if (file_exists(path))
			return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "the archive of source '%s' was not uploaded",
		       lr->job->source);
}

/* Refuses a job whose START does not fit into one frame. */
static int check_start(struct live_run *lr, struct err *err)
{
	const struct crew *crew = &lr->plan.crew;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	size_t about = strlen(lr->row.job_json) + strlen(lr->client_env) +
		       strlen(doc_json_text(a, lr->secrets));

	if (about < FRAME_MAX_PAYLOAD / 4)
		return 0;
	for (int i = 0; i < crew->n; i++) {
		/* The nodes of a role have START messages of about the same length. */
		if (i > 0 && crew->members[i].role == crew->members[i - 1].role)
			continue;
		struct buf text;
		buf_init(&text, FRAME_MAX_PAYLOAD - START_SLACK);
		node_start_put(lr, i, 1, true, &text);
		bool fits = !text.overflow;
		buf_release(&text);
		start_forget(lr); /* addresses may not be known yet */
		if (!fits)
			return err_set(
				err, ERR_INVALID,
				"role '%s': its command and environment take more than %d KiB",
				crew->roles[crew->members[i].role].name,
				(FRAME_MAX_PAYLOAD - START_SLACK) / 1024);
	}
	return 0;
}

/* Machines that boot for the run dial the master, which must listen for them. */
static int check_reach(const struct live_run *lr, struct err *err)
{
	const struct resolver *r = resolver_for(lr->job->engine);

	if (!r || !r->nodes_dial || lr->plan.agentless || lr->m->services.url)
		return 0;
	return err_set(
		err, ERR_INVALID,
		"the machines of engine %s cannot reach this master, which listens on its own machine "
		"only: 'regatta master --stop', then 'regatta master --listen ADDRESS:PORT' with an "
		"address that they reach",
		lr->job->engine);
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
	if (source_state_check(doc_get(body, "source"), err) < 0)
		return -1;
	rand_bytes(secret, sizeof(secret));
	hex_encode(secret, sizeof(secret), hex);
	lr->row.secret = hex;
	lr->row.job_json = doc_json_text(a, job);
	lr->row.client_env = doc_json_text(a, doc_table(body, "client_env"));
	if (tags_read(doc_get(body, "tags"), a, &lr->row.tags, err) < 0)
		return -1;
	lr->row.base_dir = arena_str(a, doc_str(body, "base_dir", STR("/"))).p;
	lr->row.source_sha256 = arena_str(a, doc_str(body, "source_sha256", STR(""))).p;
	lr->row.seed = rand_u64();
	lr->row.created_ms = clock_wall_ms();
	if (run_check_job(lr, ret_details, err) < 0)
		return -1;
	run_secrets_take(lr, doc_table(body, "credentials"));
	lr->row.params = lr->job->params ? doc_json_text(a, lr->job->params) : NULL;
	lr->row.nodes = lr->plan.crew.n;
	lr->row.name = lr->job->name;
	lr->row.engine = lr->job->engine;
	lr->row.strategy = lr->plan.strategy->name;
	if (take_id(lr, body, err) < 0)
		return -1;
	run_set_dir(lr);
	if (run_resolve(lr, NULL, doc_table(body, "facts"), err) < 0)
		return -1;
	plan_complete(&lr->plan, lr->facts, a);
	if (lr->plan.hands_over)
		handover_keep(lr, body);
	else if (check_reach(lr, err) < 0)
		return -1;
	run_make_state(lr);
	if (queue_check(lr, doc_bool(body, "no_wait", false), err) < 0)
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
	if (fill_row(lr, body, &details, err) < 0 ||
	    listen_check_files(m, lr->row.nodes, err) < 0 || check_source(lr, err) < 0 ||
	    data_blobs_take(lr, doc_get(body, "data"), err) < 0 || add_row(lr, err) < 0) {
		*ret_details = details ? arena_strdup(a, details) : NULL;
		live_run_free(lr);
		return -1;
	}
	map_put(m->runs, str_from(lr->row.id), lr);
	if (write_dir(lr, body, err) < 0) {
		/* The row is in the open transaction: the run is ended at once. */
		struct event ev = {.kind = EV_CANCEL};
		snprintf(ev.text, sizeof(ev.text), "%.199s", err->msg);
		run_event(lr, &ev);
		return -1;
	}
	run_event(lr, &(struct event){.kind = EV_ACCEPTED, .seed = lr->row.seed});
	if (lr->plan.carries && !lr->plan.hands_over &&
	    carrier_take(lr, body, a, ret_details, err) < 0) {
		struct event ev = {
			.kind = EV_CARRIED, .verdict = VERDICT_FAILED, .err_kind = err->kind};

		snprintf(ev.text, sizeof(ev.text), "%.199s", err->msg);
		run_event(lr, &ev);
		return -1;
	}
	m->queue_due = true;
	*ret = lr;
	*ret_new = true;
	return 0;
}

struct blob_removal {
	const struct live_run *lr;
	struct err *err;
};

static int remove_blob(void *ctx, const char *sha256)
{
	const struct blob_removal *r = ctx;
	struct master *m = r->lr->m;
	bool used;

	if (store_source_used(m->store, sha256, r->lr->row.no, &used, r->err) < 0)
		return -1;
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", m->home, sha256);
	return used || !file_exists(path) ? 0 : trash_put(m->trash, path, sha256, r->err);
}

/* Removes the archives of source and data that no other run uses. */
static int remove_blobs(const struct live_run *lr, struct err *err)
{
	return run_each_blob(lr, remove_blob, &(struct blob_removal){lr, err});
}

/* Moves the run's directory to the trash, which removes its many files later. */
static int remove_dir(const struct live_run *lr, struct err *err)
{
	CLEANUP(freep) char *name = xasprintf("%s.%lld", lr->row.id, (long long)lr->row.no);

	return trash_put(lr->m->trash, lr->dir, name, err);
}

int runs_remove(struct live_run *lr, struct err *err)
{
	struct master *m = lr->m;
	struct store *st = m->store;

	/* Drops its agents, and commits the round, which may have changes of other runs. */
	for (int i = 0; i < lr->plan.crew.n; i++)
		agent_drop(lr, i);
	lr->busy++;
	round_end(m);
	lr->busy--;
	if (m->exit_code)
		return err_set(err, ERR_IO, "the master cannot go on");
	if (map_get(m->runs, str_from(lr->row.id)) == lr)
		map_del(m->runs, str_from(lr->row.id));
	if (remove_blobs(lr, err) < 0 || remove_dir(lr, err) < 0)
		return -1;
	store_begin(st);
	if (store_run_remove(st, lr->row.no, err) < 0)
		return -1;
	int rc = store_commit(st, err);
	trash_sweep(m->trash, false);
	return rc;
}

int run_find_rank(struct live_run *lr, struct str node)
{
	const struct crew *crew = &lr->plan.crew;

	if (!lr->ranks) {
		lr->ranks = map_new();
		for (int i = 0; i < crew->n; i++)
			map_put(lr->ranks, str_from(crew->members[i].name), &crew->members[i]);
	}
	const struct member *m = map_get(lr->ranks, node);

	return m ? (int)(m - crew->members) : -1;
}

int run_find_host(struct live_run *lr, struct str host)
{
	int rank = run_find_rank(lr, host);

	for (int i = 0; rank < 0 && i < lr->plan.crew.n; i++)
		if (!lr->core->nodes[i].asleep && host.n > 0 &&
		    str_is(host, lr->core->nodes[i].address))
			rank = i;
	return rank;
}

int run_find_process(struct live_run *lr, struct str name, int *ret_process)
{
	int rank = run_find_rank(lr, name);
	const char *dot = memrchr(name.p, '.', name.n);
	int64_t process;

	*ret_process = 0;
	if (rank >= 0 || !dot || dot + 2 > name.p + name.n || dot[1] != 'p')
		return rank;
	struct str digits = {dot + 2, (size_t)(name.p + name.n - dot - 2)};

	rank = run_find_rank(lr, (struct str){name.p, (size_t)(dot - name.p)});
	if (rank < 0 || lr->nodes[rank].processes == 1 || !str_to_i64(digits, &process) ||
	    process < 0 || process >= lr->nodes[rank].processes)
		return -1;
	*ret_process = (int)process;
	return rank;
}

/* The token of incarnation 0 has no "/0": nodes of earlier versions have this incarnation and
 * that token. */
void node_token(const struct live_run *lr, const char *node, int incarnation, char out[static 65])
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 *s = sha256_new();

	sha256_add(s, lr->row.secret, strlen(lr->row.secret));
	sha256_add(s, node, strlen(node));
	if (incarnation > 0) {
		char text[16];
		int n = snprintf(text, sizeof(text), "/%d", incarnation);

		sha256_add(s, text, (size_t)n);
	}
	sha256_end(s, digest);
	hex_encode(digest, sizeof(digest), out);
}

bool node_token_ok(const struct live_run *lr, struct str node, int incarnation, struct str token)
{
	CLEANUP(freep) char *name = xstrndup(node.p, node.n);
	char want[65];

	node_token(lr, name, incarnation, want);
	return token.n == 64 && digest_equal(token.p, want, 64);
}
