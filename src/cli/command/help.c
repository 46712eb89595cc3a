/* regatta help, version, completion: they read only the table. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "fmt/jsonw.h"

static void json_text(struct buf *out, const char *key, struct str text)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kstr(&w, key, text);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int cli_print_text(const struct call *c, const char *key, const struct buf *text)
{
	CLEANUP(buf_release) struct buf json = {0};

	if (c->output == OUTPUT_TABLE)
		return cli_print(text);
	buf_init(&json, CLI_MAX_TEXT);
	json_text(&json, key, buf_str(text));
	return cli_print(&json);
}

int command_help(const struct call *c)
{
	CLEANUP(buf_release) struct buf text = {0};
	const char *name = call_arg(c, 0);
	const struct command *cmd = name ? cli_command(str_from(name)) : NULL;

	buf_init(&text, CLI_MAX_TEXT);
	if (call_flag(c, "man")) {
		manpage_render(&text);
	} else if (cmd) {
		help_command(cmd, &text);
	} else if (!name) {
		help_overview(&text);
	} else {
		const char *near = cli_nearest_command(name);
		if (near)
			cli_say("no command '%.100s' to help with: did you mean '%s'?", name, near);
		else
			cli_say("no command '%.100s' to help with: 'regatta --help' lists them",
				name);
		return 2;
	}
	return cli_print_text(c, "help", &text);
}

int command_version(const struct call *c)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON)
		json_text(&text, "version", STR(REGATTA_VERSION));
	else
		buf_addz(&text, "regatta " REGATTA_VERSION "\n");
	return cli_print(&text);
}

int command_completion(const struct call *c)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	/* The table allows no other shell than those that can be rendered. */
	if (!completion_render(call_arg(c, 0), &text))
		return 2;
	return cli_print_text(c, "script", &text);
}
