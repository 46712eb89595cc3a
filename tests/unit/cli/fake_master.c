#include "cli/fake_master.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/enrol.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "driver/driver.h"
#include "driver/input_find.h"
#include "driver/registry_login.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "host/host.h"
#include "host/install.h"
#include "master/master.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "sim/sim.h"
#include "sys/loop.h"

#define MAX_FILE (64u << 20)
#define LONGEST_LIFE_MS 60000 /* a test that forgets its master does not leave it for long */

struct fake {
	char *home;
	struct loop *loop;
	struct http_server *http;
	struct tls_server *tls;
	int submits;
	bool cancelled;
};

struct stream {
	struct fake *f;
	struct http_exchange *x;
	struct loop_timer *timer;
	char *text;
	struct str rest;
	bool wait_cancel;
	bool only_last;
};

static bool read_home(const struct fake *f, const char *name, struct buf *out)
{
	CLEANUP(freep) char *path = path_join(f->home, name);

	return file_read(path, out, NULL) == 0;
}

static bool in_home(const struct fake *f, const char *name)
{
	CLEANUP(freep) char *path = path_join(f->home, name);

	return file_exists(path);
}

/* Does this fault strike now? */
static bool fault(const struct fake *f, const char *name)
{
	CLEANUP(buf_release) struct buf left;
	char file[64];

	buf_init(&left, 4096);
	snprintf(file, sizeof(file), "fault-%s", name);
	if (!read_home(f, file, &left) || left.n == 0)
		return false;
	CLEANUP(freep) char *path = path_join(f->home, file);
	file_write_atomic(path, (struct str){left.p, left.n - 1}, 0600, false, NULL);
	return true;
}

static void note_request(const struct fake *f, const struct http_request *r)
{
	CLEANUP(freep) char *path = path_join(f->home, "requests.log");
	CLEANUP(close_fdp) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	CLEANUP(buf_release) struct buf line;

	buf_init(&line, MAX_FILE);
	buf_printf(&line, "%.*s %.*s", STR_ARG(r->method), STR_ARG(r->path));
	if (r->raw_query.n)
		buf_printf(&line, "?%.*s", STR_ARG(r->raw_query));
	buf_addc(&line, ' ');
	if (!str_is(r->method, "PUT")) /* an archive is no text */
		buf_addstr(&line, r->body);
	buf_addc(&line, '\n');
	file_write_all(fd, line.p, line.n, NULL);
}

static void reply_error(struct http_exchange *x, int status, const char *kind, const char *message,
			const char *details)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, 8192);
	buf_printf(&b, "{\"error\":{\"kind\":\"%s\",\"message\":\"%s\"%s%s}}", kind, message,
		   details ? ",\"details\":" : "", details ? details : "");
	http_reply(x, status, "application/json", buf_str(&b));
}

static void reply_file(struct fake *f, struct http_exchange *x, int status, const char *name)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, MAX_FILE);
	if (read_home(f, name, &b))
		http_reply(x, status, "application/json", buf_str(&b));
	else
		reply_error(x, 404, "not_found", "no run 'that'", NULL);
}

static void reply_run(struct fake *f, struct http_exchange *x, int status)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, MAX_FILE);
	if (in_home(f, "run.json")) {
		reply_file(f, x, status, "run.json");
		return;
	}
	read_home(f, "watch.jsonl", &b);
	struct str all = buf_str(&b);
	http_reply(x, status, "application/json", str_cut(&all, '\n'));
}

static void stream_free(struct stream *s)
{
	s->timer = loop_timer_free(s->timer);
	free(s->text);
	free(s);
}

static void on_gone(void *ctx)
{
	stream_free(ctx);
}

