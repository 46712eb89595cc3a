/*
 * mpi - the command, which calls mpirun or mpiexec, runs once; all other nodes idle.
 *
 * Without a role named "launcher" it runs on the node of rank 0, which has slots like the others;
 * with one it runs on the node of that role, and the other roles have the slots.  mpirun starts its
 * daemons through the agents (docs/frameworks.md), so the variables here name our program where Open
 * MPI and Hydra expect ssh.
 */
#include "strategy/internal.h"

#include <string.h>

#include "base/arena.h"

static const char launcher_name[] = "launcher";
/* Needs no command beside a launcher's. */
static const char *const brings[] = {"worker", NULL};

static bool check_policy(const struct policy *p, int64_t count, struct doc_pos pos,
			 const char *where, struct arena *a, struct problems *ps)
{
	bool fixed = p->min == count && p->max == count;
	bool ends = p->on_lost == LOST_FAIL || p->on_lost == LOST_RESTART;

	if (!fixed)
		problems_add(ps, a, pos,
			     "%sstrategy 'mpi' has a fixed number of nodes: leave out min and max",
			     where);
	if (!ends)
		problems_add(ps, a, pos,
			     "%smpirun does not survive the loss of a node: on_lost is \"fail\" or "
			     "\"restart\" with strategy 'mpi'",
			     where);
	return fixed && ends;
}

static bool crew_of_role(const struct job *job, struct arena *a, struct crew *ret,
			 struct problems *ps)
{
	struct strategy_role *r = &ret->roles[0];

	r->counted = true;
	r->processes = 1;
	r->ready_when = READY_STARTED;
	ret->launch = LAUNCH_FIRST;
	return check_policy(&r->spec->policy, r->count, job->strategy_pos, "", a, ps);
}

static bool crew_of_launcher(struct arena *a, struct crew *ret, int launcher, struct problems *ps)
{
	struct strategy_role *l = &ret->roles[launcher];
	bool ok = true;

	if (l->count != 1) {
		problems_add(ps, a, l->spec->pos, "roles.%s: one node launches, not %d: count is 1",
			     l->name, l->count);
		ok = false;
	}
	ret->launch = LAUNCH_ROLE;
	l->after = arena_array(a, int, (size_t)ret->nroles);
	l->nafter = 0;
	for (int i = 0; i < ret->nroles; i++) {
		struct strategy_role *r = &ret->roles[i];
		const char *where = arena_printf(a, "roles.%s: ", r->name);

		r->counted = i == launcher;
		r->processes = 1;
		r->ready_when = READY_STARTED;
		ok &= check_policy(&r->spec->policy, r->count, r->spec->pos, where, a, ps);
		if (i == launcher)
			continue;
		r->nafter = 0;
		r->command = l->command;
		l->after[l->nafter++] = i;
	}
	return ok;
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	int launcher = -1;
	bool ok = true;

	if (job->roles.n > 0)
		crew_roles(job, a, ret);
	else if (!strategy_single.crew(job, a, ret, ps))
		return false;
	for (int i = 0; i < ret->nroles; i++)
		if (strcmp(ret->roles[i].name, launcher_name) == 0)
			launcher = i;
	if (ret->nroles == 1) {
		ok &= crew_of_role(job, a, ret, ps);
	} else if (launcher >= 0) {
		ok &= crew_of_launcher(a, ret, launcher, ps);
	} else {
		problems_add(
			ps, a, job->strategy_pos,
			"strategy 'mpi' has one role, or a role named 'launcher' that runs the "
			"command and others for its processes");
		return false;
	}
	const struct strategy_role *runs = &ret->roles[launcher >= 0 ? launcher : 0];

	if (runs->command.n == 0) {
		problems_add(ps, a, runs->spec->pos,
			     "roles.%s has no command: write command = [\"mpirun\", \"program\"]",
			     runs->name);
		ok = false;
	}
	if (ok)
		crew_members(ret, a);
	return ok;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	static const struct env_pair own[] = {
		/* Open MPI 4 and earlier.  With a tree daemons would start daemons, by the path of
		 * the launcher's node. */
		{"OMPI_MCA_plm_rsh_agent", "{rsh}"},
		{"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
		/* Every rank is started through it, after Open MPI has found the program. */
		{"OMPI_MCA_orte_fork_agent", "{tee}"},
		{"OMPI_MCA_oob_tcp_if_include", "{interface}"},
		{"OMPI_MCA_btl_tcp_if_include", "{interface}"},
		/* Nodes may share a machine: each would bind its processes to the first cores. */
		{"OMPI_MCA_hwloc_base_binding_policy", "none"},
		{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
		{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
		/* Open MPI 5. */
		{"PRTE_MCA_plm_ssh_agent", "{rsh}"},
		{"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
		{"PRTE_MCA_odls_base_exec_agent", "{tee}"},
		{"PRTE_ALLOW_RUN_AS_ROOT", "1"},
		{"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
		/* MPICH and Intel MPI. */
		{"HYDRA_LAUNCHER", "rsh"},
		{"HYDRA_LAUNCHER_EXEC", "{rsh}"},
		{"HYDRA_IFACE", "{interface}"},
		/* Each process has the variables of its own node, not those of the launcher's. */
		{"HYDRA_ENV", "none"},
		{"I_MPI_HYDRA_BOOTSTRAP", "rsh"},
		{"I_MPI_HYDRA_BOOTSTRAP_EXEC", "{rsh}"},
		{"I_MPI_HYDRA_IFACE", "{interface}"},
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		env_put(out, a, own[i].name, own[i].value);
	env_put(out, a, "REGATTA_RSH", "{rsh}");
	env_put(out, a, "REGATTA_TEE", "{tee}");
	/* Open MPI names shared memory by host and local rank: two nodes of one host would get the same.  Their
	 * daemons share a directory and the file with the machine's topology: one of two that start at the
	 * same moment may end without a word, and mpirun waits for it for ever. */
	if (in->crew->one_host && in->crew->n > 1) {
		env_put(out, a, "OMPI_MCA_btl", "self,tcp");
		env_put(out, a, "OMPI_MCA_rtc_hwloc_vmhole", "none");
		env_put(out, a, "OMPI_MCA_plm_rsh_num_concurrent", "1");
		/* UCX (MPICH) takes containers of one machine for one node, and waits for memory that they do not share. */
		if (job_image(in->job, in->crew->roles[role].spec))
			env_put(out, a, "UCX_TLS", "self,tcp");
	}
}

const struct strategy strategy_mpi = {
	.name = "mpi",
	.help = "the command runs once and calls mpirun, which starts its processes on all nodes without "
		"ssh",
	.brings = brings,
	.crew = crew,
	.env = env,
	.cause = mpi_cause,
	.daemon = mpi_daemon,
};
