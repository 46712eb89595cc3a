#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "master/live_run.h"
#include "master/master.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/streams.h"
#include "sys/loop.h"
#include "sys/worker.h"

#define TURN_MS 10
#define COLLECTED_NOTHING "{\"files\":0,\"bytes\":0}"
#define IDLE_TURNS 5
#define RX_MAX (4 * FRAME_MAX_PAYLOAD)

static struct rig *current; /* of the test that runs: what is linked in has no context */
static char wrong[400];	    /* the first rule that was broken; said by the next turn */

static void broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void broken(const char *fmt, ...)
{
	va_list ap;

	if (wrong[0])
		return;
	va_start(ap, fmt);
	vsnprintf(wrong, sizeof(wrong), fmt, ap);
	va_end(ap);
}

/* ---- what is on disk ---- */

struct synced {
	char *path;
	uint64_t bytes;
	ino_t ino;
};
static VEC(struct synced) synced;

static struct synced *synced_of(const char *path)
{
	for (size_t i = 0; i < synced.n; i++)
		if (!strcmp(synced.v[i].path, path))
			return &synced.v[i];
	return NULL;
}

bool rig_is_synced(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	for (size_t i = 0; i < synced.n; i++)
		if (synced.v[i].ino == st.st_ino && synced.v[i].bytes >= (uint64_t)st.st_size)
			return true;
	return false;
}

/* Instead of libc's.  Nobody cuts the power here: that it was asked for is enough. */
int fdatasync(int fd)
{
	char link[64], path[512];
	struct stat st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	if (current && current->sync_fails && strstr(path, "/" LAYOUT_LOGS "/")) {
		errno = EIO;
		return -1;
	}
	if (fstat(fd, &st) == 0) {
		struct synced *s = synced_of(path);

		if (!s) {
			s = vec_push(&synced);
			s->path = xstrdup(path);
		}
		s->bytes = (uint64_t)st.st_size;
		s->ino = st.st_ino;
	}
	return 0;
}

int fsync(int fd)
{
	return fdatasync(fd);
}

static void forget_synced(void)
{
	for (size_t i = 0; i < synced.n; i++)
		free(synced.v[i].path);
	vec_release(&synced);
}

/* Opens a copy of the database's files as they are now. */
static sqlite3 *open_copy(struct rig *r)
{
	static const char *const suffix[] = {"", "-wal"};
	sqlite3 *db = NULL;

	for (size_t i = 0; i < COUNT(suffix); i++) {
		CLEANUP(freep) char *from = xasprintf("%s/regatta.db%s", r->home, suffix[i]);
		CLEANUP(freep) char *to = xasprintf("%s/copy.db%s", r->home, suffix[i]);

		unlink(to);
		if (file_exists(from))
			assert_int_equal(file_copy(from, to, NULL), 0);
	}
	CLEANUP(freep) char *shm = path_join(r->home, "copy.db-shm");
	CLEANUP(freep) char *path = path_join(r->home, "copy.db");

	unlink(shm);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	return db;
}

static int64_t stored(struct rig *r, const char *sql, const char *a, const char *b)
{
	sqlite3 *db = open_copy(r);
	sqlite3_stmt *st = NULL;
	int64_t value = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		broken("%s: %s", sql, sqlite3_errmsg(db));
	if (a)
		sqlite3_bind_text(st, 1, a, -1, SQLITE_STATIC);
	if (b)
		sqlite3_bind_text(st, 2, b, -1, SQLITE_STATIC);
	if (st && sqlite3_step(st) == SQLITE_ROW)
		value = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return value;
}

void rig_damage(struct rig *r, const char *sql)
{
	CLEANUP(freep) char *path = xasprintf("%s/regatta.db", r->home);
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_true(sqlite3_changes(db) > 0);
	sqlite3_close(db);
}

int64_t rig_stored(struct rig *r, const char *sql)
{
	return stored(r, sql, NULL, NULL);
}

int64_t rig_events(struct rig *r, const char *kind)
{
	return stored(r, "SELECT count(*) FROM event WHERE kind = ?1", kind, NULL);
}

