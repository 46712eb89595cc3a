/* roles - free roles with gates.  Services are stopped when the others are done. */
#include "strategy/internal.h"

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	bool ok = true, any_counted = false;

	if (job->roles.n == 0) {
		problems_add(ps, a, job->strategy_pos,
			     "strategy 'roles' needs at least one table [roles.<name>]");
		return false;
	}
	crew_roles(job, a, ret);
	for (int i = 0; i < ret->nroles; i++) {
		const struct strategy_role *r = &ret->roles[i];

		any_counted = any_counted || r->counted;
		if (!r->counted && r->ready_when == READY_FINISHED) {
			problems_add(ps, a, r->spec->pos,
				     "roles.%s: a service does not finish by itself: ready_when is "
				     "\"started\" or \"port\", or service is false",
				     r->name);
			ok = false;
		}
	}
	if (!any_counted) {
		problems_add(
			ps, a, ret->roles[0].spec->pos,
			"every role is a service: at least one must count for the finish (service = false)");
		ok = false;
	}
	if (ok)
		crew_members(ret, a);
	return ok;
}

const struct strategy strategy_roles = {
	.name = "roles",
	.help = "free roles: gates by `after`, services, ports that are probed",
	.crew = crew,
};
