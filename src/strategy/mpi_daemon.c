/*
 * mpi_daemon - the commands with which mpirun and Hydra start their daemons on other nodes.
 *
 * Open MPI's is "orted --daemonize ...", with "--prefix" after assignments: "PATH=...; export PATH;
 * /opt/bin/orted --daemonize ...".  MPICH's and Intel's is "\"/usr/bin/hydra_pmi_proxy\" ...".
 */
#include "strategy/internal.h"

#include <string.h>

#define CODE_NO_EXEC 126 /* as a shell says it */
#define CODE_NO_PROGRAM 127

static bool is_daemon(struct str program)
{
	static const char *const names[] = {"orted", "prted", "hydra_pmi_proxy",
					    "hydra_bstrap_proxy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(program, names[i]))
			return true;
	return false;
}

/* The next word, without quotes and directories; empty at the end. */
static struct str next_word(struct str *rest)
{
	size_t i = 0;

	while (i < rest->n && strchr(" \t\n\"'", rest->p[i]))
		i++;
	const char *from = rest->p + i;
	size_t start = i;

	while (i < rest->n && !strchr(" \t\n\"';", rest->p[i])) {
		if (rest->p[i] == '/')
			from = rest->p + i + 1;
		i++;
	}
	if (i == start && i < rest->n) /* ";" is a word of its own */
		i++;
	struct str word = {from, (size_t)(rest->p + i - from)};

	*rest = (struct str){rest->p + i, rest->n - i};
	return word;
}

/*
 * A daemon that stays in the foreground ends with whatever code its job has.  mpirun itself notices one that ends too
 * early, and may try again, unless it starts one after the other (mpi.c): then it waits for the rest, which it has not
 * started.
 */
enum strategy_daemon_end strategy_daemon_end(const struct crew *crew, bool leaves,
					     enum err_kind kind, int code, int signal)
{
	bool ran = kind == ERR_NONE;

	if (kind == ERR_NOT_FOUND || (ran && (code == CODE_NO_EXEC || code == CODE_NO_PROGRAM)))
		return DAEMON_IS_MISSING;
	return leaves && crew->one_host && (!ran || code != 0 || signal != 0) ? DAEMON_HAS_FAILED
									      : DAEMON_IS_LAUNCHERS;
}

bool mpi_daemon(struct str command, struct strategy_daemon *ret)
{
	bool first = true; /* of a command: what follows are its arguments */
	struct str word;

	*ret = (struct strategy_daemon){0};
	while ((word = next_word(&command)).n > 0) {
		if (first && is_daemon(word))
			ret->name = word;
		if (str_is(word, "--daemonize"))
			ret->leaves = true;
		first = str_is(word, ";");
	}
	return ret->name.n > 0;
}