/* ---- the store ---- */

int __real_store_commit(struct store *st, struct err *err);
int __wrap_store_commit(struct store *st, struct err *err);
bool __wrap_store_disk_full(struct store *st);
bool __wrap_store_disk_reserve_is_out(struct store *st);
bool __wrap_store_disk_tight(struct store *st);

int __wrap_store_commit(struct store *st, struct err *err)
{
	struct rig *r = current;

	if (++r->commits != r->fail_at)
		return __real_store_commit(st, err);
	if (r->how == COMMIT_LOST && __real_store_commit(st, err) < 0)
		return -1;
	return err_set(err, ERR_IO, "commit %d fails as the test wants it", r->commits);
}

bool __wrap_store_disk_full(struct store *st)
{
	(void)st;
	return current->disk_full;
}

bool __wrap_store_disk_reserve_is_out(struct store *st)
{
	(void)st;
	return current->disk_full;
}

bool __wrap_store_disk_tight(struct store *st)
{
	(void)st;
	return current->disk_tight;
}

/* ---- users ---- */

int64_t __real_socket_peer_uid(int fd);
int64_t __wrap_socket_peer_uid(int fd);

int64_t __wrap_socket_peer_uid(int fd)
{
	return current->peer_uid ? current->peer_uid : __real_socket_peer_uid(fd);
}

/* ---- workers ---- */

struct work {
	work_done_fn done;
	void *arg;
	enum err_kind how;
};

struct workers {
	struct loop *loop;
	VEC(struct work) ready;
	int stop;
};

struct waiting {
	struct workers *w;
	work_fn work;
	work_done_fn done;
	void *arg;
	int timeout_ms;
};
static VEC(struct waiting) waiting;

struct workers *workers_new(struct loop *l, const char *name, int nthreads)
{
	struct workers *w = xcalloc(1, sizeof(*w));

	(void)name;
	(void)nthreads;
	w->loop = l;
	return w;
}

static void deliver(void *ctx)
{
	struct workers *w = ctx;

	if (w->ready.n == 0)
		return;
	struct work first = w->ready.v[0];

	w->ready.n--;
	memmove(w->ready.v, w->ready.v + 1, w->ready.n * sizeof(first));
	if (first.done)
		first.done(first.arg, first.how);
}

void workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg, int timeout_ms)
{
	struct deadline d = deadline_in(timeout_ms, &w->stop);

	if (current->work_waits) {
		*vec_push(&waiting) = (struct waiting){w, work, done, arg, timeout_ms};
		return;
	}
	if (!w->stop)
		work(arg, &d);
	*vec_push(&w->ready) = (struct work){done, arg, w->stop ? ERR_CANCELLED : ERR_NONE};
	loop_soon(w->loop, deliver, w);
}

void rig_let_work_go(struct rig *r)
{
	r->work_waits = false;
	for (size_t i = 0; i < waiting.n; i++)
		workers_submit(waiting.v[i].w, waiting.v[i].work, waiting.v[i].done,
			       waiting.v[i].arg, waiting.v[i].timeout_ms);
	vec_release(&waiting);
}

int workers_pending(const struct workers *w)
{
	return (int)w->ready.n;
}

void workers_stop(struct workers *w)
{
	w->stop = 1;
}

void workers_drain(struct workers *w)
{
	while (w->ready.n > 0)
		deliver(w);
}

struct workers *workers_free(struct workers *w)
{
	if (!w)
		return NULL;
	workers_drain(w);
	vec_release(&w->ready);
	free(w);
	return NULL;
}

/* ---- drivers ---- */

bool rig_exists(const struct rig *r, const char *name)
{
	for (size_t i = 0; i < r->exist.n; i++)
		if (!strcmp(r->exist.v[i], name))
			return true;
	return false;
}

int rig_count(const struct rig *r, const char *verb)
{
	int n = 0;

	for (size_t i = 0; i < r->calls.n; i++)
		n += !strcmp(r->calls.v[i].verb, verb);
	return n;
}

