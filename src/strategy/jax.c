/* jax - one JAX process for each rank, with a coordinator on the first node (env_jax in env.c). */
#include "strategy/internal.h"

/* The coordinator listens on all addresses. */
static bool ports(const struct env_input *in, int rank, struct strategy_port *ret)
{
	int role = in->crew->members[rank].role;

	*ret = (struct strategy_port){env_jax_port(in, role), 1, true, "env.JAX_COORDINATOR_PORT"};
	return rank == 0 && in->crew->roles[role].counted;
}

const struct strategy strategy_jax = {
	.name = "jax",
	.help = "JAX: every rank is a process of one cluster, rank 0 its coordinator",
	.ends_together = true,
	.crew = crew_free,
	.ports = ports,
};
