#include "cli/client/api.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/contexts.h"
#include "cli/client/elsewhere.h"
#include "cli/client/target.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "net/http_client.h"

#define RUNS "/api/v1/runs/"
#define CALL_MS 30000
#define UPLOAD_MS (60 * 60 * 1000)
#define RETRY_MS 15000	  /* how long a call is repeated when its connection is lost */
#define RETRY_PAUSE_MS 10 /* between two attempts */
#define SLOW_S 3	  /* without an answer for so long: the user is told */
#define REMOTE_PAUSE_MS 250
#define DIAL_MS 10000	   /* another master, from the name to the end of the handshake */
#define QUICK_DIAL_MS 1500 /* for commands that work without a master too */
#define MAX_DETAILS (64 * 1024)
#define MAX_ERROR_BODY (256 * 1024)

/* A master that is stopped (SIGSTOP) takes connections and never answers: the user is told before
 * the call times out.  By SIGALRM, because only a signal interrupts every kind of wait. */
static char slow_text[200];

static void slow_prepare(const struct target *t)
{
	if (t->remote)
		snprintf(
			slow_text, sizeof(slow_text),
			"regatta: master '%.60s' has not answered for 3 s: it is stopped, very busy or "
			"cut off; waiting\n",
			t->name);
	else
		snprintf(
			slow_text, sizeof(slow_text),
			"regatta: the master has not answered for 3 s: it is stopped or very busy (its "
			"pid is in the file 'lock' of its home); waiting\n");
}

static void say_slow(int signo)
{
	(void)signo;
	if (write(STDERR_FILENO, slow_text, strlen(slow_text)) < 0)
		return; /* stderr is closed: ignored */
}

static void slow_watch(bool on)
{
	struct sigaction sa = {.sa_handler = on ? say_slow : SIG_DFL, .sa_flags = SA_RESTART};
	struct itimerval at = {.it_value = {.tv_sec = on ? SLOW_S : 0}};

	if (on)
		sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &at, NULL);
	if (!on)
		sigaction(SIGALRM, &sa, NULL);
}

static int ensure(struct api *api, struct err *err)
{
	const struct target *t = api->target;

	if (api->http)
		return 0;
	if (!t->remote)
		return master_connect(t->home, api->start, api->stop, &api->http, err);
	if (!api->hushed)
		slow_watch(true);
	int rc = target_dial(t, api->start ? DIAL_MS : QUICK_DIAL_MS, api->stop, &api->http, err);
	if (!api->hushed)
		slow_watch(false);
	return rc;
}

static void init(struct api *api, struct target *target, bool start)
{
	*api = (struct api){.target = target, .start = start};
	buf_init(&api->details, MAX_DETAILS);
}

static int open_target(struct api *api, struct target *target, bool start, struct err *err)
{
	init(api, target, start);
	slow_prepare(target);
	/* The socket of another user must not receive this user's environment. */
	if (home_check_owner(target->home, err) == 0 && ensure(api, err) == 0)
		return 0;
	api_release(api);
	return -1;
}

int api_open(struct api *api, bool start, struct err *err)
{
	struct target *target;

	return target_find_own(&target, err) < 0 ? -1 : open_target(api, target, start, err);
}

int api_open_for(struct api *api, const struct cli_call *c, const char *context, bool start,
		 struct err *err)
{
	const char *named = call_text(c, "master");
	struct target *target;

	if (target_find(named ? named : context, &target, err) < 0)
		return -1;
	if (open_target(api, target, start, err) < 0)
		return -1;
	const char *wanted = getenv("REGATTA_MASTER");

	api->by_default = !api->target->remote && !named && !context && !(wanted && *wanted);
	return 0;
}

int api_open_named(struct api *api, const struct cli_call *c, bool start, struct err *err)
{
	return api_open_for(api, c, NULL, start, err);
}

int api_open_handed(struct api *api, const char *run, struct err *err)
{
	struct target *target;

	return target_find(run, &target, err) < 0 ? -1 : open_target(api, target, false, err);
}

int api_open_target(struct api *api, struct target *target, struct err *err)
{
	return open_target(api, target, true, err);
}

void api_init_like(struct api *ret, const struct api *api)
{
	init(ret, api->target, api->start);
	ret->borrowed = ret->hushed = true;
	ret->stop = api->stop;
}