const struct rig_call *rig_last(const struct rig *r, const char *verb)
{
	for (size_t i = r->calls.n; i-- > 0;)
		if (!strcmp(r->calls.v[i].verb, verb))
			return &r->calls.v[i];
	return NULL;
}

/* Rule: what is asked of a provider is in the ledger first, whatever becomes of the master. */
static void called(const char *verb, const struct driver_row *row, enum res_state wanted)
{
	struct rig *r = current;
	struct rig_call *c = vec_push(&r->calls);

	snprintf(c->verb, sizeof(c->verb), "%s", verb);
	snprintf(c->name, sizeof(c->name), "%s", row->name);
	snprintf(c->token, sizeof(c->token), "%s", row->token);
	snprintf(c->enrol, sizeof(c->enrol), "%s", row->enrol);
	c->incarnation = row->incarnation;
	int64_t state = stored(r,
			       "SELECT resource.state FROM resource JOIN run ON run.no = "
			       "resource.run WHERE run.id = ?1 AND resource.name = ?2",
			       row->run, row->name);

	if (state != (int64_t)wanted)
		broken("%s of %s is called while the ledger says %s", verb, row->name,
		       state < 0 ? "nothing" : res_state_name((enum res_state)state));
}

static enum outcome fake_create(struct driver_row *row)
{
	struct rig *r = current;

	called("create", row, RES_SENT);
	snprintf(r->choice, sizeof(r->choice), "%s", row->choice ? row->choice : "none");
	snprintf(r->request, sizeof(r->request), "%s", row->request ? row->request : "none");
	snprintf(r->credentials, sizeof(r->credentials), "%s",
		 row->credentials ? row->credentials : "none");
	r->needs[0] = '\0';
	for (size_t i = 0; i < row->nneeds; i++) {
		size_t n = strlen(r->needs);

		snprintf(r->needs + n, sizeof(r->needs) - n, "%s=%s ", row->needs[i].name,
			 row->needs[i].id);
	}
	if (r->creating != OUTCOME_DONE) {
		err_set(&row->err, ERR_CAPACITY, "there is none left");
		return r->creating;
	}
	if (!rig_exists(r, row->name))
		*vec_push(&r->exist) = xstrdup(row->name);
	snprintf(row->id, sizeof(row->id), "id-of-%s", row->name);
	return OUTCOME_DONE;
}

static enum outcome fake_find(struct driver_row *row)
{
	called("find", row, RES_SENT);
	snprintf(row->id, sizeof(row->id), "id-of-%s", row->name);
	row->identity_checked = true;
	return rig_exists(current, row->name) ? OUTCOME_DONE : OUTCOME_ABSENT;
}

static enum outcome fake_observe(struct driver_row *row)
{
	called("observe", row, RES_LIVE);
	for (size_t i = 0; i < row->nmembers && current->gone_member; i++)
		row->members[i].gone = !strcmp(row->members[i].identity, current->gone_member);
	row->identity_checked = true;
	return rig_exists(current, row->name) && !current->hidden ? OUTCOME_DONE : OUTCOME_ABSENT;
}

static enum outcome fake_extend(struct driver_row *row)
{
	called("extend", row, RES_LIVE);
	return OUTCOME_DONE;
}

/* True if it is there already when the run comes: no run deletes it. */
static bool is_adopted(const struct driver_row *row)
{
	return current->adopted && strstr(current->adopted, row->name);
}

static enum outcome fake_destroy(struct driver_row *row)
{
	struct rig *r = current;

	called("destroy", row, is_adopted(row) ? RES_LIVE : RES_DELETING);
	if (is_adopted(row) && r->end_fails.kind != ERR_NONE) {
		row->err = r->end_fails;
		return OUTCOME_HELD;
	}
	for (size_t i = 0; i < r->exist.n; i++) {
		if (strcmp(r->exist.v[i], row->name) != 0)
			continue;
		free(r->exist.v[i]);
		r->exist.v[i] = r->exist.v[--r->exist.n];
	}
	return OUTCOME_DONE;
}

