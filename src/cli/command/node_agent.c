/* regatta node-agent - the role that drivers start; main() handles the usual form
 * before the command table. */
#include "agent/agent.h"
#include "agent/enrol.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/commands.h"

/* For the init container of a pod, whose image has nothing but this program. */
static int copy_program(const char *to, struct err *err)
{
	CLEANUP(close_fdp) int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CLEANUP(close_fdp) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n;

	if (in < 0 || out < 0)
		return err_errno(err, errno, "copy this program to '%s'", to);
	while ((n = sendfile(out, in, NULL, 1 << 30)) > 0)
		;
	return n < 0 ? err_errno(err, errno, "copy this program to '%s'", to) : 0;
}

int command_node_agent(const struct cli_call *c)
{
	const char *enrol = call_text(c, "enrol"), *dir = call_arg(c, 0);
	const char *copy = call_text(c, "copy-to");
	struct err err = {0};

	if (copy)
		return copy_program(copy, &err) < 0 ? cli_fail(&err) : 0;
	if (!enrol == !dir) {
		err_set(&err, ERR_INVALID,
			"node-agent: one of NODE_DIR and --enrol FILE is needed");
		return cli_fail(&err);
	}
	return enrol ? agent_enrol_main(enrol) : agent_main(dir);
}
