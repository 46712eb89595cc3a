/* regatta exec - a command on a node of a run, beside its job. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "fmt/jsonw.h"
#include "fmt/url.h"
#include "net/http_client.h"

#define CALL_MS 30000
#define CHUNK (64 * 1024)
#define HEAD_MAX 512
#define RETRY_MS 20 /* the command does not read its input: try again */
#define WAIT_MS 1000

struct exec_session {
	struct api *api, calls; /* the streamed answer; calls beside it */
	char id[64];		/* "": not known yet */
	struct buf head;	/* of the piece that is being received */
	int to;			/* where the piece goes: 1 or 2 */
	int64_t left;		/* of the piece */
	bool over;
	int code;
	char input[CHUNK]; /* read and not sent yet */
	size_t ninput;
	bool input_read, input_ended; /* there is some; all is sent */
	int64_t retry_at;
};

static volatile sig_atomic_t asked; /* the last signal for the command */
static volatile sig_atomic_t resized;

static void on_signal(int signo)
{
	if (signo == SIGWINCH)
		resized = 1;
	else
		asked = signo;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct sigaction sa = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
}

/* ---- to the command ---- */

static void put_size(struct jsonw *w)
{
	struct winsize size;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	jsonw_kint(w, "columns", size.ws_col);
	jsonw_kint(w, "rows", size.ws_row);
}

static int call(struct exec_session *s, const char *what, struct str body, struct err *err)
{
	CLEANUP(freep) char *path = xasprintf("/api/v1/exec/%s/%s", s->id, what);
	CLEANUP(buf_release) struct buf answer = {0};

	buf_init(&answer, API_MAX_ANSWER);
	return api_call(&s->calls, "POST", path, body, CALL_MS, &answer, err);
}

/* A command that has ended meanwhile is no error: its end is in the answer. */
static int steer(struct exec_session *s, int signo, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct jsonw w;

	buf_init(&body, HEAD_MAX);
	jsonw_init(&w, &body);
	jsonw_open(&w, '{');
	if (signo)
		jsonw_kint(&w, "signal", signo);
	else
		put_size(&w);
	jsonw_close(&w);
	return call(s, "control", buf_str(&body), err) < 0 && err->kind != ERR_NOT_FOUND ? -1 : 0;
}

static int take_signals(struct exec_session *s, struct err *err)
{
	int signo = asked;

	if (!s->id[0])
		return 0;
	asked = 0;
	if (signo && steer(s, signo, err) < 0)
		return -1;
	if (!resized)
		return 0;
	resized = 0;
	return steer(s, 0, err);
}

static int send_input(struct exec_session *s, struct err *err)
{
	if (call(s, "input", (struct str){s->input, s->ninput}, err) < 0) {
		if (err->kind == ERR_THROTTLED) {
			s->retry_at = clock_boot_ms() + RETRY_MS;
			return 0;
		}
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		s->ninput = 0; /* it has ended: nobody reads more */
	}
	s->input_ended = s->ninput == 0;
	s->input_read = false;
	s->retry_at = 0;
	return 0;
}

static int read_input(struct exec_session *s, struct err *err)
{
	ssize_t n = read(STDIN_FILENO, s->input, sizeof(s->input));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	s->ninput = n > 0 ? (size_t)n : 0;
	s->input_read = true;
	return send_input(s, err);
}

/* ---- from the command ---- */

static int read_end(struct exec_session *s, struct str word, struct str rest, struct err *err)
{
	int64_t code, signo;
	char kind[32];

	s->over = true;
	if (str_is(word, "error")) {
		struct str name = str_cut(&rest, ' ');

		snprintf(kind, sizeof(kind), "%.*s", STR_ARG(name));
		return err_set(err, err_kind_from_name(kind), "%.*s", STR_ARG(rest));
	}
	struct str first = str_cut(&rest, ' ');

	if (!str_to_i64(first, &code) || !str_to_i64(rest, &signo))
		return err_set(err, ERR_PROTOCOL, "the master's answer is no output of a command");
	s->code = signo ? 128 + (int)signo : (int)code;
	return 0;
}

/* "id 12ab", "out 12", "err 12", "exit 0 0", "error kind text". */
static int read_head(struct exec_session *s, struct err *err)
{
	struct str rest = buf_str(&s->head), word = str_cut(&rest, ' ');
	int rc = 0;

	if (str_is(word, "id"))
		snprintf(s->id, sizeof(s->id), "%.*s", STR_ARG(rest));
	else if (str_is(word, "out") || str_is(word, "err"))
		rc = str_to_i64(rest, &s->left) ? 0 : -1;
	else
		return read_end(s, word, rest, err);
	s->to = str_is(word, "err") ? STDERR_FILENO : STDOUT_FILENO;
	buf_reset(&s->head);
	return rc < 0 ? err_set(err, ERR_PROTOCOL, "the master's answer is no output of a command")
		      : 0;
}