int api_open_another(const struct api *api, struct api *ret, struct err *err)
{
	api_init_like(ret, api);
	if (ensure(ret, err) == 0)
		return 0;
	api_release(ret);
	return -1;
}

const char *api_remote(const struct api *api)
{
	return api->target->remote ? api->target->name : NULL;
}

void api_drop(struct api *api)
{
	api->http = http_client_free(api->http);
}

void api_release(struct api *api)
{
	api_drop(api);
	if (!api->borrowed)
		target_free(api->target);
	api->target = NULL;
	buf_release(&api->details);
}

bool api_lost(const struct err *err)
{
	return err->kind == ERR_UNAVAILABLE || err->kind == ERR_IO;
}

static enum err_kind kind_of_status(int status)
{
	static const struct {
		int status;
		enum err_kind kind;
	} kinds[] = {
		{400, ERR_INVALID},   {401, ERR_DENIED},      {403, ERR_DENIED},
		{404, ERR_NOT_FOUND}, {409, ERR_CONFLICT},    {413, ERR_CAPACITY},
		{429, ERR_THROTTLED}, {503, ERR_UNAVAILABLE}, {504, ERR_TIMEOUT},
		{507, ERR_CAPACITY},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].status == status)
			return kinds[i].kind;
	return status >= 400 && status < 500 ? ERR_INVALID : ERR_IO;
}

/* The error object of a refused call as an error; its details are kept. */
static int refused(struct api *api, const struct http_answer *answer, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *root = NULL;
	enum err_kind kind = kind_of_status(answer->status);

	buf_reset(&api->details);
	if (reply_parse(buf_str(&answer->body), a, &root, err) < 0)
		root = NULL;
	const struct doc *e = doc_table(root, "error");
	struct str message = doc_str(e, "message", STR(""));
	struct str name = doc_str(e, "kind", STR(""));
	if (name.n && err_kind_from_name(name.p) != ERR_NONE)
		kind = err_kind_from_name(name.p);
	const struct doc *details = doc_array(e, "details");
	for (size_t i = 0; details && i < details->array.n; i++) {
		const struct doc *d = details->array.v[i];
		if (d->type != DOC_STRING)
			continue;
		escape_terminal(&api->details, d->s);
		buf_addc(&api->details, '\n');
	}
	const char *remote = api_remote(api);
	struct str before = doc_str(root, "message", STR("it says nothing"));
	if (api->target->way && answer->body.n > 0 && !e) /* not an answer of the master */
		err_set(err, kind, "the cluster does not pass the call on: %.*s (HTTP %d)%s",
			STR_ARG(before), answer->status,
			answer->status == 401
				? ": your credentials have expired, or are of another cluster"
				: "");
	else if (message.n == 0 && answer->status == 403) /* the answer to a HEAD has no body */
		err_set(err, kind, "the scope of this token does not allow this call");
	else if (message.n == 0 && answer->status == 507) /* refused in the middle of an upload */
		err_set(err, kind,
			"the disk where the master keeps its files is full: make room there; 'regatta "
			"cleanup RUN' removes a run that has ended");
	else if (message.n == 0)
		err_set(err, kind, "the master answered with status %d", answer->status);
	else if (answer->status == 404 && str_is(message, "no such path"))
		err_set(err, kind, "the master does not know this call: it is of another version");
	else if (answer->status == 401 && remote)
		err_set(err, kind,
			"the token is wrong, revoked or too old: 'regatta context add' takes a new one");
	else
		err_set(err, kind, "%.*s", STR_ARG(message));
	/* A refusal for the token names the master; other errors are about the call and need no name. */
	return remote && kind == ERR_DENIED ? err_wrap(err, "master '%.60s'", remote) : -1;
}

struct request {
	const char *method, *path;
	struct str body;
	int fd; /* -1: body */
	uint64_t size;
	int timeout_ms;
};

