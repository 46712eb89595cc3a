/* regatta iam-policy - the permissions that an engine needs, as a policy document. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/command/engine_input.h"
#include "driver/engine_tools.h"

static bool has_policy(const struct engine_tools *t)
{
	return t->policy;
}

int command_iam_policy(const struct cli_call *c)
{
	const struct engine_tools *t = engine_input(c, has_policy);
	CLEANUP(buf_release) struct buf out = {0};

	if (!t)
		return 2;
	buf_init(&out, CLI_MAX_TEXT);
	t->policy(call_text(c, "bucket"), call_text(c, "cloudwatch"), &out);
	buf_addc(&out, '\n');
	return cli_print(&out);
}