static void each(enum outcome (*one)(struct driver_row *row), struct driver_row *rows, size_t n)
{
	*vec_push(&current->sizes) = n;
	for (size_t i = 0; i < n; i++)
		rows[i].outcome = one(&rows[i]);
}

static int fake_reach(struct driver_row *row, struct driver_master *ret)
{
	called("reach", row, RES_LIVE);
	*ret = current->reach_at;
	row->err = current->reach_fails;
	return row->err.kind == ERR_NONE ? 0 : -1;
}

static int fake_publish(struct driver_row *row, const struct driver_master *at)
{
	called("publish", row, RES_LIVE);
	return strcmp(at->url, current->reach_at.url) == 0 ? 0 : -1;
}

static int fake_detach(struct driver_row *row)
{
	called("detach", row, RES_LIVE);
	return 0;
}

static enum outcome fake_sweep(struct driver_row *row)
{
	called("sweep", row, RES_GONE);
	err_set(&row->err, ERR_DENIED, "a subnet is left");
	return current->sweeping;
}

static void fake_create_many(struct driver_row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (rows[i].batch != rows[0].batch)
			broken("%s and %s are one call, but of two batches", rows[0].name,
			       rows[i].name);
	each(fake_create, rows, n);
}

static void fake_destroy_many(struct driver_row *rows, size_t n)
{
	each(fake_destroy, rows, n);
}

static void fake_render(const struct driver_row *rows, size_t n, struct buf *out)
{
	buf_addz(out, current->renders);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " %s/%d", rows[i].name, rows[i].batch_place);
}

const struct driver *driver_for(const char *kind)
{
	static const struct driver fake_rendering = {
		.pool = "fake",
		.create = fake_create,
		.find = fake_find,
		.observe = fake_observe,
		.extend = fake_extend,
		.destroy = fake_destroy,
		.render = fake_render,
		.create_many = fake_create_many,
	};
	static const struct driver fake_many = {
		.pool = "fake",
		.create = fake_create,
		.find = fake_find,
		.observe = fake_observe,
		.extend = fake_extend,
		.destroy = fake_destroy,
		.create_many = fake_create_many,
		.destroy_many = fake_destroy_many,
	};
	static const struct driver fake = {
		.pool = "fake",
		.create = fake_create,
		.find = fake_find,
		.observe = fake_observe,
		.extend = fake_extend,
		.destroy = fake_destroy,
		.reach = fake_reach,
		.publish = fake_publish,
		.detach = fake_detach,
		.sweep = fake_sweep,
	};

	(void)kind;
	if (current && current->renders)
		return &fake_rendering;
	return current && current->many ? &fake_many : &fake;
}

/* Those of AWS and of a cluster come with the submission. */
const struct resolver *resolver_for(const char *engine)
{
	static const struct resolver at_client[] = {
		{.engine = "aws.ec2", .at_client = true, .nodes_dial = true},
		{.engine = "kubernetes", .at_client = true, .nodes_dial = true}};

	for (size_t i = 0; i < sizeof(at_client) / sizeof(at_client[0]); i++)
		if (strcmp(engine, at_client[i].engine) == 0)
			return &at_client[i];
	return &local_resolver;
}

int driver_resolve(const char *engine, const struct resolve_input *in, struct arena *a,
		   struct doc **ret_facts, struct err *err)
{
	(void)engine;
	return local_resolver.resolve(in, a, ret_facts, err);
}

size_t driver_sweep(const struct sweep_input *in, struct err *err)
{
	(void)err;
	current->sweep_spares =
		in->is_active(in->ctx, current->active) && !in->is_active(in->ctx, "other");
	return 0;
}

/* ---- the master ---- */

bool rig_start(struct rig *r)
{
	struct master_options o = {.home = r->home, .listen = "127.0.0.1:0", .background = true};
	struct err err = {0};

	r->m = (struct master){0};
	r->up = true;
	forget_synced(); /* a master cannot know what the last one has synced */
	if (master_open(&r->m, &o, &err) < 0) {
		r->m.exit_code = 1;
		rig_stop(r);
		return false;
	}
	r->m.services.url = "https://192.0.2.1:5436"; /* as if it listened there */
	round_end(&r->m);
	return true;
}