static int send_once(struct api *api, const struct request *r, struct http_answer *answer,
		     struct err *err)
{
	if (ensure(api, err) < 0)
		return -1;
	http_client_set_stop(api->http, api->stop);
	bool watched = r->fd < 0 && !api->hushed; /* an upload may take longer than SLOW_S */
	if (watched)
		slow_watch(true);
	int rc = r->fd >= 0 ? http_upload(api->http, r->method, r->path, r->fd, r->size,
					  r->timeout_ms, answer, err)
			    : http_call(api->http, r->method, r->path, r->body,
					r->body.p ? "application/json" : NULL, r->timeout_ms,
					answer, err);
	if (watched)
		slow_watch(false);
	if (rc < 0)
		api_drop(api);
	return rc;
}

/* Send until an answer comes: the user's own master is started again if it left, another one is dialled again. */
static int send_request(struct api *api, const struct request *r, struct http_answer *answer,
			struct err *err)
{
	int64_t deadline = clock_boot_ms() + RETRY_MS;

	for (;;) {
		buf_reset(&answer->body);
		int rc = send_once(api, r, answer, err);
		/* 503: this master is about to exit, the next one will take the call. */
		bool leaving = rc == 0 && answer->status == 503;
		if (rc == 0 && !leaving)
			return 0;
		/* ERR_UNAVAILABLE from connecting: it has already waited for the own master.  Another master was reached
		 * when the command began, and may be reachable again. */
		bool lost =
			leaving || (api_lost(err) && (api->start || err->kind != ERR_UNAVAILABLE));
		if (!lost || clock_boot_ms() >= deadline || (api->stop && *api->stop))
			return rc;
		api_drop(api);
		poll(NULL, 0, api_remote(api) ? REMOTE_PAUSE_MS : RETRY_PAUSE_MS);
		if (r->fd >= 0 && lseek(r->fd, 0, SEEK_SET) < 0)
			return -1;
	}
}

static void answer_releasep(struct http_answer *answer)
{
	http_answer_release(answer);
}

/* The run that a path is about, decoded; NULL if it is about none.  Owned. */
static char *run_of(const char *path)
{
	struct buf run;

	if (strncmp(path, RUNS, strlen(RUNS)) != 0)
		return NULL;
	path += strlen(RUNS);
	buf_init(&run, 4096);
	bool ok = url_decode(&run, (struct str){path, strcspn(path, "/?")}, false) && run.n;
	char *id = buf_take(&run);

	if (ok)
		return id;
	free(id);
	return NULL;
}

/* The own master was asked for something that it does not have: if that is the run, it may be elsewhere. */
static bool taken_in(struct api *api, const char *path, struct err *err)
{
	CLEANUP(freep) char *run = run_of(path);
	struct err why = {0};

	if (!run || err->kind != ERR_NOT_FOUND || api->looking || !api->start || api->borrowed ||
	    api_remote(api))
		return false;
	CLEANUP(freep) char *itself = api_run_path(run, "");

	api->looking = true;
	bool taken = api_get(api, itself, NULL, &why) < 0 && why.kind == ERR_NOT_FOUND &&
		     run_take_in(api, run, err) == 0;
	api->looking = false;
	return taken;
}

static int call_once(struct api *api, const char *method, const char *path, struct str body,
		     int timeout_ms, struct buf *ret_body, struct err *err)
{
	CLEANUP(answer_releasep) struct http_answer answer;
	struct request r = {
		.method = method, .path = path, .body = body, .fd = -1, .timeout_ms = timeout_ms};

	http_answer_init(&answer, API_MAX_ANSWER);
	if (send_request(api, &r, &answer, err) < 0)
		return err->kind != ERR_TIMEOUT ? -1
		       : api_remote(api)
			       ? err_wrap(err, "master '%.60s' does not answer", api_remote(api))
			       : err_wrap(err, "the master does not answer");
	if (answer.status < 200 || answer.status > 299)
		return refused(api, &answer, err);
	if (ret_body)
		buf_addstr(ret_body, buf_str(&answer.body));
	return 0;
}

int api_call(struct api *api, const char *method, const char *path, struct str body, int timeout_ms,
	     struct buf *ret_body, struct err *err)
{
	int rc = call_once(api, method, path, body, timeout_ms, ret_body, err);

	if (rc < 0 && strcmp(method, "GET") == 0 && taken_in(api, path, err))
		rc = call_once(api, method, path, body, timeout_ms, ret_body, err);
	return rc;
}