static void send_next(void *ctx)
{
	struct stream *s = ctx;
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, MAX_FILE);
	if (s->wait_cancel && s->rest.p != s->text) {
		if (!s->f->cancelled) {
			loop_timer_set(s->timer, 1);
			return;
		}
		read_home(s->f, "cancelled.json", &b);
		http_stream_write(s->x, buf_str(&b));
		s->rest = STR("");
	}
	if (s->rest.p != s->text && fault(s->f, "die-watch"))
		_exit(9);
	if (s->rest.n == 0 || (s->rest.p != s->text && fault(s->f, "end-watch"))) {
		http_stream_end(s->x);
		stream_free(s);
		return;
	}
	const char *nl = memchr(s->rest.p, '\n', s->rest.n);
	size_t n = nl ? (size_t)(nl + 1 - s->rest.p) : s->rest.n;
	if (!s->only_last || (n == s->rest.n && !s->wait_cancel))
		http_stream_write(s->x, (struct str){s->rest.p, n});
	s->rest = (struct str){s->rest.p + n, s->rest.n - n};
	loop_timer_set(s->timer, 1);
}

static void begin_stream(struct fake *f, struct http_exchange *x, const char *name)
{
	struct stream *s = xcalloc(1, sizeof(*s));
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, MAX_FILE);
	read_home(f, name, &b);
	s->f = f;
	s->x = x;
	s->rest.n = b.n;
	s->text = b.n ? buf_take(&b) : xstrdup("");
	s->rest.p = s->text;
	s->only_last = str_is(query_get(&http_request(x)->query, "last", STR("0")), "1");
	s->wait_cancel = strcmp(name, "watch.jsonl") == 0 && in_home(f, "cancelled.json");
	s->timer = loop_timer_new(f->loop, send_next, s);
	http_stream_begin(x, 200, "application/x-ndjson", on_gone, s);
	loop_timer_set(s->timer, 0);
}

static size_t tail_start(struct str all, int64_t lines)
{
	size_t i = all.n;

	if (lines == 0)
		return i;
	if (i && all.p[i - 1] == '\n')
		i--;
	for (; i > 0; i--)
		if (all.p[i - 1] == '\n' && --lines == 0)
			return i;
	return 0;
}

static void send_log(struct fake *f, struct http_exchange *x, struct str bytes)
{
	if (bytes.n && fault(f, "die-log")) {
		http_stream_begin(x, 200, "application/octet-stream", on_gone,
				  xcalloc(1, sizeof(struct stream)));
		http_stream_write(x, (struct str){bytes.p, (bytes.n + 1) / 2});
		for (int i = 0; i < 20 && http_stream_queued(x); i++)
			loop_round(f->loop, 1);
		_exit(9);
	}
	http_reply(x, 200, "application/octet-stream", bytes);
}

/* Pieces of both logs.  <node>.order says how long they are ("o3e2": three bytes of standard
 * output, ...); what it leaves out follows, standard output first. */
static void reply_both_logs(struct fake *f, struct http_exchange *x, struct str node)
{
	static const char *const names[] = {"out", "err"}, *const from[] = {"offset", "err_offset"};
	const struct http_request *r = http_request(x);
	CLEANUP(buf_release) struct buf order, body;
	struct buf logs[2];
	size_t pos[2] = {0}, begin[2];
	int64_t tail = -1;
	char text[160];

	str_to_i64(query_get(&r->query, "tail", STR("-1")), &tail);
	for (int i = 0; i < 2; i++) {
		int64_t offset = 0;
		buf_init(&logs[i], MAX_FILE);
		snprintf(text, sizeof(text), "%.*s.%s", STR_ARG(node), names[i]);
		read_home(f, text, &logs[i]);
		str_to_i64(query_get(&r->query, from[i], STR("0")), &offset);
		begin[i] = tail >= 0 ? tail_start(buf_str(&logs[i]), tail) : (size_t)offset;
		snprintf(text, sizeof(text), "%zu", begin[i]);
		http_add_header(x, i ? "Regatta-Err-Offset" : "Regatta-Offset", text);
	}
	buf_init(&order, 4096);
	buf_init(&body, MAX_FILE);
	snprintf(text, sizeof(text), "%.*s.order", STR_ARG(node));
	read_home(f, text, &order);
	buf_addz(&order, "o99999999e99999999");
	for (const char *p = order.p; *p;) {
		int i = *p++ == 'e';
		size_t n = strtoul(p, (char **)&p, 10), end = pos[i] + n;
		end = end < logs[i].n ? end : logs[i].n;
		if (pos[i] < begin[i])
			pos[i] = begin[i] < end ? begin[i] : end;
		if (end > pos[i]) {
			buf_printf(&body, "%s %zu\n", names[i], end - pos[i]);
			buf_add(&body, logs[i].p + pos[i], end - pos[i]);
		}
		pos[i] = end;
	}
	send_log(f, x, buf_str(&body));
	buf_release(&logs[0]);
	buf_release(&logs[1]);
}

