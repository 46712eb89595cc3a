/* regatta node-agent - the role that drivers start; main() handles the usual form
 * before the command table. */
#include "agent/agent.h"
#include "agent/enrol.h"

#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/commands.h"

int command_node_agent(const struct cli_call *c)
{
	const char *enrol = call_text(c, "enrol"), *dir = call_arg(c, 0);
	struct err err = {0};

	if (!enrol == !dir) {
		err_set(&err, ERR_INVALID,
			"node-agent: one of NODE_DIR and --enrol FILE is needed");
		return cli_fail(&err);
	}
	return enrol ? agent_enrol_main(enrol) : agent_main(dir);
}