int api_get(struct api *api, const char *path, struct buf *ret_body, struct err *err)
{
	return api_call(api, "GET", path, (struct str){0}, CALL_MS, ret_body, err);
}

int api_get_doc(struct api *api, const char *path, struct arena *a, struct doc **ret,
		struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};

	buf_init(&body, API_MAX_ANSWER);
	if (api_get(api, path, &body, err) < 0)
		return -1;
	if (reply_parse(arena_str(a, buf_str(&body)), a, ret, err) < 0)
		return err_wrap(err, "the master's answer");
	return 0;
}

int api_upload(struct api *api, const char *path, int fd, uint64_t size, struct err *err)
{
	CLEANUP(answer_releasep) struct http_answer answer;
	struct request r = {
		.method = "PUT", .path = path, .fd = fd, .size = size, .timeout_ms = UPLOAD_MS};

	http_answer_init(&answer, MAX_ERROR_BODY);
	if (send_request(api, &r, &answer, err) < 0)
		return -1;
	return answer.status < 300 ? 0 : refused(api, &answer, err);
}

static int stream_once(struct api *api, const struct http_outgoing *r, struct err *err)
{
	CLEANUP(answer_releasep) struct http_answer answer;

	http_answer_init(&answer, MAX_ERROR_BODY);
	if (ensure(api, err) < 0)
		return -1;
	slow_watch(true);
	int rc = http_send_stream(api->http, r, &answer, err);
	slow_watch(false);
	if (rc == 0) {
		if (answer.status < 300)
			return 0;
		api_drop(api);
		return refused(api, &answer, err);
	}
	if (answer.status >= 300)
		refused(api, &answer, err);
	api_drop(api);
	return -1;
}

int api_stream(struct api *api, const char *path, struct err *err)
{
	const struct http_outgoing r = {.method = "GET", .path = path, .timeout_ms = CALL_MS};
	int rc = stream_once(api, &r, err);

	return rc < 0 && taken_in(api, path, err) ? stream_once(api, &r, err) : rc;
}

int api_stream_post(struct api *api, const char *path, struct str body, struct err *err)
{
	const struct http_outgoing r = {.method = "POST",
					.path = path,
					.timeout_ms = CALL_MS,
					.type = "application/json",
					.body = body};

	return stream_once(api, &r, err);
}

int api_fail(const struct api *api, const struct err *err)
{
	int code = cli_fail(err);
	struct err ignored;

	if (api->details.n)
		(void)file_write_all(STDERR_FILENO, api->details.p, api->details.n, &ignored);
	return code;
}

char *api_run_path(const char *run, const char *tail)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, 64 * 1024);
	buf_addz(&b, RUNS);
	url_encode(&b, str_from(run));
	buf_addz(&b, tail);
	return buf_take(&b);
}

const char *api_suite_path(struct arena *a, struct str suite, const char *tail)
{
	CLEANUP(buf_release) struct buf path = {0};

	buf_init(&path, 8192);
	buf_addz(&path, "/api/v1/suites/");
	url_encode(&path, suite);
	buf_addz(&path, tail);
	return arena_strndup(a, path.p, path.n);
}

void api_add_query(struct buf *b, const char *key, const char *value)
{
	if (!value)
		return;
	buf_printf(b, "%c%s=", memchr(b->p, '?', b->n) ? '&' : '?', key);
	url_encode(b, str_from(value));
}

static bool has_contexts(const struct api *api, struct arena *a)
{
	const char **names;
	size_t n = 0;

	return context_list(api->target->home, a, &names, &n, NULL) == 0 && n > 0;
}

/* The context of a master that was found elsewhere with the run of this name, or the only one of which it is the
 * beginning; NULL: none. */
static const char *found_context(const struct api *api, const char *word, struct arena *a)
{
	const char *home = api->target->home, **names, *found = NULL;
	struct context c;
	size_t n = 0;

	if (context_read(home, word, a, &c, NULL) == 0 && c.run)
		return word;
	if (context_list(home, a, &names, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!str_starts(str_from(names[i]), str_from(word)) ||
		    context_read(home, names[i], a, &c, NULL) < 0 || !c.run)
			continue;
		if (found)
			return NULL;
		found = names[i];
	}
	return found;
}

