/* single - one command, `count` times: the nodes are worker-0, worker-1, ... */
#include "strategy/internal.h"

#include "base/arena.h"

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	if (job->roles.n > 0) {
		problems_add(
			ps, a, job->strategy_pos,
			"strategy 'single' takes no roles: use strategy = \"roles\", or write command "
			"and count at the top of the file");
		return false;
	}
	/* The job's own keys as a role, so that the rest of the code finds a role in every job. */
	struct role *worker = arena_new_of(a, struct role);
	*worker = job_worker(job);

	ret->nroles = 1;
	ret->roles = arena_new_of(a, struct strategy_role);
	ret->roles[0] = (struct strategy_role){
		.name = worker->name,
		.spec = worker,
		.count = (int)job->count,
		.max = (int)job->policy.max,
		.command = job->command,
		.processes = (int)job->processes,
		.ranks = (int)job->processes,
		.counted = true,
		.ready_when = READY_STARTED,
	};
	crew_members(ret, a);
	return true;
}

const struct strategy strategy_single = {
	.name = "single",
	.help = "the same command on every node",
	.crew = crew,
};