static void reply_log(struct fake *f, struct http_exchange *x, struct str node)
{
	const struct http_request *r = http_request(x);
	CLEANUP(buf_release) struct buf b;
	char name[128], text[32];
	int64_t offset = 0, tail = -1;

	buf_init(&b, MAX_FILE);
	snprintf(name, sizeof(name), "%.*s.%.*s", STR_ARG(node),
		 STR_ARG(query_get(&r->query, "stream", STR("out"))));
	if (!read_home(f, name, &b) && str_starts(node, STR("ghost"))) {
		reply_error(x, 404, "not_found", "no such node", NULL);
		return;
	}
	if (str_is(query_get(&r->query, "stream", STR("")), "both") && b.n == 0) {
		reply_both_logs(f, x, node);
		return;
	}
	struct str all = buf_str(&b);
	str_to_i64(query_get(&r->query, "offset", STR("0")), &offset);
	str_to_i64(query_get(&r->query, "tail", STR("-1")), &tail);
	size_t from = tail >= 0 ? tail_start(all, tail) : (size_t)offset;
	from = from < all.n ? from : all.n;
	snprintf(text, sizeof(text), "%zu", from);
	http_add_header(x, "Regatta-Offset", text);
	send_log(f, x, (struct str){all.p + from, all.n - from});
}

static void submit(struct fake *f, struct http_exchange *x)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, MAX_FILE);
	if (fault(f, "die-submit"))
		_exit(9);
	if (fault(f, "busy")) {
		reply_error(x, 503, "unavailable", "the master is about to stop", NULL);
	} else if (in_home(f, "refuse.json")) {
		read_home(f, "refuse.json", &b);
		http_reply(x, 400, "application/json", buf_str(&b));
	} else if (fault(f, "no-blob")) {
		reply_error(x, 404, "not_found", "the archive was not uploaded", NULL);
	} else if (fault(f, "noid")) {
		http_reply(x, 201, "application/json", STR("{}"));
	} else {
		f->submits++;
		reply_run(f, x, 201);
	}
}

static void stop_now(void *ctx)
{
	loop_stop(((struct fake *)ctx)->loop);
}

static void on_run(struct fake *f, struct http_exchange *x, struct str path)
{
	struct str id = str_cut(&path, '/'), what = path.p ? str_cut(&path, '/') : STR("");
	char numbered[32];

	snprintf(numbered, sizeof(numbered), "watch-%d.jsonl", f->submits);
	if (str_is(id, "many"))
		reply_error(x, 409, "conflict", "'many' is several runs",
			    "[\"many-aaaa\",\"many-\\u001bbbb\"]");
	else if (str_is(id, "nothing"))
		reply_error(x, 404, "not_found", "no run 'nothing'", NULL);
	else if (str_is(id, "gone") || str_is(id, "refused") ||
		 (str_starts(id, STR("afar")) && !in_home(f, "imported")))
		reply_error(x, 404, "not_found", "no run of that name", NULL);
	else if (str_is(what, ""))
		reply_run(f, x, 200);
	else if (str_is(what, "watch"))
		begin_stream(f, x, in_home(f, numbered) ? numbered : "watch.jsonl");
	else if (str_is(what, "events"))
		begin_stream(f, x, "events.jsonl");
	else if (str_is(what, "metrics"))
		reply_file(f, x, 200, "metrics.json");
	else if (str_is(what, "logs"))
		reply_log(f, x, path);
	else if (str_is(what, "report"))
		http_reply(x, 200, "application/json", STR("{\"dir\":\"/runs/job-abcd\"}"));
	else if (str_is(what, "size"))
		http_reply(x, 200, "application/json", STR("{\"bytes\":100}"));
	else if (str_is(what, "outputs") && !path.p)
		reply_file(f, x, 200, "outputs.json");
	else if (str_is(what, "outputs"))
		http_reply(x, 200, "application/octet-stream", STR("abc"));
	else if (str_is(what, "metrics.csv"))
		http_reply(x, 200, "text/csv", STR("time\r\n"));
	else if (str_is(what, "cancel")) {
		f->cancelled = true;
		reply_run(f, x, 200);
	} else if (str_is(what, "cleanup") && fault(f, "gone"))
		reply_error(x, 404, "not_found", "there is no such run", NULL);
	else if (str_is(what, "cleanup") && fault(f, "watched"))
		reply_error(x, 409, "conflict", "being watched: try again", NULL);
	else if (str_is(what, "cleanup"))
		http_reply(x, 200, "application/json",
			   STR("{\"removed\":true,\"dir\":\"/runs/gone\"}"));
	else
		reply_error(x, 404, "not_found", "no such path", NULL);
}