/* The context of the master that the run was handed to: by the own master, or by another machine's, if the own
 * one does not know the run.  NULL: the own master is the one to ask; with to_end it is that also for a run that
 * it has handed over.  *ret_found: it is another machine's run. */
static const char *context_of_run(struct api *api, const char *word, bool to_end, struct arena *a,
				  bool *ret_found)
{
	CLEANUP(freep) char *path = api_run_path(word, "");
	struct err why;
	struct doc *run;

	api->looking = true; /* only here: its results are not what is looked for */
	int rc = api_get_doc(api, path, a, &run, &why);

	api->looking = false;
	if (rc == 0)
		return run_is_handed_over(run) && !to_end ? doc_str(run, "id", STR("")).p : NULL;
	*ret_found = why.kind == ERR_NOT_FOUND;
	return *ret_found ? found_context(api, word, a) : NULL;
}

/* What is dialled of a master that its provider passes requests on to is the provider: does that know the master? */
static bool is_gone(struct api *api)
{
	CLEANUP(buf_release) struct buf ignored = {0};
	struct err why = {0};

	buf_init(&ignored, API_MAX_ANSWER);
	return api->target->way && api_get(api, "/api/v1/me", &ignored, &why) < 0 &&
	       why.kind == ERR_NOT_FOUND;
}

/* A run that was handed over is asked of the master that has it, while that one answers. */
static void go_to_run(struct api *api, const char *word, bool to_end, struct arena *a)
{
	bool found = false;
	const char *context = api->by_default && has_contexts(api, a)
				      ? context_of_run(api, word, to_end, a, &found)
				      : NULL;
	struct err why;
	struct api other;

	if (!context)
		return;
	if (api_open_handed(&other, context, &why) < 0) {
		/* The own master does not know it, and the other one, which may be there, cannot be asked. */
		if (found && why.kind != ERR_UNAVAILABLE)
			cli_say("%s", why.msg);
		return;
	}
	other.stop = api->stop;
	if (is_gone(&other)) {
		api_release(&other);
		return; /* the own master learns of it, or finds the results */
	}
	api_release(api);
	*api = other;
}

int api_open_found(const struct api *api, const char *run, struct api *ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *context = api->by_default ? found_context(api, run, a) : NULL;
	struct context c;

	if (api->by_default && !context && context_read(api->target->home, run, a, &c, err) < 0 &&
	    err->kind == ERR_DENIED) /* others can read it */
		return -1;
	if (!context)
		return err_set(err, ERR_NOT_FOUND, "no context has the master of run '%.80s'", run);
	if (api_open_handed(ret, context, err) < 0)
		return -1;
	ret->stop = api->stop;
	return 0;
}

bool run_is_handed_over(const struct doc *run)
{
	return str_is(doc_str(run, "state", STR("")), "running") &&
	       doc_str(run, "master_url", STR("")).n > 0;
}

static int pick(struct api *api, const char *word, bool to_end, char **ret_id, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *root;

	if (word) {
		if (*word == 0)
			return err_set(err, ERR_INVALID, "the name of a run is empty");
		*ret_id = xstrdup(word);
		go_to_run(api, word, to_end, a);
		return 0;
	}
	if (api_get_doc(api, "/api/v1/runs?state=all&limit=1", a, &root, err) < 0)
		return -1;
	const struct doc *runs = doc_array(root, "runs");
	struct str id = doc_str(runs && runs->array.n ? runs->array.v[0] : NULL, "id", STR(""));
	if (id.n == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "there are no runs yet: 'regatta run' starts one");
	cli_say("latest run: %.*s", STR_ARG(id));
	*ret_id = xstrndup(id.p, id.n);
	go_to_run(api, *ret_id, to_end, a);
	return 0;
}

int api_pick_run(struct api *api, const char *word, char **ret_id, struct err *err)
{
	return pick(api, word, false, ret_id, err);
}

int api_pick_run_to_end(struct api *api, const char *word, char **ret_id, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *name = NULL;
	struct doc *run;

	if (pick(api, word, true, &name, err) < 0)
		return -1;
	CLEANUP(freep) char *path = api_run_path(name, "");
	if (api_get_doc(api, path, a, &run, err) < 0)
		return -1;
	struct str id = doc_str(run, "id", str_from(name));

	*ret_id = xstrndup(id.p, id.n);
	return 0;
}
