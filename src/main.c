/* main - the first argument says which role of the program runs. */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/inside.h"
#include "agent/rank_tee.h"
#include "agent/rsh_client.h"
#include "cli/cli.h"
#include "sys/forkserver.h"
#include "sys/title.h"

static int version_role(char **argv)
{
	(void)argv;
	return puts("regatta " REGATTA_VERSION) < 0 || fflush(stdout) != 0 ? 8 : 0;
}

static int agent_role(char **argv)
{
	title_init(3, argv);
	return agent_main(argv[2]);
}

static int forkserver_role(char **argv)
{
	static const struct forkserver_role role = {agent_main, agent_orphan_ended};

	title_init(4, argv);
	return forkserver_serve(&role, argv[2]);
}

/* Started without the command table, for speed; all other commands are rows of it. */
static const struct {
	const char *name;
	int argc; /* exact number of arguments */
	int (*run)(char **argv);
} roles[] = {
	{"--version", 2, version_role},
	{"version", 2, version_role},
	{"node-agent", 3, agent_role},
	{"forkserver", 4, forkserver_role},
};

int main(int argc, char **argv)
{
	if (inside_is(argv[0]))
		return inside_main(argc, argv);
	if (rsh_client_is(argv[0]))
		return rsh_client_main(argc, argv);
	if (rank_tee_is(argv[0]))
		return rank_tee_main(argc, argv);
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (argc == roles[i].argc && strcmp(argv[1], roles[i].name) == 0 &&
		    (argc < 3 || argv[2][0] != '-'))
			return roles[i].run(argv);
	return cli_main(argc, argv);
}
