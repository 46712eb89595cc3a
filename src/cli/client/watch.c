#include "cli/client/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/follow.h"
#include "cli/show/live_view.h"
#include "cli/show/render.h"
#include "cli/show/screen.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "net/http_client.h"

#define REDRAW_MS 50	    /* at most 20 redraws a second */
#define TICK_MS 250	    /* the elapsed time is redrawn so often */
#define NO_CONTACT_MS 60000 /* without a master for so long: give up */
#define RETRY_MS 50	    /* between two attempts to reach it */
#define LOGS_IDLE_MS 10000  /* after the end of the run, how long to wait for more of its logs */
#define VIEW_NODES 8	    /* nodes whose output the live view shows */
#define FOLLOW_NODES 1000   /* nodes whose output -f prints */
#define CANCEL_MS 30000
#define DELTAS_MAX (1u << 20) /* bytes of deltas that are kept, beyond those of the run itself */
#define CHUNK (64 * 1024)
#define FLUSH_BYTES (256 * 1024) /* of the job's lines before they are written */
#define OUT_MAX (2u << 20)	 /* FLUSH_BYTES and one line, fully escaped */

struct watcher {
	struct api *api;   /* for calls */
	struct api stream; /* for the stream of run objects */
	const char *id;
	const struct watch_options *o;
	struct buf text; /* objects and deltas as they come; the last may be incomplete */
	struct buf json; /* the last complete run object */
	struct arena *arena;
	struct doc *run; /* `json` as a tree, with the deltas received since */
	size_t deltas;	 /* bytes of the deltas */
	int64_t run_at;	 /* boot time when `run` was received */
	char state[40];	 /* the last state that was printed */
	bool why_said;	 /* the reason for waiting in this state was printed */
	int64_t lost_at, retry_at;
	bool lost_said;
	struct follow *follow;
	struct buf out, err_out; /* the job's lines, not written yet */
	bool out_tty, err_tty, out_dead;
	int64_t line_at;
	bool live, dirty, ended, handed, left, leave_now;
	int64_t drawn_at;
	struct view view;
	struct screen screen;
	struct style style;
	int height;
	int interrupts;
};

void watch_result_release(struct watch_result *r)
{
	buf_release(&r->json);
}

int watch_signals(struct err *err)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct sigaction now;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "watch for signals");
	return fd;
}

