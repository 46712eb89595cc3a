/*
 * env_paddle - the names that Paddle 2 and 3 read.  Trainers are the counted
 * ranks of any strategy; pserver.c adds the names of the servers.
 */
#include "strategy/internal.h"

#include "base/arena.h"

#define PADDLE_PORT 6170
#define PADDLE_MASTER_PORT 6070

void env_paddle(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	const struct strategy_role *r = &in->crew->roles[role];
	int port = r->port ? r->port : PADDLE_PORT;

	env_put(env, a, "PADDLE_TRAINER_ENDPOINTS",
		arena_printf(a, "{list:+|,|{address}:{port:%d}}", PADDLE_PORT));
	env_put_int(env, a, "PADDLE_TRAINERS_NUM", in->crew->ncounted);
	env_put(env, a, "PADDLE_CURRENT_ENDPOINT", arena_printf(a, "{address}:%d", port));
	env_put_int(env, a, "PADDLE_PORT", port);
	if (!r->counted)
		return;
	env_put(env, a, "PADDLE_TRAINER_ID", "{rank}");
	env_put_int(env, a, "PADDLE_NNODES", in->crew->ncounted);
	env_put_first(env, a, "PADDLE_MASTER", PADDLE_MASTER_PORT);
}
