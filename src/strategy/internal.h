#pragma once
/* What the files of strategy/ share. */
#include "strategy/strategy.h"

extern const struct strategy strategy_single;
extern const struct strategy strategy_roles;
extern const struct strategy strategy_pserver;

/* One strategy_role per role of the job, in the order of the file, with `after` as indices and
 * ready_when resolved; services are the roles with service = true. */
void crew_roles(const struct job *job, struct arena *a, struct crew *c);
/* Lay out the members: counted roles first, in the order of the file, then the services. */
void crew_members(struct crew *c, struct arena *a);

/* Name and template are kept, not copied. */
void env_put(struct env_list *env, struct arena *a, const char *name, const char *template);
/* Plain text: braces are quoted. */
void env_put_text(struct env_list *env, struct arena *a, const char *name, const char *text);
void env_put_int(struct env_list *env, struct arena *a, const char *name, int64_t value);
/* The template of "address:port" of rank 0. */
void env_put_first(struct env_list *env, struct arena *a, const char *name, int port);

/* Groups of names; each appends. */
void env_regatta(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_torch(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_jax(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_mpi(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_tf(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_paddle(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_anubis(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_network(const struct env_input *in, int role, struct arena *a, struct env_list *env);
