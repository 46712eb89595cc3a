/* cli - the entry of the command line, and printing for all commands. */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "fmt/jsonw.h"

static void say_line(const char *text)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct err ignored;

	buf_init(&b, 64 * 1024);
	buf_addz(&b, "regatta: ");
	escape_terminal(&b, str_from(text));
	buf_addc(&b, '\n');
	/* When stderr itself fails, there is nowhere to report it. */
	(void)file_write_all(STDERR_FILENO, b.p, b.n, &ignored);
}

void cli_say(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say_line(text);
}

int cli_fail(const struct err *err)
{
	say_line(err->msg);
	return err_exit_code(err->kind);
}

int cli_print(const struct buf *b)
{
	struct err err;

	if (b->overflow) {
		err_set(&err, ERR_CAPACITY, "the output is too large to print: use --output json");
		return cli_fail(&err);
	}
	if (b->n == 0 || file_write_all(STDOUT_FILENO, b->p, b->n, &err) == 0)
		return 0;
	if (err.code == EPIPE)
		return 0; /* the reader has closed the pipe */
	err_wrap(&err, "write the result");
	return cli_fail(&err);
}

bool cli_reader_gone(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP);
}

int cli_print_text(const struct cli_call *c, const char *key, const struct buf *text)
{
	CLEANUP(buf_release) struct buf json = {0};
	struct jsonw w;

	if (c->output == OUTPUT_TABLE)
		return cli_print(text);
	buf_init(&json, CLI_MAX_TEXT);
	jsonw_init(&w, &json);
	jsonw_open(&w, '{');
	jsonw_kstr(&w, key, buf_str(text));
	jsonw_close(&w);
	buf_addc(&json, '\n');
	return cli_print(&json);
}

static int unknown_command(const char *name)
{
	const char *near = cli_suggest_command(name);

	if (near)
		cli_say("unknown command '%.100s': did you mean '%s'?", name, near);
	else
		cli_say("unknown command '%.100s': 'regatta --help' lists them", name);
	return 2;
}

static int run_command(const struct command *cmd, int argc, char **argv)
{
	CLEANUP(call_release) struct cli_call call = {0};
	struct err err;

	if (call_parse(cmd, argc, argv, &call, &err) < 0) {
		err_wrap(&err, "%s", cmd->name);
		return cli_fail(&err);
	}
	if (!call.help)
		return cmd->run(&call);
	CLEANUP(buf_release) struct buf text = {0};
	buf_init(&text, CLI_MAX_TEXT);
	help_command(cmd, &text);
	return cli_print_text(&call, "help", &text);
}

int cli_main(int argc, char **argv)
{
	/* Writes report EPIPE; a closed pipe must not kill a command that watches a run. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		CLEANUP(buf_release) struct buf text = {0};
		struct err ignored;
		buf_init(&text, CLI_MAX_TEXT);
		help_usage(&text);
		(void)file_write_all(STDERR_FILENO, text.p, text.n, &ignored);
		return 2;
	}
	static const char *const aliases[][2] = {
		{"--help", "help"}, {"-h", "help"}, {"--version", "version"}};
	const char *name = argv[1];
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(name, aliases[i][0]) == 0)
			name = aliases[i][1];
	const struct command *cmd = cli_find_command(str_from(name));
	if (cmd)
		return run_command(cmd, argc - 2, argv + 2);
	if (name[0] == '-') {
		cli_say("unknown option '%.100s' before the command: options go after it, 'regatta --help' "
			"lists the commands",
			name);
		return 2;
	}
	return unknown_command(name);
}
