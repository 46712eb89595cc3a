/* regatta sim - the simulator with the options of the command line. */
#include "sim/sim.h"

#include "cli/cli.h"
#include "cli/command/commands.h"

#define DEFAULT_SEEDS 100
#define DEFAULT_NODES 3

int command_sim(const struct cli_call *c)
{
	const char *each[2];
	struct sim_options o = {
		.first_seed = (uint64_t)call_number(c, "seed", 1),
		.seeds = call_number(c, "seeds", DEFAULT_SEEDS),
		.nodes = (int)call_number(c, "nodes", DEFAULT_NODES),
		.verbose = (int)call_texts(c, "verbose", each, 2), /* -v, -vv */
		.json = c->output == OUTPUT_JSON,
	};

	return sim_main(&o);
}
