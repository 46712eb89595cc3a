#include "agent/rsh_client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "link/frame.h"
#include "link/layout.h"
#include "link/message.h"
#include "net/dial.h"

#define DIAL_MS 5000
#define COMMAND_MAX (120 * 1024) /* what Linux takes as one word of a command */
#define CODE_NOT_RUN 255	 /* as ssh says it */
#define CODE_SIGNAL 128

struct client {
	int fd;
	struct buf in; /* received from the agent, not decoded yet */
	bool input_open;
	uint64_t sent, taken; /* bytes of input */
	uint64_t output;      /* bytes of output */
	int code;	      /* -1: the command has not ended */
};

bool rsh_client_is(const char *argv0)
{
	return argv0 && strcmp(path_base(argv0), LAYOUT_RSH) == 0;
}

/* Options of ssh that callers may add; those of `with_value` have one. */
static int skip_options(int argc, char **argv)
{
	static const char with_value[] = "lpoiFJ";
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++)
		if (argv[i][1] && !argv[i][2] && strchr(with_value, argv[i][1]))
			i++;
	return i;
}

/* The programs of which mpirun tells its daemons where they are; Open MPI's end if one is not there.  Each node has
 * them in its own directory: the shell there puts in the paths of its own. */
static const char *const own_programs[] = {"REGATTA_RSH", "REGATTA_TEE"};

/* The first path of one of them in the word, or NULL. */
static const char *find_program(const char *word, const char **ret_name, size_t *ret_len)
{
	const char *first = NULL;

	for (size_t i = 0; i < sizeof(own_programs) / sizeof(own_programs[0]); i++) {
		const char *path = getenv(own_programs[i]);
		const char *at = path && *path ? strstr(word, path) : NULL;

		if (!at || (first && first < at))
			continue;
		first = at;
		*ret_name = own_programs[i];
		*ret_len = strlen(path);
	}
	return first;
}

static void add_word(struct buf *command, const char *word)
{
	const char *at, *name = NULL;
	size_t len = 0;

	if (command->n)
		buf_addc(command, ' ');
	while ((at = find_program(word, &name, &len))) {
		buf_addstr(command, (struct str){word, (size_t)(at - word)});
		buf_printf(command, "$%s", name);
		word = at + len;
	}
	buf_addz(command, word);
}

static int read_arguments(int argc, char **argv, struct buf *command, struct message_exec_ask *ret,
			  struct err *err)
{
	int i = skip_options(argc, argv);

	if (i + 1 >= argc)
		return err_set(err, ERR_INVALID, "usage: " LAYOUT_RSH " HOST COMMAND...");
	const char *at = strrchr(argv[i], '@');

	ret->host = at ? at + 1 : argv[i];
	for (i++; i < argc; i++)
		add_word(command, argv[i]);
	if (command->overflow)
		return err_set(err, ERR_INVALID, "the command is longer than %d KiB",
			       COMMAND_MAX / 1024);
	ret->command = command->p;
	return 0;
}

static int connect_agent(int *ret_fd, struct err *err)
{
	const char *self = getenv("REGATTA_RSH");
	CLEANUP(freep) char *dir = NULL;

	if (!self || !strrchr(self, '/'))
		return err_set(err, ERR_UNAVAILABLE,
			       "REGATTA_RSH is not set: this is for jobs with a launcher");
	dir = xstrndup(self, (size_t)(strrchr(self, '/') - self));
	return dial_unix(dir, LAYOUT_RSH_SOCKET, DIAL_MS, ret_fd, err);
}

static int send_frame(struct client *c, enum frame_type type, struct str payload, struct err *err)
{
	uint8_t header[FRAME_HEADER];

	frame_header(header, (uint8_t)type, 0, 0, (uint32_t)payload.n);
	if (file_write_all(c->fd, header, sizeof(header), err) < 0 ||
	    file_write_all(c->fd, payload.p, payload.n, err) < 0)
		return err_wrap(err, "the agent of this node is gone");
	return 0;
}

static int ask(struct client *c, const struct message_exec_ask *m, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, FRAME_MAX_PAYLOAD);
	message_exec_ask_put(m, &text);
	if (text.overflow)
		return err_set(err, ERR_INVALID, "the command is too long");
	return send_frame(c, FRAME_EXEC_ASK, buf_str(&text), err);
}

