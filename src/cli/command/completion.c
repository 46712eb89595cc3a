/* regatta completion - the script for a shell. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/command/commands.h"

int command_completion(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	/* The table allows no other shell than those that can be rendered. */
	if (!completion_render(call_arg(c, 0), &text))
		return 2;
	return cli_print_text(c, "script", &text);
}