int watch_signal_next(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

int api_cancel_run(struct api *api, const char *id, bool hurry, struct buf *ret_json,
		   struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(id, "/cancel");

	return api_call(api, "POST", path,
			hurry ? STR("{\"hurry\":true}") : STR("{\"hurry\":false}"), CANCEL_MS,
			ret_json, err);
}

/* A message on stderr; the live view is removed before and drawn again after it. */
static void say(struct watcher *w, const char *text)
{
	if (w->live)
		screen_clear(&w->screen, w->style.width);
	cli_say("%s", text);
	w->dirty = true;
}

static void flush_lines(struct watcher *w)
{
	struct err err;

	if (w->out.n == 0 && w->err_out.n == 0)
		return;
	if (w->live)
		screen_clear(&w->screen, w->style.width);
	/* A closed pipe ends the printing, not the run. */
	if (w->out.n && !w->out_dead &&
	    file_write_all(STDOUT_FILENO, w->out.p, w->out.n, &err) < 0) {
		w->out_dead = true;
		if (err.code != EPIPE)
			cli_say("write the job's output: %s", err.msg);
	}
	if (w->err_out.n)
		(void)file_write_all(STDERR_FILENO, w->err_out.p, w->err_out.n, &err);
	buf_reset(&w->out);
	buf_reset(&w->err_out);
}

static void on_line(void *ctx, const struct follow_line *l)
{
	struct watcher *w = ctx;

	w->line_at = clock_boot_ms();
	if (w->live) {
		view_line(&w->view, follow_node(l->node), l->text);
		w->dirty = true;
	}
	if (!w->o->follow)
		return;
	bool to_err = l->is_err || w->o->output_to_err;
	struct buf *out = to_err ? &w->err_out : &w->out;
	buf_addstr(out, l->node);
	buf_addz(out, " | ");
	if (to_err ? w->err_tty : w->out_tty)
		escape_terminal(out, l->text);
	else
		buf_addstr(out, l->text);
	buf_addc(out, '\n');
	if (out->n >= FLUSH_BYTES)
		flush_lines(w);
}

static void start_following(struct watcher *w)
{
	static const struct follow_sink sink = {.line = on_line};
	const struct doc *nodes = doc_array(w->run, "nodes");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	size_t max = w->o->follow ? FOLLOW_NODES : VIEW_NODES;

	if (w->follow || !nodes || (!w->live && !w->o->follow))
		return;
	if (w->o->follow && nodes->array.n > max)
		cli_say("printing the output of the first %d nodes; 'regatta logs %s' has all",
			FOLLOW_NODES, w->id);
	w->follow = follow_new(w->api, w->id, &sink, w);
	for (size_t i = 0; i < nodes->array.n && i < max; i++) {
		const struct doc *n = nodes->array.v[i];
		struct str *names;
		size_t k = doc_bool(n, "copies", false) ? 0 : follow_names(n, a, &names);
		/* The live view shows new output only; -f prints all of it. */
		int64_t tail = w->o->follow || k == 1 ? -1 : 0;
		bool all = w->o->follow || k > 1;

		for (size_t p = 0; p < k; p++) {
			follow_add(w->follow, names[p], FOLLOW_OUT,
				   all ? 0 : doc_int(n, "log_bytes", 0), tail, true);
			follow_add(w->follow, names[p], FOLLOW_ERR,
				   all ? 0 : doc_int(n, "err_bytes", 0), tail, true);
		}
	}
}

/* A state that does not come after the one that was shown; a state of the end comes after all. */
static bool is_old(const struct watcher *w, struct str state)
{
	const struct doc *phases = w->o->shown ? doc_table(w->run, "phases") : NULL;

	for (size_t i = 0; phases && i < phases->table.n; i++) {
		struct str phase = phases->table.v[i].key;

		if (str_eq(phase, state) || str_is(phase, w->o->shown))
			return str_eq(phase, state);
	}
	return false;
}

static void say_state(struct watcher *w)
{
	struct str state = doc_str(w->run, "state", STR("?"));

	if (str_is(state, w->state) || is_old(w, state))
		return;
	snprintf(w->state, sizeof(w->state), "%.*s", STR_ARG(state));
	w->why_said = false;
	if (!w->live && !run_ended(w->run))
		cli_say("%s: %s", w->id, w->state);
}

/* Once in each state: the times and counts in such a text change all the time. */
static void say_waiting(struct watcher *w)
{
	struct str why = run_waits_for(w->run);

	if (w->live || w->why_said || why.n == 0)
		return;
	w->why_said = true;
	cli_say("%s: waiting: %.*s", w->id, STR_ARG(why));
}

static void run_is_new(struct watcher *w)
{
	w->run_at = clock_boot_ms();
	w->handed = w->o->until_handed && run_is_handed_over(w->run);
	w->ended = run_ended(w->run) || w->handed;
	w->dirty = true;
	say_state(w);
	say_waiting(w);
	start_following(w);
}

/* A new run object. */
static int take_object(struct watcher *w, struct str line, struct err *err)
{
	struct arena *a = arena_new();
	struct doc *run;

	/* The tree points into the text it was read from. */
	struct str text = arena_str(a, line);
	if (reply_parse(text, a, &run, err) < 0) {
		arena_free(a);
		return err_wrap(err, "watch %s", w->id);
	}
	arena_free(w->arena);
	w->arena = a;
	w->run = run;
	w->deltas = 0;
	buf_reset(&w->json);
	buf_addstr(&w->json, line);
	run_is_new(w);
	return 0;
}

/* The text of the run with its deltas. */
static void write_json(struct watcher *w)
{
	if (w->deltas == 0)
		return;
	buf_reset(&w->json);
	doc_to_json(w->run, &w->json);
}

static void merge_nodes(struct watcher *w, const struct doc *changed)
{
	const struct doc *nodes = doc_array(w->run, "nodes");

	for (size_t i = 0; nodes && changed && i < changed->array.n; i++) {
		int64_t rank = doc_int(changed->array.v[i], "rank", -1);

		if (rank >= 0 && (size_t)rank < nodes->array.n)
			nodes->array.v[rank] = changed->array.v[i];
	}
}

/* A delta has all members of the run, but only the nodes that changed. */
static int take_delta(struct watcher *w, struct str line, struct err *err)
{
	struct doc *delta;

	if (!w->run)
		return 0; /* a complete object always comes first */
	if (reply_parse(arena_str(w->arena, line), w->arena, &delta, err) < 0)
		return err_wrap(err, "watch %s", w->id);
	merge_nodes(w, doc_array(delta, "nodes"));
	for (size_t i = 0; delta->type == DOC_TABLE && i < delta->table.n; i++) {
		const struct doc_entry *e = &delta->table.v[i];

		if (!str_is(e->key, "nodes") && !str_is(e->key, "delta"))
			doc_set(w->arena, w->run, e->key, e->value);
	}
	w->deltas += line.n;
	run_is_new(w);
	if (w->deltas <= DELTAS_MAX + 2 * w->json.n)
		return 0;
	/* Replaced objects still take space in the arena: parse again into a new one. */
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, API_MAX_ANSWER);
	doc_to_json(w->run, &text);
	return take_object(w, buf_str(&text), err);
}