void rig_stop(struct rig *r)
{
	rig_let_work_go(r);
	if (r->up)
		master_close(&r->m);
	r->up = false;
}

void rig_crash(struct rig *r)
{
	r->m.exit_code = 1;
	rig_stop(r);
}

bool rig_turn(struct rig *r)
{
	if (r->up && !r->m.exit_code)
		loop_round(r->m.loop, TURN_MS);
	for (size_t i = 0; i < r->agents.n; i++)
		agent_read(r->agents.v[i]);
	if (wrong[0])
		fail_msg("%s", wrong);
	return r->up && !r->m.exit_code;
}

int64_t rig_deadline(void)
{
	return clock_boot_ms() + RIG_WAIT_MS;
}

bool rig_late(int64_t deadline)
{
	return clock_boot_ms() > deadline;
}

void rig_until_it_gives_up(struct rig *r)
{
	for (int64_t until = rig_deadline(); rig_turn(r);)
		if (rig_late(until))
			fail_msg("the master goes on");
}

void rig_idle(struct rig *r)
{
	for (int i = 0; i < IDLE_TURNS; i++)
		assert_true(rig_turn(r));
}

int rig_make(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	if (unit_make_dir((void **)&r->home) < 0)
		return -1;
	current = r;
	wrong[0] = '\0';
	forget_synced();
	log_setup(2, "rig", getenv("REGATTA_RIG_LOG") ? LOG_DEBUG : LOG_ERROR);
	*state = r;
	return rig_start(r) ? 0 : -1;
}

int rig_drop(void **state)
{
	struct rig *r = *state;

	rig_stop(r);
	for (size_t i = 0; i < r->agents.n; i++) {
		agent_hang_up(r->agents.v[i]);
		buf_release(&r->agents.v[i]->rx);
		buf_release(&r->agents.v[i]->start);
		free(r->agents.v[i]);
	}
	vec_release(&r->agents);
	for (size_t i = 0; i < r->exist.n; i++)
		free(r->exist.v[i]);
	vec_release(&r->exist);
	vec_release(&r->calls);
	vec_release(&r->sizes);
	forget_synced();
	int rc = unit_remove_dir((void **)&r->home);
	free(r);
	return rc;
}

/* ---- runs ---- */

struct live_run *rig_try_submit(struct rig *r, const char *request_id, const char *job,
				struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep)
	char *json =
		xasprintf("{\"request_id\":\"%s\",\"job\":%s,\"client_env\":{\"PATH\":\"/bin\","
			  "\"TMPDIR\":\"/scratch\",\"CUDA_VISIBLE_DEVICES\":\"3\"},"
			  "\"base_dir\":\"/\"}",
			  request_id, job);
	const char *details = NULL;
	struct live_run *lr = NULL;
	struct doc *body;
	bool fresh;

	assert_int_equal(json_parse(str_from(json), a, &body, err), 0);
	if (runs_submit(&r->m, body, a, &lr, &fresh, &details, err) == 0)
		return lr;
	if (details)
		err_set(err, err->kind, "%.200s", details);
	return NULL;
}

struct live_run *rig_submit(struct rig *r, const char *job)
{
	struct err err = {0};
	struct live_run *lr = rig_try_submit(r, "request-0123456789", job, &err);

	if (!lr)
		fail_msg("the run is refused: %s", err.msg);
	return lr;
}

struct live_run *rig_run(struct rig *r)
{
	struct str id;
	void *value = NULL;
	size_t i = 0;

	return r->up && map_at(r->m.runs, &i, &id, &value) ? value : NULL;
}

void rig_cancel(struct rig *r, bool hurry)
{
	run_event(rig_run(r),
		  &(struct event){.kind = EV_CANCEL, .hurry = hurry, .text = "the test"});
}

/* ---- sockets ---- */

