#pragma once
/* What the files of strategy/ share. */
#include "strategy/strategy.h"

extern const struct strategy strategy_single;
extern const struct strategy strategy_roles;
extern const struct strategy strategy_pserver;
extern const struct strategy strategy_torch;
extern const struct strategy strategy_elastic;
extern const struct strategy strategy_tf;
extern const struct strategy strategy_jax;
extern const struct strategy strategy_mxnet;
extern const struct strategy strategy_horovod;
extern const struct strategy strategy_paddle;
extern const struct strategy strategy_inference;
extern const struct strategy strategy_mpi;

/* One strategy_role per role of the job, in the order of the file, with `after` as indices and
 * ready_when resolved; services are the roles with service = true. */
void crew_roles(const struct job *job, struct arena *a, struct crew *c);
/* Lay out the members: counted roles first, in the order of the file, then the services. */
void crew_members(struct crew *c, struct arena *a);

/* The crew of a strategy that knows no roles by name: `count` workers, or the free roles of the file. */
bool crew_free(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps);

/* The role starts when `other` is ready, besides those that it waits for already. */
void crew_start_after(struct strategy_role *r, int other, struct arena *a);

/* All roles but those that it waits for itself start when the role of this name is ready; nothing if there is none. */
void crew_gate(struct crew *c, const char *name, struct arena *a);
/* NULL: there is none. */
struct strategy_role *crew_role(const struct crew *c, const char *name);

/* The role of this name; NULL: the file has none. */
struct role *added_find(const struct job *job, const char *name);
/* The keys of a job without roles become its role "worker". */
void added_workers(struct job *job, struct arena *a);
/* The role of this name: that of the file, or a new one of one node.  Roles move: others found before are not valid. */
struct role *added_role(struct job *job, struct arena *a, const char *name);
/* Does the file give the role a command of its own? */
bool added_has_command(const struct job *job, const struct role *r);
/* The Python that the counted roles name, if they do; otherwise "python3". */
const char *added_python(const struct job *job);
/* The role runs `shell -c script`. */
void added_run_script(struct role *r, struct arena *a, const char *shell, const char *script);

/* Is the command a torchrun? */
bool torch_runs_torchrun(const struct strs *command);
/* A node of a counted role that runs torchrun starts it once; its ranks stay as they are. */
void torch_start_torchrun_once(struct crew *c);

/* Name and template are kept, not copied. */
void env_put(struct env_list *env, struct arena *a, const char *name, const char *template);
/* Plain text: braces are quoted. */
void env_put_text(struct env_list *env, struct arena *a, const char *name, const char *text);
void env_put_int(struct env_list *env, struct arena *a, const char *name, int64_t value);
/* The template of "address:port" of rank 0. */
void env_put_first(struct env_list *env, struct arena *a, const char *name, int port);

/* The template of the rank of a process.  While every node has one process that is the node's rank, in the words
 * of agents of earlier versions. */
const char *env_rank(const struct env_input *in);

/* The template of the number of a process on its node. */
const char *env_local(const struct env_input *in, int role);
/* The template of "address:port" of each process of WHO (base/expand.h).  While every node has one process, in the words
 * of agents of earlier versions. */
const char *env_endpoints(const struct crew *crew, struct arena *a, const char *who,
			  const char *between, int port);
/* The port that the env of the role or of the job gives by this name. */
int env_port(const struct env_input *in, int role, const char *name, int fallback);

/* The port of the first rank's store, and of JAX' coordinator. */
int env_torch_port(const struct env_input *in, int role);
int env_jax_port(const struct env_input *in, int role);

struct paddle_servers {
	const char *list; /* the template of their endpoints */
	int port, ports_num, sparse_ports_num;
};
/* The names of jobs with parameter servers, of all versions of Paddle's own tools. */
void env_paddle_servers(const struct env_input *in, const struct paddle_servers *s, struct arena *a,
			struct env_list *env);

/* Where TensorFlow's tasks listen if their role has no port. */
#define TF_PORT 2222
#define EVALUATOR "evaluator" /* a task, but none of the cluster */

bool mpi_cause(struct str tail, struct strategy_end *ret);
bool mpi_daemon(struct str command, struct strategy_daemon *ret);

/* Groups of names; each appends. */
void env_regatta(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_torch(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_jax(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_mpi(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_tf(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_paddle(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_anubis(const struct env_input *in, int role, struct arena *a, struct env_list *env);
void env_network(const struct env_input *in, int role, struct arena *a, struct env_list *env);