static bool has_token(const struct fake *f, struct http_exchange *x)
{
	CLEANUP(buf_release) struct buf token, want;

	buf_init(&token, 4096);
	buf_init(&want, 4096);
	read_home(f, "token", &token);
	buf_printf(&want, "Bearer %.*s", STR_ARG(buf_str(&token)));
	return str_eq(http_header(x, "authorization"), buf_str(&want));
}

static void on_request(void *ctx, struct http_exchange *x)
{
	struct fake *f = ctx;
	const struct http_request *r = http_request(x);
	struct str runs = STR("/api/v1/runs/"), blobs = STR("/api/v1/blobs/");
	char name[128];

	note_request(f, r);
	if (!r->local && !has_token(f, x)) {
		reply_error(x, 401, "denied", "the token or session is wrong, revoked or too old",
			    NULL);
	} else if (in_home(f, "old-api") && str_is(r->path, "/api/v1/me")) {
		reply_error(x, 404, "not_found", "no such path", NULL);
	} else if (str_is(r->path, "/api/v1/me")) {
		http_reply(x, 200, "application/json",
			   STR("{\"scope\":\"submit\",\"version\":\"9.9\"}"));
	} else if (str_starts(r->path, runs)) {
		on_run(f, x, (struct str){r->path.p + runs.n, r->path.n - runs.n});
	} else if (str_is(r->path, "/api/v1/runs")) {
		if (str_is(r->method, "POST"))
			submit(f, x);
		else
			reply_file(f, x, 200, "runs.json");
	} else if (str_is(r->path, "/api/v1/suites") && !in_home(f, "suites.json")) {
		http_reply(x, 200, "application/json", STR("{\"suites\":[]}"));
	} else if (str_is(r->path, "/api/v1/suites")) {
		reply_file(f, x, 200, "suites.json");
	} else if (str_starts(r->path, STR("/api/v1/suites/"))) {
		reply_file(f, x, 200, "suite.json");
	} else if (str_is(r->path, "/api/v1/imports")) {
		if (fault(f, "import")) {
			reply_error(x, 400, "invalid", "its copy is damaged", NULL);
			return;
		}
		CLEANUP(freep) char *imported = path_join(f->home, "imported");
		file_write_atomic(imported, STR("yes"), 0600, false, NULL);
		http_reply(x, 200, "application/json", STR("{\"id\":\"afar\"}"));
	} else if (str_is(r->path, "/api/v1/compare")) {
		if (in_home(f, "imported"))
			http_reply(x, 200, "application/json", STR("{\"metrics\":[{}]}"));
		else
			reply_error(x, 404, "not_found", "no run or job 'afar'", NULL);
	} else if (str_starts(r->path, blobs)) {
		snprintf(name, sizeof(name), "blob-%.*s", (int)(r->path.n - blobs.n),
			 r->path.p + blobs.n);
		if (str_is(r->method, "HEAD") && !in_home(f, name)) {
			reply_error(x, 404, "not_found", "no such blob", NULL);
			return;
		}
		CLEANUP(freep) char *path = path_join(f->home, name);
		file_write_atomic(path, STR("here"), 0600, false, NULL);
		http_reply(x, 200, "application/json", STR(""));
	} else if (str_is(r->path, "/api/v1/version")) {
		CLEANUP(buf_release) struct buf b;
		buf_init(&b, 4096);
		buf_printf(&b, "{\"version\":\"fake\",\"pid\":%d,\"runs_active\":1}",
			   (int)getpid());
		http_reply(x, 200, "application/json", buf_str(&b));
	} else if (str_is(r->path, "/status")) {
		http_reply(x, 200, "text/plain", STR("all is well\n"));
	} else if (str_is(r->path, "/api/v1/login")) {
		http_reply(x, 200, "application/json", STR("{\"url\":\"http://here/login\"}"));
	} else if (str_is(r->path, "/api/v1/shutdown")) {
		http_reply(x, 200, "application/json", STR("{\"runs_active\":1}"));
		loop_soon(f->loop, stop_now, f);
	} else {
		reply_error(x, 404, "not_found", "no such path", NULL);
	}
}