static int dial(struct rig *r, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", r->home, name);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

int rig_http(struct rig *r, const char *method, const char *path, const char *body)
{
	CLEANUP(freep)
	char *request =
		xasprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
			  "Content-Length: %zu\r\n\r\n%s",
			  method, path, strlen(body), body);
	CLEANUP(close_fdp) int fd = dial(r, LAYOUT_API_SOCKET);
	char answer[64];
	ssize_t n;

	assert_true(fd >= 0);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	for (int64_t until = rig_deadline();;) {
		rig_turn(r); /* the answer of a master that ends comes, too */
		n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
		if (n >= 0 || rig_late(until))
			break;
	}
	if (n < 12)
		return 0;
	answer[12] = '\0';
	int64_t status;

	assert_true(str_to_i64(str_from(answer + 9), &status));
	return (int)status;
}

/* ---- agents ---- */

struct rig_agent *rig_agent(struct rig *r, int rank)
{
	struct rig_agent *a = xcalloc(1, sizeof(*a));

	a->r = r;
	a->rank = rank;
	a->fd = -1;
	a->output = "hello\n";
	buf_init(&a->rx, RX_MAX);
	buf_init(&a->start, FRAME_MAX_PAYLOAD);
	*vec_push(&r->agents) = a;
	return a;
}

