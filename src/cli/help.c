/* help - texts for people, rendered from the command table. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define TEXT_WIDTH 80
#define OPTION_COLUMN 28 /* where the help of an option starts */

static const char exit_codes[] =
	"exit codes: 0 ok, 1 the job failed, 2 usage or bad input, 3 not found, 4 denied,\n"
	"            5 capacity or quota, 6 timed out, 7 cancelled, 8 unavailable\n";

/* Words of text wrapped to the width, every line but the first indented. */
static void wrap(struct buf *out, const char *text, size_t indent, size_t column)
{
	struct str rest = str_from(text);

	while (rest.p) {
		struct str word = str_cut(&rest, ' ');
		if (word.n == 0)
			continue;
		if (column > indent && column + 1 + word.n > TEXT_WIDTH) {
			buf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_addc(out, ' ');
			column++;
		}
		buf_addstr(out, word);
		column += word.n;
	}
	buf_addc(out, '\n');
}

static bool has_visible_options(const struct command *cmd)
{
	for (const struct cli_option *o = cmd->options; o && o->name; o++)
		if (!o->hidden)
			return true;
	return false;
}

void help_synopsis(const struct command *cmd, struct buf *out)
{
	buf_printf(out, "regatta %s", cmd->name);
	for (const struct cli_argument *a = cmd->arguments; a && a->name; a++)
		buf_printf(out, a->required ? " %s%s" : " [%s]%s", a->name, a->many ? "..." : "");
	if (has_visible_options(cmd))
		buf_addz(out, " [OPTIONS]");
	if (cmd->rest)
		buf_printf(out, " [-- %s...]", cmd->rest);
}

static void option_row(const struct cli_option *o, struct buf *out)
{
	char left[64];

	if (o->letter)
		snprintf(left, sizeof(left), "  -%c, --%s%s%s", o->letter, o->name,
			 o->value ? " " : "", o->value ? o->value : "");
	else
		snprintf(left, sizeof(left), "      --%s%s%s", o->name, o->value ? " " : "",
			 o->value ? o->value : "");
	buf_addz(out, left);
	size_t n = strlen(left);
	if (n + 1 > OPTION_COLUMN) {
		buf_addc(out, '\n');
		n = 0;
	}
	buf_printf(out, "%*s", (int)(OPTION_COLUMN - n), "");
	wrap(out, o->help, OPTION_COLUMN, OPTION_COLUMN);
}

void help_command(const struct command *cmd, struct buf *out)
{
	buf_addz(out, "usage: ");
	help_synopsis(cmd, out);
	buf_addz(out, "\n\n");
	wrap(out, cmd->help, 0, 0);
	if (cmd->more) {
		buf_addc(out, '\n');
		wrap(out, cmd->more, 0, 0);
	}
	buf_addz(out, "\noptions:\n");
	for (const struct cli_option *o = cmd->options; o && o->name; o++)
		if (!o->hidden)
			option_row(o, out);
	for (const struct cli_option *o = cli_common_options; o->name; o++)
		if (cli_has_common(cmd, o))
			option_row(o, out);
	if (!cmd->example)
		return;
	buf_addz(out, "\nexamples:\n");
	struct str rest = str_from(cmd->example);
	while (rest.p) {
		struct str line = str_cut(&rest, '\n');
		buf_printf(out, "  %.*s\n", STR_ARG(line));
	}
}

void help_usage(struct buf *out)
{
	buf_addz(out, "usage: regatta COMMAND [ARGUMENTS] [OPTIONS]\n\n"
		      "  regatta run -n 4 -- python3 train.py   run a command on 4 local nodes\n"
		      "  regatta init; regatta run              write a job file and run it\n"
		      "  regatta --help                         all commands\n");
}

void help_overview(struct buf *out)
{
	const char *group = NULL;

	buf_addz(out, "Regatta " REGATTA_VERSION
		      ": runs distributed training jobs, watches them, collects from\n"
		      "them, and leaves nothing behind.\n\n"
		      "usage: regatta COMMAND [ARGUMENTS] [OPTIONS]\n");
	for (const struct command *c = cli_commands; c->name; c++) {
		if (!c->group)
			continue;
		if (!group || strcmp(group, c->group) != 0)
			buf_printf(out, "\n%s:\n", c->group);
		group = c->group;
		buf_printf(out, "  %-12s", c->name);
		wrap(out, c->help, 14, 14);
	}
	buf_addz(
		out,
		"\nRUN is the id of a run or any unique prefix of it; where it may be left out, the\n"
		"latest run is meant.  'regatta help COMMAND' says more; --output json works with\n"
		"every command.  State is in $REGATTA_HOME (default ~/.local/state/regatta).\n"
		"Another master is named by --master, REGATTA_MASTER or 'regatta context use'.\n\n"
		"start with:\n");
	for (const struct command *c = cli_commands; c->name; c++) {
		struct str rest = str_from(strcmp(c->name, "run") == 0 ? c->example : NULL);
		while (rest.p) {
			struct str line = str_cut(&rest, '\n');
			buf_printf(out, "  %.*s\n", STR_ARG(line));
		}
	}
	buf_addc(out, '\n');
	buf_addz(out, exit_codes);
}