static void too_old(void *ctx)
{
	loop_stop(((struct fake *)ctx)->loop);
}

/* "listen" has the port, or 0 for any; "http" gets the port and the pin. */
static int listen_beyond(struct fake *f, struct err *err)
{
	CLEANUP(buf_release) struct buf text;
	char pin[TLS_PIN_SIZE];
	int64_t port = 0;
	int got;

	buf_init(&text, 4096);
	read_home(f, "listen", &text);
	str_to_i64(buf_str(&text), &port);
	if (tls_server_open(f->home, &f->tls, err) < 0 ||
	    http_server_listen_tls(f->http, "127.0.0.1", (int)port, f->tls, &got, err) < 0)
		return -1;
	tls_server_pin(f->tls, pin);
	buf_reset(&text);
	buf_printf(&text, "%d %s", got, pin);
	CLEANUP(freep) char *path = path_join(f->home, "http");
	return file_write_atomic(path, buf_str(&text), 0600, false, err);
}

int master_main(const struct master_options *o)
{
	static const struct http_handler handler = {.on_request = on_request};
	struct fake f = {.home = xstrdup(o->home)};
	CLEANUP(freep) char *lock_path = path_join(o->home, "lock");
	struct err err;

	if (fault(&f, "start")) {
		fprintf(stderr, "first line\nfake: the database is of version 99\n");
		free(f.home);
		return 8;
	}
	CLEANUP(close_fdp) int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (o->listen)
		printf("listen %s\n", o->listen);
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		fprintf(stderr, "a master is already running\n");
		free(f.home);
		return 2;
	}
	if (ftruncate(lock, 0) < 0 || dprintf(lock, "%d\n", (int)getpid()) < 0)
		return 8;
	f.loop = loop_new();
	f.http = http_server_new(f.loop,
				 &(struct http_limits){.max_body = MAX_FILE, .max_queue = MAX_FILE},
				 &handler, &f);
	if (http_server_listen_unix(f.http, o->home, "api.sock", &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 8;
	}
	if (in_home(&f, "listen") && listen_beyond(&f, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 8;
	}
	struct loop_timer *age = loop_timer_new(f.loop, too_old, &f);
	loop_timer_set(age, LONGEST_LIFE_MS);
	loop_run(f.loop);
	loop_timer_free(age);
	http_server_free(f.http);
	tls_server_free(f.tls);
	loop_free(f.loop);
	free(f.home);
	return 0;
}

/* The other roles only say that they were called, and how. */
int agent_main(const char *dir)
{
	printf("agent %s\n", dir);
	fflush(stdout);
	return 0;
}

int agent_enrol_main(const char *file)
{
	printf("enrol %s\n", file);
	fflush(stdout);
	return 0;
}

int host_main(const struct host_options *o)
{
	printf("host %s pin=%s token=%s name=%s dir=%s", o->url, o->pin, o->token, o->name, o->dir);
	for (size_t i = 0; i < o->nlabels; i++)
		printf(" %s=%s", o->labels[i].name, o->labels[i].value);
	printf("\n");
	fflush(stdout);
	return 0;
}

int host_check_name(const char *name, struct err *err)
{
	return *name ? 0 : err_set(err, ERR_INVALID, "no name");
}

int install_host(const struct host_options *o, const struct install_places *p, struct buf *told,
		 struct err *err)
{
	(void)err;
	buf_printf(told, "install %s in %s, user %d\n", o->name, p->unit_dir, p->user);
	return 0;
}

int sim_main(const struct sim_options *o)
{
	printf("sim first=%llu seeds=%lld nodes=%d verbose=%d json=%d\n",
	       (unsigned long long)o->first_seed, (long long)o->seeds, o->nodes, o->verbose,
	       o->json);
	fflush(stdout);
	return 0;
}

/* Engines that leave their facts to the client. */
static int fake_resolve(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
			struct err *err)
{
	struct str profile = doc_str(in->options, "profile", STR(""));

	if (str_is(profile, "nobody"))
		return err_set(err, ERR_DENIED, "there are no credentials");
	*ret_facts = doc_new(a, DOC_TABLE);
	doc_set(a, *ret_facts, STR("account"), doc_new_str(a, STR("1")));
	return 0;
}

static int fake_credentials(const struct resolve_input *in, struct arena *a, struct doc **ret,
			    struct err *err)
{
	(void)in;
	(void)err;
	*ret = doc_new(a, DOC_TABLE);
	doc_set(a, *ret, STR("access_key"), doc_new_str(a, STR("AK")));
	return 0;
}

int object_credentials(const char *url, const struct doc *options, struct arena *a,
		       struct doc **ret, struct err *err)
{
	(void)options;
	if (strncmp(url, "s3://mine/", 10) != 0)
		return err_set(err, ERR_DENIED, "no credentials");
	*ret = doc_new(a, DOC_TABLE);
	doc_set(a, *ret, STR("access_key"), doc_new_str(a, STR("SK")));
	return 0;
}

int object_store_open(const char *url, const struct object_access *who, const struct deadline *d,
		      struct object_store **ret, struct err *err)
{
	(void)who;
	(void)d;
	(void)err;
	*ret = (struct object_store *)xstrdup(url);
	return 0;
}

struct object_store *object_store_free(struct object_store *st)
{
	free(st);
	return NULL;
}

int object_store_check(struct object_store *st, const struct deadline *d, struct err *err)
{
	const char *url = (const char *)st;

	(void)d;
	if (strcmp(url, "s3://mine/gone/") == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such bucket");
	if (strcmp(url, "s3://mine/far/") == 0)
		return err_set(err, ERR_UNAVAILABLE, "nobody answers");
	return 0;
}

int registry_login_credentials(const char *login, struct arena *a, struct doc **ret,
			       struct err *err)
{
	(void)login;
	(void)a;
	(void)ret;
	return err_set(err, ERR_DENIED, "no credentials");
}

bool object_url_is(const char *url)
{
	return strncmp(url, "s3://", 5) == 0;
}

/* Three objects of 10 bytes below everything in a store but s3://none/. */
int input_find(const struct input_question *q, int fd, const struct deadline *d, struct arena *a,
	       struct input_found *ret, struct err *err)
{
	(void)d;
	(void)a;
	if (strncmp(q->url, "s3://none/", 10) == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such object");
	if (fd >= 0 && file_write_all(fd, "{}\n{}\n{}\n", 9, err) < 0)
		return -1;
	*ret = (struct input_found){.from = q->url,
				    .objects = object_url_is(q->url) ? 3 : 1,
				    .bytes = 30,
				    .largest_shard = 10,
				    .sized = true};
	return 0;
}

const struct resolver *resolver_for(const char *engine)
{
	static const struct resolver all[] = {
		{.engine = "aws.ec2",
		 .at_client = true,
		 .has_stores = true,
		 .resolve = fake_resolve,
		 .credentials = fake_credentials},
		{.engine = "kubernetes",
		 .at_client = true,
		 .resolve = fake_resolve,
		 .credentials = fake_credentials},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(engine, all[i].engine) == 0)
			return &all[i];
	return NULL;
}

bool fake_role(int argc, char **argv, int *ret_code)
{
	if (argc < 2 || strcmp(argv[1], "master") != 0)
		return false;
	*ret_code = cli_main(argc, argv);
	return true;
}
