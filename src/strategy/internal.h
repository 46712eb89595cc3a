#pragma once
/* What the files of strategy/ share. */
#include "strategy/strategy.h"

struct buf;

extern const struct strategy strategy_single;
extern const struct strategy strategy_roles;
extern const struct strategy strategy_pserver;

/* One strategy_role per role of the job, in the order of the file, with `after` as indices and
 * ready_when resolved; services are the roles that say so. */
void crew_roles(const struct job *job, struct arena *a, struct crew *c);
/* Lay out the members: counted roles first, in the order of the file, then the services. */
void crew_members(struct crew *c, struct arena *a);

/*
 * A variable longer than this is left out.  Linux takes 128 KiB for name, '='
 * and value together, and an exec with a longer one fails as a whole.  What
 * does not fit is a list of thousands of addresses; the hostfile has them all.
 */
#define ENV_MAX_VALUE 120000

/* Name and value are kept, not copied. */
void env_put(struct env_list *env, struct arena *a, const char *name, const char *value);
void env_put_int(struct env_list *env, struct arena *a, const char *name, int64_t value);
/* "address:port". */
void env_put_endpoint(struct env_list *env, struct arena *a, const char *name, const char *address,
		      int port);
/* The buffer's text (copied), or nothing if it overflowed. */
void env_put_buf(struct env_list *env, struct arena *a, const char *name, const struct buf *value);

/* The node's address, or its name while only the node knows. */
const char *env_address(const struct env_input *in, int rank);
/* The port of the rank's role, or the fallback if it has none. */
int env_port(const struct env_input *in, int rank, int fallback);
/* ":5436" */
void env_add_port(struct buf *out, int port);
/* "address:port,address:port" of ranks from .. to-1; `out` overflows where it would be too long. */
void env_endpoints(const struct env_input *in, int from, int to, int fallback_port,
		   struct buf *out);
/* Groups of names; each appends. */
void env_regatta(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_torch(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_jax(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_mpi(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_tf(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_paddle(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_anubis(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
void env_network(const struct env_input *in, int rank, struct arena *a, struct env_list *env);
