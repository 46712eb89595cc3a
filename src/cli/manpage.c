/* manpage - regatta(1) in man(7) macros, rendered from the command table. */
#include "cli/cli.h"

#include <string.h>

#include "base/cleanup.h"

/* Text with roff's control characters escaped. */
static void roff(struct buf *out, struct str s)
{
	bool line_start = true;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (line_start && (c == '.' || c == '\''))
			buf_addz(out, "\\&");
		if (c == '\\')
			buf_addz(out, "\\e");
		else if (c == '-')
			buf_addz(out, "\\-");
		else if (c == '~')
			buf_addz(out, "\\(ti");
		else
			buf_addc(out, c);
		line_start = c == '\n';
	}
}

static void roffz(struct buf *out, const char *z)
{
	roff(out, str_from(z));
}

/* A sentence per line: two spaces after a full stop in the table's texts. */
static void sentences(struct buf *out, const char *text)
{
	struct str s = str_from(text);

	while (s.n) {
		const char *gap = memmem(s.p, s.n, ".  ", 3);
		size_t n = gap ? (size_t)(gap - s.p) + 1 : s.n;
		roff(out, (struct str){s.p, n});
		buf_addc(out, '\n');
		s = gap ? (struct str){gap + 3, s.n - n - 2} : (struct str){0};
	}
}

static void option(struct buf *out, const struct cli_option *o)
{
	buf_addz(out, ".TP\n");
	if (o->letter)
		buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
	buf_addz(out, "\\fB\\-\\-");
	roffz(out, o->name);
	buf_addz(out, "\\fR");
	if (o->value) {
		buf_addz(out, " \\fI");
		roffz(out, o->value);
		buf_addz(out, "\\fR");
	}
	buf_addc(out, '\n');
	roffz(out, o->help);
	buf_addc(out, '\n');
}

static void example(struct buf *out, const char *text)
{
	buf_addz(out, ".PP\n.RS\n.nf\n");
	roffz(out, text);
	buf_addz(out, "\n.fi\n.RE\n");
}

static void command(struct buf *out, const struct command *cmd)
{
	CLEANUP(buf_release) struct buf synopsis = {0};

	buf_init(&synopsis, 4096);
	help_synopsis(cmd, &synopsis);
	buf_addz(out, ".SS \"");
	roff(out, buf_str(&synopsis));
	buf_addz(out, "\"\n");
	sentences(out, cmd->help);
	if (cmd->more) {
		buf_addz(out, ".PP\n");
		sentences(out, cmd->more);
	}
	for (const struct cli_option *o = cmd->options; o && o->name; o++)
		if (!o->hidden)
			option(out, o);
	if (cmd->example)
		example(out, cmd->example);
}

void manpage_render(struct buf *out)
{
	buf_addz(
		out,
		".TH REGATTA 1 \"\" \"regatta " REGATTA_VERSION "\" \"User Commands\"\n"
		".SH NAME\n"
		"regatta \\- run, watch, collect from and tear down distributed training jobs\n"
		".SH SYNOPSIS\n"
		".B regatta\n"
		".I COMMAND\n"
		"[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n"
		".SH DESCRIPTION\n"
		"Regatta runs the nodes of a job, relays their output, collects their metrics and files,\n"
		"gives one verdict and leaves nothing behind.\n"
		".PP\n"
		"\\fIRUN\\fR is the id of a run or any unique prefix of it; where it may be left out, the\n"
		"latest run is meant.\n"
		"The result of a command is printed on standard output, everything else on standard error.\n"
		".SH COMMANDS\n");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->group)
			command(out, c);
	buf_addz(out, ".SH COMMON OPTIONS\n");
	for (const struct cli_option *o = cli_common_options; o->name; o++)
		option(out, o);
	buf_addz(
		out,
		".SH ENVIRONMENT\n"
		".TP\n.B REGATTA_HOME\n"
		"The directory of the state; default \\fI${XDG_STATE_HOME:\\-\\(ti/.local/state}/regatta\\fR.\n"
		".TP\n.B REGATTA_MASTER\n"
		"The master to talk to, as \\fB\\-\\-master\\fR names it.\n"
		"The option comes first, then this variable, then the context that 'regatta context use' chose,\n"
		"then the user's own master on this machine.\n"
		".TP\n.B REGATTA_TOKEN\\fR, \\fBREGATTA_PIN\n"
		"Token and pin of a master that is given as a URL.\n"
		".TP\n.B https_proxy\\fR, \\fBno_proxy\n"
		"The proxy that other masters are reached through, and which of them are not.\n"
		".TP\n.B NO_COLOR\n"
		"When set, no colours on a terminal.\n"
		".SH FILES\n"
		".TP\n.I $REGATTA_HOME/runs/RUN/logs/NODE.log\n"
		"Standard output of a node, byte by byte; standard error is in \\fINODE.err.log\\fR,\n"
		"and \\fINODE.order\\fR tells in which order the two came.\n"
		"\\fINODE.log.times\\fR has offsets of the log and when the master got what begins there.\n"
		".TP\n.I $REGATTA_HOME/master.log\n"
		"The log of a master that was started in the background.\n"
		".TP\n.I $REGATTA_HOME/contexts/NAME.json\n"
		"URL, pin and token of a master; \\fIcurrent\\fR beside them has the name of the current context.\n"
		".SH EXIT STATUS\n");
	static const char *const codes[] = {
		"ok",	     "the job failed", "usage or bad input",
		"not found", "denied",	       "capacity or quota",
		"timed out", "cancelled",      "unavailable",
	};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		buf_printf(out, ".TP\n.B %zu\n%s\n", i, codes[i]);
}