static bool is_delta(struct str line)
{
	return str_starts(line, STR("{\"delta\":true"));
}

/* Lines before the newest complete object are skipped. */
static int take_text(struct watcher *w, struct err *err)
{
	const char *end = w->text.n ? memrchr(w->text.p, '\n', w->text.n) : NULL;
	struct str rest, line, from;

	if (!end)
		return 0;
	rest = from = (struct str){w->text.p, (size_t)(end - w->text.p)};
	for (struct str all = rest; all.n > 0;) {
		struct str here = all;

		if (!is_delta(str_cut(&all, '\n')))
			from = here;
	}
	while (from.n > 0) {
		line = str_cut(&from, '\n');
		if (line.n &&
		    (is_delta(line) ? take_delta(w, line, err) : take_object(w, line, err)) < 0)
			return -1;
	}
	buf_drop_front(&w->text, rest.n + 1);
	return 0;
}

static void lose_contact(struct watcher *w)
{
	int64_t now = clock_boot_ms();

	api_drop(&w->stream);
	buf_reset(&w->text);
	if (!w->lost_at)
		w->lost_at = now;
	w->retry_at = now + RETRY_MS;
}

static int open_watch(struct watcher *w, struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(w->id, "/watch?deltas=1");

	if (api_stream(&w->stream, path, err) == 0)
		return 0;
	if (!api_lost(err))
		return -1;
	lose_contact(w);
	if (clock_boot_ms() - w->lost_at > (w->o->patience_ms ? w->o->patience_ms : NO_CONTACT_MS))
		return err_wrap(err, "run %s goes on, but its master is out of reach", w->id);
	if (!w->lost_said)
		say(w,
		    api_remote(w->api)
			    ? "the connection to the master is lost: dialling again; the run goes on"
			    : "the master is gone: starting it again; the run goes on");
	w->lost_said = true;
	return 0;
}

static int read_watch(struct watcher *w, struct err *err)
{
	for (;;) {
		char *p = buf_reserve(&w->text, CHUNK);
		size_t n;
		if (!p)
			return err_set(err, ERR_CAPACITY, "watch %s: the run object is too large",
				       w->id);
		if (http_stream_read(w->stream.http, p, CHUNK, 0, NULL, &n, err) < 0) {
			if (err->kind == ERR_TIMEOUT)
				return take_text(w, err);
			lose_contact(w);
			return 0;
		}
		if (n == 0) {
			if (take_text(w, err) < 0)
				return -1;
			if (!w->ended)
				lose_contact(w);
			return 0;
		}
		buf_commit(&w->text, n);
		w->lost_at = 0;
		w->lost_said = false;
	}
}

static void interrupted(struct watcher *w)
{
	struct err err;

	w->interrupts++;
	if (w->interrupts > 2) {
		w->leave_now = true;
		return;
	}
	bool hurry = w->interrupts == 2;
	say(w,
	    hurry ? "killing what is left; Ctrl-C again leaves at once"
		  : "cancelling: SIGTERM to the job, SIGKILL after its grace period; Ctrl-C again kills it at once");
	if (api_cancel_run(w->api, w->id, hurry, NULL, &err) < 0)
		cli_say("cancel %s: %s", w->id, err.msg);
}

static void take_signals(struct watcher *w)
{
	for (int sig; (sig = watch_signal_next(w->o->signals)) != 0;) {
		if (sig == SIGWINCH) {
			w->dirty = true;
			term_size(STDERR_FILENO, &w->style.width, &w->height);
		} else if (sig == SIGHUP || w->o->detach) {
			w->left = true;
		} else {
			interrupted(w);
		}
	}
}

static void redraw(struct watcher *w)
{
	int64_t now = clock_boot_ms();
	CLEANUP(buf_release) struct buf text = {0};

	bool due = w->dirty ? now - w->drawn_at >= REDRAW_MS : now - w->drawn_at >= TICK_MS;
	if (!w->live || !w->run || !due)
		return;
	buf_init(&text, 256 * 1024);
	w->view.elapsed_ms = doc_int(w->run, "elapsed_ms", 0) + (w->ended ? 0 : now - w->run_at);
	w->view.notice = !w->lost_at	      ? NULL
			 : api_remote(w->api) ? "(no connection: dialling again)"
					      : "(no master: starting it again)";
	view_render(&w->view, w->run, w->height, &w->style, &text);
	screen_draw(&w->screen, buf_str(&text), w->style.width);
	w->drawn_at = now;
	w->dirty = false;
}