void agent_hang_up(struct rig_agent *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

void agent_dial(struct rig_agent *a)
{
	agent_hang_up(a);
	buf_reset(&a->rx);
	memset(a->seen, 0, sizeof(a->seen));
	a->closed = false;
	a->fd = dial(a->r, LAYOUT_LINK_SOCKET);
}

static void say(struct rig_agent *a, enum frame_type type, uint16_t channel, struct str head,
		struct str body)
{
	uint8_t header[FRAME_HEADER];
	struct buf all;

	if (a->fd < 0)
		return;
	buf_init(&all, RX_MAX);
	frame_header(header, (uint8_t)type, 0, channel, (uint32_t)(head.n + body.n));
	buf_add(&all, header, sizeof(header));
	buf_add(&all, head.p, head.n);
	buf_add(&all, body.p, body.n);
	ssize_t n = send(a->fd, all.p, all.n, MSG_NOSIGNAL);

	/* A master that has left does not read. */
	if (n < 0)
		a->closed = true;
	else
		assert_int_equal(n, all.n);
	buf_release(&all);
}

static void say_buf(struct rig_agent *a, enum frame_type type, struct buf *b)
{
	say(a, type, 0, STR(""), buf_str(b));
	buf_release(b);
}

void agent_say(struct rig_agent *a, enum frame_type type, const char *json)
{
	say(a, type, 0, STR(""), str_from(json));
}

void agent_say_on(struct rig_agent *a, enum frame_type type, uint16_t channel, const char *payload)
{
	say(a, type, channel, STR(""), str_from(payload));
}

static struct exit_report exit_of(const struct rig_agent *a, int code)
{
	return (struct exit_report){
		.attempt = a->attempt, .code = code, .streams = {strlen(a->output)}};
}

void agent_hello(struct rig_agent *a, const char *token)
{
	struct live_run *lr = rig_run(a->r);
	struct exit_report e = exit_of(a, 0);
	char right[65];
	struct buf b;

	assert_non_null(lr);
	a->name = lr->plan.crew.members[a->rank].name;
	snprintf(a->log, sizeof(a->log), "%s/%s.log", lr->logs_dir, a->name);
	int incarnation = a->incarnation ? a->incarnation : lr->core->nodes[a->rank].incarnation;

	node_token(lr, a->name, incarnation, right);
	agent_dial(a);
	struct message_hello m = {
		.proto = LINK_PROTO,
		.run = lr->row.id,
		.node = a->name,
		.token = token ? token : right,
		.incarnation = incarnation,
		.boot_id = "b",
		.pid = 1,
		.version = "0",
		.attempt = a->attempt,
		.holds = a->attempt ? HOLDS_STARTED : HOLDS_NOTHING,
		.streams = {a->attempt ? strlen(a->output) : 0},
		.exit = a->ended ? &e : NULL,
		.address = a->address,
		.interface = a->interface,
		.templates = a->templates,
		.inspect = a->inspect,
		.exec = true,
	};
	buf_init(&b, MESSAGE_HELLO_MAX);
	message_hello_put(&m, &b);
	say_buf(a, FRAME_HELLO, &b);
}

void agent_data(struct rig_agent *a, enum stream s, uint64_t offset, struct str bytes)
{
	uint8_t head[8];

	data_offset_put(head, offset);
	say(a, FRAME_DATA, (uint16_t)s, (struct str){(char *)head, sizeof(head)}, bytes);
}

static void say_metrics(struct rig_agent *a, uint64_t from, uint64_t to)
{
	struct buf b;

	buf_init(&b, 4096);
	message_metrics_put(&(struct message_metrics){.from = from, .to = to}, &b);
	say_buf(a, FRAME_METRICS, &b);
}

void agent_exit(struct rig_agent *a, int code)
{
	struct exit_report e = exit_of(a, code);
	struct buf b;

	a->ended = true;
	buf_init(&b, 4096);
	message_exit_put(&e, &b);
	say_buf(a, FRAME_EXIT, &b);
}

static void say_output(struct rig_agent *a)
{
	size_t n = strlen(a->output);

	if (a->acks[STREAM_OUT].stored < n)
		agent_data(a, STREAM_OUT, a->acks[STREAM_OUT].stored,
			   str_from(a->output + a->acks[STREAM_OUT].stored));
	if (a->acks[STREAM_OUT].scanned < n)
		say_metrics(a, a->acks[STREAM_OUT].scanned, n);
}

/* Rule: what an agent may forget is on disk. */
static void check_ack(struct rig_agent *a, int s, uint64_t stored_bytes, uint64_t scanned)
{
	struct live_run *lr = rig_run(a->r);
	char sql[200];

	if (!lr)
		return;
	CLEANUP(freep)
	char *path = xasprintf("%s/%s%s", lr->logs_dir, a->name, stream_suffix((enum stream)s));
	const struct synced *on_disk = synced_of(path);

	if (stored_bytes > (on_disk ? on_disk->bytes : 0))
		broken("%llu bytes of %s are acknowledged, %llu are synced",
		       (unsigned long long)stored_bytes, path,
		       (unsigned long long)(on_disk ? on_disk->bytes : 0));
	snprintf(sql, sizeof(sql), "SELECT offset FROM scan WHERE rank = %d AND stream = %d",
		 a->rank, s);
	if (scanned > 0 && (int64_t)scanned > rig_stored(a->r, sql))
		broken("metrics up to %llu are acknowledged, and not committed",
		       (unsigned long long)scanned);
}

static void on_welcome(struct rig_agent *a, struct str payload)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_welcome m;

	assert_int_equal(message_welcome_get(payload, mem, &m, NULL), 0);
	for (int s = 0; s < STREAMS; s++) {
		check_ack(a, s, m.acks[s], 0);
		a->acks[s] = (struct message_ack){m.acks[s], m.scanned[s]};
	}
}

static void on_ack(struct rig_agent *a, const struct frame *f)
{
	struct message_ack m;

	assert_true(f->channel < STREAMS);
	assert_int_equal(message_ack_get(f->payload, &m, NULL), 0);
	check_ack(a, f->channel, m.stored, m.scanned);
	a->acks[f->channel] = m;
}

/* Rule: a start is sent when it is stored that it was; otherwise the next master sends another. */
static void on_start(struct rig_agent *a, struct str payload)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_start m;
	struct err err = {0};
	char sql[200];

	a->start_bytes = payload.n;
	buf_reset(&a->start);
	buf_addstr(&a->start, payload);
	if (message_start_get(payload, mem, &m, &err) < 0) {
		broken("the START cannot be read: %s", err.msg);
		return;
	}
	snprintf(sql, sizeof(sql), "SELECT attempt FROM node WHERE rank = %d AND start_sent = 1",
		 a->rank);
	if (rig_stored(a->r, sql) != m.attempt)
		broken("attempt %d is started before that is committed", m.attempt);
	if (a->attempt != m.attempt)
		a->starts++;
	a->attempt = m.attempt;
}

