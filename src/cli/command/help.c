/* regatta help - texts from the command table. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/commands.h"

int command_help(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf text = {0};
	const char *name = call_arg(c, 0);
	const struct command *cmd = name ? cli_find_command(str_from(name)) : NULL;

	buf_init(&text, CLI_MAX_TEXT);
	if (call_flag(c, "man")) {
		manpage_render(&text);
	} else if (cmd) {
		help_command(cmd, &text);
	} else if (!name) {
		help_overview(&text);
	} else {
		const char *near = cli_suggest_command(name);
		if (near)
			cli_say("no command '%.100s' to help with: did you mean '%s'?", name, near);
		else
			cli_say("no command '%.100s' to help with: 'regatta --help' lists them",
				name);
		return 2;
	}
	return cli_print_text(c, "help", &text);
}