/* An agent that does not take it any more has said why: receive() finds that. */
static void pass_input(struct client *c)
{
	char bytes[MESSAGE_EXEC_PIECE];
	uint64_t room = MESSAGE_EXEC_WINDOW - (c->sent - c->taken);
	ssize_t n = read(STDIN_FILENO, bytes, room < sizeof(bytes) ? room : sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	c->sent += n > 0 ? (uint64_t)n : 0;
	c->input_open = send_frame(c, FRAME_EXEC_INPUT, (struct str){bytes, n > 0 ? (size_t)n : 0},
				   NULL) == 0 &&
			n > 0;
}

/* What nobody reads any more counts as taken. */
static void take_output(struct client *c, struct str payload)
{
	CLEANUP(buf_release) struct buf text = {0};

	if (payload.n < 1)
		return;
	file_write_all(payload.p[0] == 'e' ? STDERR_FILENO : STDOUT_FILENO, payload.p + 1,
		       payload.n - 1, NULL);
	c->output += payload.n - 1;
	buf_init(&text, 256);
	message_exec_control_put(&(struct message_exec_control){.taken = c->output}, &text);
	send_frame(c, FRAME_EXEC_CONTROL, buf_str(&text), NULL);
}

static int take_close(struct client *c, struct str payload, struct arena *mem, struct err *err)
{
	struct message_exec_close m;

	if (message_exec_close_get(payload, mem, &m, err) < 0)
		return -1;
	if (m.kind != ERR_NONE)
		return err_set(err, m.kind, "%s", m.reason ? m.reason : "the command was not run");
	c->code = m.signal > 0 ? CODE_SIGNAL + m.signal : m.code;
	return 0;
}

static int take_frame(struct client *c, const struct frame *f, struct err *err)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_exec_control m;

	if (f->type == FRAME_EXEC_OUTPUT) {
		take_output(c, f->payload);
		return 0;
	}
	if (f->type == FRAME_EXEC_CLOSE)
		return take_close(c, f->payload, mem, err);
	if (f->type != FRAME_EXEC_CONTROL)
		return err_set(err, ERR_PROTOCOL, "the agent said something unknown");
	if (message_exec_control_get(f->payload, mem, &m, err) < 0)
		return -1;
	if (m.taken > c->taken && m.taken <= c->sent)
		c->taken = m.taken;
	return 0;
}

static int receive(struct client *c, struct err *err)
{
	char bytes[MESSAGE_EXEC_PIECE];
	ssize_t n = read(c->fd, bytes, sizeof(bytes));
	struct frame f;
	size_t used;
	int got = 0;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0)
		return err_set(err, ERR_UNAVAILABLE, "the agent of this node is gone");
	buf_addstr(&c->in, (struct str){bytes, (size_t)n});
	while (c->code < 0 && (got = frame_decode(buf_str(&c->in), &f, &used)) > 0) {
		if (take_frame(c, &f, err) < 0)
			return -1;
		buf_drop_front(&c->in, used);
	}
	return got < 0 ? err_set(err, ERR_PROTOCOL, "the agent said something unknown") : 0;
}

static int serve(struct client *c, struct err *err)
{
	while (c->code < 0) {
		bool reads = c->input_open && c->sent - c->taken < MESSAGE_EXEC_WINDOW;
		struct pollfd p[] = {{.fd = c->fd, .events = POLLIN},
				     {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return err_errno(err, errno, "poll");
		if (p[1].revents)
			pass_input(c);
		if (p[0].revents && receive(c, err) < 0)
			return -1;
	}
	return 0;
}

int rsh_client_main(int argc, char **argv)
{
	CLEANUP(buf_release) struct buf command = {0};
	struct client c = {.fd = -1, .input_open = true, .code = -1};
	struct message_exec_ask m = {0};
	struct err err = {0};

	signal(SIGPIPE, SIG_IGN);
	buf_init(&command, COMMAND_MAX);
	buf_init(&c.in, 2 * (FRAME_MAX_PAYLOAD + FRAME_HEADER));
	int rc = read_arguments(argc, argv, &command, &m, &err);

	if (rc == 0)
		rc = connect_agent(&c.fd, &err);
	if (rc == 0)
		rc = ask(&c, &m, &err);
	if (rc == 0)
		rc = serve(&c, &err);
	if (rc < 0)
		fprintf(stderr, "regatta: %s%s%s\n", m.host ? m.host : "", m.host ? ": " : "",
			err.msg);
	close_fdp(&c.fd);
	buf_release(&c.in);
	return rc < 0 ? CODE_NOT_RUN : c.code;
}
