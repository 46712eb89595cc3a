/* regatta version. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/command/commands.h"

int command_version(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON)
		buf_addz(&text, REGATTA_VERSION);
	else
		buf_addz(&text, "regatta " REGATTA_VERSION "\n");
	return cli_print_text(c, "version", &text);
}
