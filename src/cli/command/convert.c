/* regatta convert - a job file of another system, or a native one, in the native form. */
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"

int command_convert(const struct cli_call *c)
{
	struct job_input in;
	int code = job_input_read(c, &in);

	if (code != 0)
		return code;
	code = job_input_print(c, &in);
	job_input_release(&in);
	return code;
}