static int wait_ms(const struct watcher *w)
{
	int64_t now = clock_boot_ms(), until = now + 1000;

	if (w->live && now + TICK_MS < until)
		until = w->dirty ? w->drawn_at + REDRAW_MS : w->drawn_at + TICK_MS;
	if (!w->stream.http && !w->ended && w->retry_at < until)
		until = w->retry_at;
	return until > now ? (int)(until - now) : 0;
}

/* All output is printed, or none has come for LOGS_IDLE_MS. */
static bool logs_are_done(const struct watcher *w)
{
	int64_t since = w->line_at > w->run_at ? w->line_at : w->run_at;

	return !w->o->follow || !w->follow || follow_open(w->follow) == 0 ||
	       clock_boot_ms() - since > LOGS_IDLE_MS;
}

static int turn(struct watcher *w, struct pollfd *fds, size_t max, struct err *err)
{
	size_t n = 0;
	int timeout = wait_ms(w);

	fds[n++] = (struct pollfd){.fd = w->o->signals, .events = POLLIN};
	if (w->stream.http && !w->ended)
		fds[n++] = (struct pollfd){.fd = http_client_fd(w->stream.http), .events = POLLIN};
	if (w->follow)
		n += follow_fds(w->follow, fds + n, max - n, &timeout);
	if (poll(fds, n, timeout) < 0 && errno != EINTR)
		return err_errno(err, errno, "wait for run %s", w->id);
	take_signals(w);
	if (!w->ended && w->stream.http && read_watch(w, err) < 0)
		return -1;
	if (!w->ended && !w->stream.http && clock_boot_ms() >= w->retry_at &&
	    open_watch(w, err) < 0)
		return -1;
	if (w->follow && follow_step(w->follow, err) < 0) {
		/* The verdict matters more than a log that cannot be read. */
		say(w, err->msg);
		w->follow = follow_free(w->follow);
	}
	flush_lines(w);
	redraw(w);
	return 0;
}

static int watch_loop(struct watcher *w, struct err *err)
{
	size_t max = 2 * FOLLOW_NODES + 2;
	CLEANUP(freep) struct pollfd *fds = xcalloc(max, sizeof(*fds));

	if (open_watch(w, err) < 0)
		return -1;
	while (!w->left && !w->leave_now && !(w->ended && logs_are_done(w)))
		if (turn(w, fds, max, err) < 0)
			return -1;
	if (w->leave_now)
		return err_set(err, ERR_CANCELLED,
			       "left while %s is being cancelled; 'regatta status %s' shows it",
			       w->id, w->id);
	return 0;
}

int watch_run(struct api *api, const char *id, const struct watch_options *o,
	      struct watch_result *ret, struct err *err)
{
	struct watcher w = {
		.api = api,
		.id = id,
		.o = o,
		.live = term_live(STDERR_FILENO),
		.style = style_detect(STDERR_FILENO),
		.out_tty = isatty(STDOUT_FILENO),
		.err_tty = isatty(STDERR_FILENO),
	};
	int width;

	api_init_like(&w.stream, api);
	bool hushed = api->hushed;
	api->hushed = hushed || w.live;
	buf_init(&w.text, API_MAX_ANSWER);
	buf_init(&w.json, API_MAX_ANSWER);
	buf_init(&w.out, OUT_MAX);
	buf_init(&w.err_out, OUT_MAX);
	view_init(&w.view);
	w.view.hide_tail = o->follow;
	screen_init(&w.screen, STDERR_FILENO);
	term_size(STDERR_FILENO, &width, &w.height);

	int rc = watch_loop(&w, err);
	memcpy(ret->state, w.state, sizeof(ret->state));
	flush_lines(&w);
	if (w.live)
		screen_clear(&w.screen, w.style.width);
	if (rc == 0) {
		write_json(&w);
		ret->left = w.left;
		ret->handed = w.handed;
		ret->json = w.json;
	} else {
		buf_release(&w.json);
	}
	api->hushed = hushed;
	follow_free(w.follow);
	arena_free(w.arena);
	api_release(&w.stream);
	buf_release(&w.text);
	buf_release(&w.out);
	buf_release(&w.err_out);
	view_release(&w.view);
	screen_release(&w.screen);
	return rc;
}
