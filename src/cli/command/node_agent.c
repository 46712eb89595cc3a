/* regatta node-agent - the role that drivers start; main() handles the usual form
 * before the command table. */
#include "agent/agent.h"

#include "cli/cli.h"
#include "cli/command/commands.h"

int command_node_agent(const struct cli_call *c)
{
	return agent_main(call_arg(c, 0));
}
