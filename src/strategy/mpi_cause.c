/*
 * mpi_cause - which process ended an MPI job, in the words of Open MPI's mpirun and of Hydra.
 *
 * Only sentences that have stood there for many versions are read; the caller has the exit code of
 * mpirun and its last lines otherwise.
 */
#include "strategy/internal.h"

#include <string.h>

/* Moves behind the words, if the text has them. */
static bool skip_to(struct str *text, const char *words)
{
	const char *at = memmem(text->p, text->n, words, strlen(words));

	if (!at)
		return false;
	size_t skipped = (size_t)(at - text->p) + strlen(words);

	*text = (struct str){text->p + skipped, text->n - skipped};
	return true;
}

/* Moves behind the words, if the text has them before the next rule ("---"). */
static bool skip_near(struct str *text, const char *words)
{
	struct str near = *text;
	const char *end = memmem(near.p, near.n, "\n---", 4);

	if (end)
		near.n = (size_t)(end - near.p);
	if (!skip_to(&near, words))
		return false;
	*text = (struct str){near.p, (size_t)(text->p + text->n - near.p)};
	return true;
}

/* The whole number at the beginning, after spaces; at most 9 digits. */
static bool take_number(struct str *text, int *ret)
{
	size_t i = 0, from;
	int n = 0;

	while (i < text->n && text->p[i] == ' ')
		i++;
	for (from = i; i < text->n && i - from < 9 && text->p[i] >= '0' && text->p[i] <= '9'; i++)
		n = n * 10 + (text->p[i] - '0');
	if (i == from)
		return false;
	*text = (struct str){text->p + i, text->n - i};
	*ret = n;
	return true;
}

static void take_word(struct str *text, struct str *ret)
{
	size_t i = 0;

	while (i < text->n && !strchr(" \n\t,.;:", text->p[i]))
		i++;
	/* An address has dots and colons in it: those are not the end of a sentence. */
	while (i + 1 < text->n && strchr(".:", text->p[i]) && !strchr(" \n\t", text->p[i + 1])) {
		i++;
		while (i < text->n && !strchr(" \n\t,.;:", text->p[i]))
			i++;
	}
	*ret = (struct str){text->p, i};
	*text = (struct str){text->p + i, text->n - i};
}

/* "mpirun noticed that process rank 2 with PID 0 on node N exited on signal 9 (Killed)." */
static bool killed(struct str t, struct strategy_end *e)
{
	return skip_to(&t, "noticed that process rank ") && take_number(&t, &e->rank) &&
	       skip_near(&t, " on node ") && (take_word(&t, &e->host), true) &&
	       skip_near(&t, "exited on signal ") && take_number(&t, &e->signal);
}

/* "The first process to do so was: Process name: [[48090,1],2] Exit code: 3" */
static bool exited(struct str t, struct strategy_end *e)
{
	return skip_to(&t, "The first process to do so was:") &&
	       skip_near(&t, "Process name: [[") && skip_near(&t, "],") &&
	       take_number(&t, &e->rank) && skip_near(&t, "Exit code:") &&
	       take_number(&t, &e->code);
}

/* "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD with errorcode 5." */
static bool aborted(struct str t, struct strategy_end *e)
{
	e->what = "called MPI_Abort";
	return skip_to(&t, "MPI_ABORT was invoked on rank ") && take_number(&t, &e->rank) &&
	       skip_near(&t, "errorcode ") && take_number(&t, &e->code);
}

/* "mpirun has exited due to process rank 2 with PID 6511 on node N exiting improperly." */
static bool left_early(struct str t, struct strategy_end *e)
{
	e->what = "ended without MPI_Finalize";
	return skip_to(&t, "has exited due to process rank ") && take_number(&t, &e->rank) &&
	       skip_near(&t, "node ") && (take_word(&t, &e->host), true) &&
	       skip_near(&t, "exiting improperly");
}

/* "ORTE has lost communication with a remote daemon. ... Remote daemon: [[1,0],1] on node N" */
static bool lost_daemon(struct str t, struct strategy_end *e)
{
	e->what = "the daemon of mpirun is gone";
	return skip_to(&t, "has lost communication with a remote daemon") &&
	       skip_near(&t, "Remote daemon:") && skip_near(&t, " on node ") &&
	       (take_word(&t, &e->host), true);
}

/* "ORTE was unable to reliably start one or more daemons."  Which ones is in the logs of their nodes. */
static bool no_daemon(struct str t, struct strategy_end *e)
{
	e->what =
		"a daemon of mpirun did not start: is orted on the path of every node? Their logs say it";
	return skip_to(&t, "was unable to reliably start one or more daemons");
}

/* "There are not enough slots available in the system to satisfy the 8 slots that were requested" */
static bool no_slots(struct str t, struct strategy_end *e)
{
	e->what =
		"mpirun is asked for more processes than there are slots: count times processes_per_node";
	return skip_to(&t, "There are not enough slots available in the system");
}

/* "mpirun was unable to launch the specified application as it could not access or execute an executable:
 * Executable: ./x Node: N while attempting to start process rank 1." */
static bool no_program(struct str t, struct strategy_end *e)
{
	e->what = "its program is not there, or cannot be run";
	return skip_to(&t, "was unable to launch the specified application") &&
	       skip_near(&t, "Node: ") && (take_word(&t, &e->host), true) &&
	       skip_near(&t, "start process rank ") && take_number(&t, &e->rank);
}

/* "mpirun was unable to find the specified executable file, ... first reported for process rank 1; ... Node: N" */
static bool no_program_in_path(struct str t, struct strategy_end *e)
{
	e->what = "its program is not in the path";
	return skip_to(&t, "was unable to find the specified executable file") &&
	       skip_near(&t, "for process\nrank ") && take_number(&t, &e->rank) &&
	       skip_near(&t, "Node: ") && (t = str_trim(t), take_word(&t, &e->host), true);
}

/* Hydra: "Abort(5) on node 2 (rank 2 in comm 0): application called MPI_Abort" */
static bool hydra_aborted(struct str t, struct strategy_end *e)
{
	e->what = "called MPI_Abort";
	return skip_to(&t, "Abort(") && take_number(&t, &e->code) && skip_near(&t, "(rank ") &&
	       take_number(&t, &e->rank) && skip_near(&t, "application called MPI_Abort");
}

/* Hydra: "PID 5869 RUNNING AT N", "EXIT CODE: 9"; of a signal also "EXIT STRING: Killed (signal 9)". */
static bool hydra_ended(struct str t, struct strategy_end *e)
{
	if (!skip_to(&t, "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES") ||
	    !skip_to(&t, " RUNNING AT "))
		return false;
	take_word(&t, &e->host);
	if (!skip_to(&t, "EXIT CODE:") || !take_number(&t, &e->code))
		return false;
	/* Without the string the code may be that of an exit or the number of a signal. */
	e->what = "ended badly";
	if (skip_to(&t, "EXIT STRING:") && skip_to(&t, "(signal ") && take_number(&t, &e->signal)) {
		e->what = NULL;
		e->code = -1;
	}
	return true;
}

bool mpi_cause(struct str tail, struct strategy_end *ret)
{
	static bool (*const readers[])(struct str t, struct strategy_end * e) = {
		killed,	     exited,   aborted,	   left_early,	       lost_daemon,
		no_daemon,   no_slots, no_program, no_program_in_path, hydra_aborted,
		hydra_ended,
	};

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct strategy_end e = {.rank = -1, .code = -1};

		if (!readers[i](tail, &e))
			continue;
		*ret = e;
		return true;
	}
	return false;
}
