/*
 * torch - one process group of all counted nodes, as torchrun and env:// know it.
 *
 * A plain program is started processes_per_node times on each node and finds its place in the common
 * environment (env.c).  A node that runs torchrun starts it once: torchrun starts the processes of its node,
 * and a bare `torchrun train.py` reads everything it needs from the PET_ names.
 */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/path.h"

/* torchrun by its own name, and the modules that are it. */
static const char *const programs[] = {"torchrun", "torch.distributed.run",
				       "torch.distributed.launch"};
#define NPROGRAMS (sizeof(programs) / sizeof(programs[0]))

static bool is_program(const char *word)
{
	for (size_t i = 0; i < NPROGRAMS; i++)
		if (strcmp(word, programs[i]) == 0)
			return true;
	return false;
}

static bool is_word_end(char c)
{
	return c == '\0' || strchr(" \t\n;&|\"'", c);
}

/* A shell script that has the name as a word of its own, also as the last part of a path. */
static bool script_has_program(const char *script)
{
	for (size_t i = 0; i < NPROGRAMS; i++)
		for (const char *at = script; (at = strstr(at, programs[i])); at++)
			if ((at == script || at[-1] == '/' || is_word_end(at[-1])) &&
			    is_word_end(at[strlen(programs[i])]))
				return true;
	return false;
}

/* "-c", also with other options of a shell before it: "-lc", "-exc". */
static bool is_script_option(const char *word)
{
	return word[0] == '-' && word[1] != '-' && word[strlen(word) - 1] == 'c';
}

bool torch_runs_torchrun(const struct strs *command)
{
	for (size_t i = 0; i < command->n; i++) {
		const char *word = command->v[i];

		if (i == 0 ? is_program(path_base(word))
			   : is_program(word) && strcmp(command->v[i - 1], "-m") == 0)
			return true;
		if (i > 0 && is_script_option(command->v[i - 1]))
			return script_has_program(word);
	}
	return false;
}

void torch_start_torchrun_once(struct crew *c)
{
	for (int i = 0; i < c->nroles; i++)
		if (c->roles[i].counted && torch_runs_torchrun(&c->roles[i].command))
			c->roles[i].processes = 1;
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	if (!crew_free(job, a, ret, ps))
		return false;
	torch_start_torchrun_once(ret);
	return true;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	const struct strategy_role *r = &in->crew->roles[role];

	if (r->counted && r->processes < r->ranks)
		env_put_int(out, a, "PET_NPROC_PER_NODE", r->ranks);
}

/* The first rank, or its torchrun, listens on all addresses for the others. */
static bool ports(const struct env_input *in, int rank, struct strategy_port *ret)
{
	int role = in->crew->members[rank].role;

	*ret = (struct strategy_port){env_torch_port(in, role), 1, true, "env.MASTER_PORT"};
	return rank == 0 && in->crew->roles[role].counted;
}

const struct strategy strategy_torch = {
	.name = "torch",
	.help = "PyTorch: all ranks in one group; torchrun, or the program itself on every rank",
	.ends_together = true,
	.crew = crew,
	.env = env,
	.ports = ports,
};