static int take_bytes(struct exec_session *s, struct str bytes, struct err *err)
{
	while (bytes.n > 0 && !s->over) {
		size_t n = bytes.n;

		if (s->left > 0) {
			n = (int64_t)n < s->left ? n : (size_t)s->left;
			if (file_write_all(s->to, bytes.p, n, err) < 0)
				return -1;
			s->left -= (int64_t)n;
		} else {
			const char *nl = memchr(bytes.p, '\n', n);

			n = nl ? (size_t)(nl - bytes.p) : n;
			buf_add(&s->head, bytes.p, n);
			n += nl ? 1 : 0;
			if (nl && read_head(s, err) < 0)
				return -1;
		}
		bytes = (struct str){bytes.p + n, bytes.n - n};
	}
	return 0;
}

/* Until nothing is there to be read. */
static int read_answer(struct exec_session *s, struct err *err)
{
	static char bytes[CHUNK];

	while (!s->over) {
		struct err why = {0};
		size_t n;

		if (http_stream_read(s->api->http, bytes, sizeof(bytes), 0, NULL, &n, &why) < 0) {
			if (why.kind == ERR_TIMEOUT)
				return 0;
			*err = why;
			return -1;
		}
		if (n == 0)
			return err_set(err, ERR_UNAVAILABLE, "the master ended the connection");
		if (take_bytes(s, (struct str){bytes, n}, err) < 0)
			return -1;
	}
	return 0;
}

static int pump(struct exec_session *s, struct err *err)
{
	while (!s->over) {
		if (read_answer(s, err) < 0)
			return -1;
		if (s->over || take_signals(s, err) < 0)
			return s->over ? 0 : -1;
		bool want = s->id[0] && !s->input_ended && !s->input_read;
		struct pollfd p[] = {{.fd = http_client_fd(s->api->http), .events = POLLIN},
				     {.fd = want ? STDIN_FILENO : -1, .events = POLLIN}};

		if (poll(p, 2, s->input_read ? RETRY_MS : WAIT_MS) < 0)
			continue;
		if (want && p[1].revents && read_input(s, err) < 0)
			return -1;
		if (s->input_read && clock_boot_ms() >= s->retry_at && send_input(s, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the command line ---- */

static void put_command(const struct cli_call *c, struct buf *body)
{
	const char *term = getenv("TERM");
	struct jsonw w;

	jsonw_init(&w, body);
	jsonw_open(&w, '{');
	jsonw_key(&w, "argv");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < c->nrest; i++)
		jsonw_z(&w, c->rest[i]);
	if (c->nrest == 0)
		jsonw_z(&w, "sh");
	jsonw_close(&w);
	if (call_flag(c, "tty")) {
		jsonw_kz(&w, "term", term && *term ? term : "xterm");
		put_size(&w);
	}
	jsonw_close(&w);
}

static char *exec_path(const char *run, const char *node)
{
	CLEANUP(freep) char *start = api_run_path(run, "/exec/");
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, CHUNK);
	buf_addz(&b, start);
	url_encode(&b, str_from(node));
	return buf_take(&b);
}

static int run_command(const struct cli_call *c, struct api *api, struct exec_session *s,
		       const char *run, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	CLEANUP(freep) char *path = exec_path(run, call_arg(c, 1));
	struct termios before, raw;
	bool tty = call_flag(c, "tty") && tcgetattr(STDIN_FILENO, &before) == 0;

	buf_init(&body, CHUNK * 16);
	put_command(c, &body);
	if (api_stream_post(api, path, buf_str(&body), err) < 0)
		return -1;
	catch_signals();
	if (tty) {
		raw = before;
		cfmakeraw(&raw);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	int rc = pump(s, err);

	if (tty)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	return rc;
}

int command_exec(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *run = NULL;
	struct exec_session *s;
	struct err err = {0};

	if (c->nrest == 0 && !call_flag(c, "tty")) {
		cli_say("exec: no command: write it after --, or use -t for a shell");
		return 2;
	}
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &run, &err) < 0)
		return api_fail(&api, &err);
	s = xcalloc(1, sizeof(*s));
	s->api = &api;
	buf_init(&s->head, HEAD_MAX);
	api_init_like(&s->calls, &api);
	int rc = run_command(c, &api, s, run, &err) < 0 ? api_fail(&api, &err) : s->code;

	api_release(&s->calls);
	buf_release(&s->head);
	free(s);
	return rc;
}
