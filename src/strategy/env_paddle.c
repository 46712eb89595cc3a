/*
 * env_paddle - the names that Paddle reads today.  Trainers are the counted
 * ranks of whatever strategy; servers are the pserver strategy's own matter.
 */
#include "strategy/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"

#define PADDLE_PORT 6170
#define PADDLE_MASTER_PORT 6070

void env_paddle(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	int trainers = in->crew->ncounted, port = env_port(in, rank, PADDLE_PORT);
	CLEANUP(buf_release) struct buf endpoints = {0};

	buf_init(&endpoints, ENV_MAX_VALUE);
	env_endpoints(in, 0, trainers, PADDLE_PORT, &endpoints);
	env_put_buf(env, a, "PADDLE_TRAINER_ENDPOINTS", &endpoints);
	env_put_int(env, a, "PADDLE_TRAINERS_NUM", trainers);
	env_put_endpoint(env, a, "PADDLE_CURRENT_ENDPOINT", env_address(in, rank), port);
	env_put_int(env, a, "PADDLE_PORT", port);
	if (rank >= trainers)
		return;
	env_put_int(env, a, "PADDLE_TRAINER_ID", rank);
	env_put_int(env, a, "PADDLE_NNODES", trainers);
	env_put_endpoint(env, a, "PADDLE_MASTER", env_address(in, 0), PADDLE_MASTER_PORT);
}
