/* regatta attach - watch a run that was started before. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/command/run.h"

int command_attach(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *id = NULL;
	CLEANUP(close_fdp) int signals = -1;
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run_to_end(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	if ((signals = watch_signals(&err)) < 0)
		return cli_fail(&err);
	return run_watch(c, &api, id, signals, true);
}