/* Rule: a machine that knows its node is in the rows. */
static void on_enrolled(struct rig_agent *a)
{
	if (stored(a->r, "SELECT count(*) FROM node WHERE identity = ?1", a->identity, NULL) != 1)
		broken("%s was enrolled, but no stored row has it", a->identity);
}

static void take(struct rig_agent *a, const struct frame *f)
{
	a->seen[f->type]++;
	a->channel = f->channel;
	snprintf(a->last[f->type], RIG_TEXT, "%.*s",
		 (int)(f->payload.n < RIG_TEXT ? f->payload.n : RIG_TEXT - 1), f->payload.p);
	if (f->type == FRAME_WELCOME)
		on_welcome(a, f->payload);
	else if (f->type == FRAME_ACK)
		on_ack(a, f);
	else if (f->type == FRAME_START)
		on_start(a, f->payload);
	else if (f->type == FRAME_ENROLLED)
		on_enrolled(a);
	else if (f->type == FRAME_RELEASE)
		a->released = true;
}

void agent_read(struct rig_agent *a)
{
	struct frame f;
	size_t used;

	while (a->fd >= 0 && !a->closed) {
		char *room = buf_reserve(&a->rx, 64 * 1024);
		ssize_t n = recv(a->fd, room, 64 * 1024, MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n > 0)
			buf_commit(&a->rx, (size_t)n);
		else
			a->closed = true;
		while (frame_decode(buf_str(&a->rx), &f, &used) > 0) {
			take(a, &f);
			buf_drop_front(&a->rx, used);
		}
	}
}

void agent_wait(struct rig_agent *a, enum frame_type type)
{
	for (int64_t until = rig_deadline(); !a->seen[type];)
		if (!rig_turn(a->r) || rig_late(until))
			fail_msg("no %s comes%s", frame_type_name((uint8_t)type),
				 a->closed ? ": the master has closed" : "");
}

void agent_wait_closed(struct rig_agent *a)
{
	rig_until(a->r, a->closed);
	agent_hang_up(a);
}

void agent_run(struct rig_agent *a)
{
	rig_until(a->r, rig_run(a->r)->core->resources[a->rank].state == RES_LIVE);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	agent_say(a, FRAME_READY, "{\"ok\":true}");
	agent_wait(a, FRAME_START);
	agent_say(a, FRAME_STARTED, "{\"attempt\":1,\"pid\":1}");
}

void agent_hand_over(struct rig_agent *a)
{
	say_output(a);
	agent_exit(a, 0);
	agent_say(a, FRAME_COLLECTED, COLLECTED_NOTHING);
}

void agent_finish(struct rig_agent *a)
{
	agent_hand_over(a);
	agent_wait(a, FRAME_RELEASE);
	agent_hang_up(a);
}

/* One word a turn, so that as many commits as possible lie between them. */
static void say_next(struct rig_agent *a)
{
	switch (a->said++) {
	case 0:
		agent_say(a, FRAME_STARTED, "{\"attempt\":1,\"pid\":1}");
		return;
	case 1:
		say_output(a);
		return;
	case 2:
		agent_exit(a, 0);
		return;
	case 3:
		agent_say(a, FRAME_COLLECTED, COLLECTED_NOTHING);
		return;
	}
}

void agent_play(struct rig_agent *a)
{
	struct live_run *lr = rig_run(a->r);

	if (a->closed || a->released)
		agent_hang_up(a);
	if (a->fd < 0) {
		if (!a->released && lr && !lr->ended &&
		    rig_exists(a->r, lr->plan.crew.members[a->rank].name))
			agent_hello(a, NULL);
		a->said = a->attempt ? 1 : 0; /* a hello stands for STARTED */
		return;
	}
	if (!a->seen[FRAME_WELCOME])
		return;
	if (a->seen[FRAME_INPUTS]) {
		a->seen[FRAME_INPUTS] = 0;
		agent_say(a, FRAME_READY, "{\"ok\":true}");
	} else if (a->attempt) {
		say_next(a);
	}
}
