/*
 * pserver - parameter servers and trainers, as in the Paddle benchmark tool.
 *
 * The servers are services and are ready when their port answers; the trainers
 * start then and decide the finish.  Besides the common environment every node
 * gets the names of that tool and of its form on Kubernetes, so that its
 * scripts run unchanged.
 */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/suggest.h"

#define DEFAULT_PORT 5436
/* So many fit in one variable: see EXPAND_MAX_VARIABLE. */
#define MAX_PSERVERS 5000

enum { PSERVER, TRAINER };
static const char *const role_names[] = {[PSERVER] = "pserver", [TRAINER] = "trainer"};
#define NROLES 2

static int role_of(const char *name)
{
	for (int i = 0; i < NROLES; i++)
		if (strcmp(role_names[i], name) == 0)
			return i;
	return -1;
}

/* Finds the two roles; any other role is a problem.  A misspelt name counts as found, so that one
 * typing error is one problem. */
static bool find_roles(const struct job *job, struct arena *a, struct problems *ps)
{
	bool there[NROLES] = {false}, ok = true;

	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);
		const char *near;

		if (role_of(r->name) >= 0) {
			there[role_of(r->name)] = true;
			continue;
		}
		ok = false;
		near = suggest_word(role_names, NROLES, str_from(r->name));
		if (near) {
			there[role_of(near)] = true;
			problems_add(ps, a, r->pos,
				     "strategy 'pserver' knows no role '%s': did you mean '%s'?",
				     r->name, near);
		} else {
			problems_add(
				ps, a, r->pos,
				"strategy 'pserver' knows no role '%s': its roles are pserver and "
				"trainer; others are possible with strategy = \"roles\"",
				r->name);
		}
	}
	for (int i = 0; i < NROLES; i++) {
		if (!there[i]) {
			ok = false;
			problems_add(ps, a, job->strategy_pos,
				     "strategy 'pserver' needs a table [roles.%s]", role_names[i]);
		}
	}
	return ok;
}

static bool check_server(const struct role *r, struct arena *a, struct problems *ps)
{
	size_t before = ps->n + ps->more;

	if (r->service_set && !r->service)
		problems_add(
			ps, a, r->pos,
			"roles.pserver is a service: leave out service, or use strategy = \"roles\"");
	if (r->after.n > 0)
		problems_add(
			ps, a, r->pos,
			"roles.pserver starts first: leave out after, or use strategy = \"roles\"");
	if (r->ready_when == READY_FINISHED)
		problems_add(
			ps, a, r->pos,
			"roles.pserver does not finish by itself: ready_when is \"port\" or \"started\"");
	if (r->policy.max > MAX_PSERVERS)
		problems_add(ps, a, r->pos, "roles.pserver.%s is %lld: at most %d",
			     r->policy.max > r->count ? "max" : "count", (long long)r->policy.max,
			     MAX_PSERVERS);
	return ps->n + ps->more == before;
}

static bool check_trainer(const struct role *r, struct arena *a, struct problems *ps)
{
	if (!r->service)
		return true;
	problems_add(
		ps, a, r->pos,
		"roles.trainer decides when the run is finished and is no service: leave out service, "
		"or use strategy = \"roles\"");
	return false;
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	bool ok = find_roles(job, a, ps);
	int at[NROLES] = {0};

	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);
		int role = role_of(r->name);

		if (role >= 0)
			at[role] = (int)i;
		if (role == PSERVER)
			ok = check_server(r, a, ps) && ok;
		if (role == TRAINER)
			ok = check_trainer(r, a, ps) && ok;
	}
	if (!ok)
		return false;

	crew_roles(job, a, ret);
	struct strategy_role *server = &ret->roles[at[PSERVER]],
			     *trainer = &ret->roles[at[TRAINER]];
	server->counted = false;
	if (server->port == 0)
		server->port = DEFAULT_PORT;
	if (server->spec->ready_when == READY_DEFAULT)
		server->ready_when = READY_PORT;
	trainer->after = arena_new_of(a, int);
	trainer->after[0] = at[PSERVER];
	trainer->nafter = 1;
	crew_members(ret, a);
	return true;
}

static int server_port(const struct crew *c)
{
	for (int i = 0; i < c->nroles; i++)
		if (role_of(c->roles[i].name) == PSERVER)
			return c->roles[i].port;
	return DEFAULT_PORT;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	bool trainer = in->crew->roles[role].counted;
	int port = server_port(in->crew);

	const struct paddle_servers servers = {
		.list = arena_printf(a, "{list:%s|,|{address}:{port:%d}}", role_names[PSERVER],
				     DEFAULT_PORT),
		.port = port,
		.ports_num = 1,
	};

	env_paddle_servers(in, &servers, a, out);
	env_put(out, a, "TRAINING_ROLE", trainer ? "TRAINER" : "PSERVER");
	env_put(out, a, "TRAINER_INDEX", trainer ? "{index}" : "0");
	if (trainer)
		env_put(out, a, "PADDLE_INIT_TRAINER_ID", "{index}");
	else
		env_put(out, a, "SERVER_ENDPOINT", arena_printf(a, "{address}:%d", port));
}

const struct strategy strategy_pserver = {
	.name = "pserver",
	.help = "parameter servers and trainers: trainers start when every server's port answers",
	.crew = crew,
	.env = env,
};
