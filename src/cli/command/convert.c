/* regatta convert - a job file of another system, or a native one, in the native form. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"
#include "fmt/doc.h"

int command_convert(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct job_input in;
	int code = job_input_read(c, &in);

	if (code != 0)
		return code;
	buf_init(&text, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		doc_to_json(in.doc, &text);
		buf_addc(&text, '\n');
	} else {
		doc_to_toml(in.doc, &text);
	}
	job_input_release(&in);
	return cli_print(&text);
}
