/* regatta plan - what a run would use, without running it. */
#include "plan/plan.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"
#include "cli/show/terminal.h"

int command_plan(const struct cli_call *c)
{
	struct job_input in;
	int code = job_input_read(c, &in);

	if (code != 0)
		return code;
	CLEANUP(buf_release) struct buf text, fitted;
	buf_init(&text, CLI_MAX_TEXT);
	buf_init(&fitted, CLI_MAX_TEXT);
	const char *id = arena_printf(in.a, "%s-xxxx", in.job->name);
	if (c->output == OUTPUT_JSON) {
		plan_to_json(&in.plan, id, in.a, &text);
		if (text.n && text.p[text.n - 1] != '\n')
			buf_addc(&text, '\n');
		code = cli_print(&text);
	} else {
		struct style st = style_detect(1);
		plan_to_text(&in.plan, id, in.a, &text);
		text_fit(&fitted, buf_str(&text), &st);
		fitted.overflow = fitted.overflow || text.overflow;
		code = cli_print(&fitted);
	}
	job_input_release(&in);
	return code;
}
