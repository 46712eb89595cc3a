#include "../spec/golden.h"

#include "strategy/strategy.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

static bool crew_of(const char *text, struct crew *ret, struct problems *ps)
{
	struct job *j = arena_new_of(arena, struct job);

	*j = good_job(arena, text);
	const struct strategy *s = strategy_for(j, arena, ps);

	assert_string_equal(s->name, "mpi");
	return strategy_crew(s, j, arena, ret, ps);
}

static struct crew good_crew(const char *text)
{
	struct problems ps = {0};
	struct crew c = {0};

	if (!crew_of(text, &c, &ps))
		fail_msg("%s", ps.v[0].text);
	return c;
}

static void refused(const char *text, const char *message)
{
	struct problems ps = {0};
	struct crew c = {.n = -7};

	assert_false(crew_of(text, &c, &ps));
	assert_int_equal(c.n, -7);
	assert_int_equal(ps.n, 1);
	assert_string_equal(ps.v[0].text, message);
}

static const char *hosts(const struct crew *c,
			 const char *(*make)(const struct crew *, struct arena *))
{
	static const char *const addresses[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
	CLEANUP(buf_release) struct buf out = {0};
	struct expand_members members;
	struct expand_here here = {.members = &members};

	strategy_members(c, addresses, arena, &members);
	buf_init(&out, GOLDEN_MAX);
	assert_int_equal(expand_text(make(c, arena), &here, &out, NULL), EXPAND_OK);
	return arena_str(arena, buf_str(&out)).p;
}

static const char top[] =
	"strategy = 'mpi'\ncount = 3\nprocesses_per_node = 2\ncommand = '/opt/bin/mpirun ./x'\n";
static const char roles[] = "strategy = 'mpi'\ncommand = 'run.sh'\n[roles.worker]\ncount = 2\n"
			    "processes_per_node = 4\n[roles.launcher]\n";

static void the_command_runs_once_and_the_others_idle(void **state)
{
	struct crew c = good_crew(top);

	(void)state;
	assert_int_equal(c.n, 3);
	assert_int_equal(c.ncounted, 3);
	assert_string_equal(c.members[0].name, "worker-0");
	assert_string_equal(strategy_command(&c, 0).v[0], "/opt/bin/mpirun");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(strategy_runs(&c, i), i == 0);
		assert_int_equal(strategy_counts(&c, i), i == 0);
		/* mpirun has to be on each node, beside its daemon. */
		assert_string_equal(strategy_program(&c, i), "/opt/bin/mpirun");
	}
	assert_string_equal(strategy_command(&c, 2).v[0], "/bin/sh");
	assert_null(strategy_command(&c, 2).v[strategy_command(&c, 2).n]);
	assert_int_equal(c.roles[0].processes, 1);
	assert_int_equal(strategy_world(&c), 6);
}

static void a_script_is_looked_for_on_the_node_that_runs_it(void **state)
{
	struct crew c = good_crew("strategy = 'mpi'\ncount = 2\ncommand = './go.sh mpirun'\n");

	(void)state;
	assert_string_equal(strategy_program(&c, 0), "./go.sh");
	assert_string_equal(strategy_program(&c, 1), "/bin/sh");
}

static void the_launcher_has_a_role_of_its_own_if_the_file_says_so(void **state)
{
	struct crew c = good_crew(roles);

	(void)state;
	assert_int_equal(c.n, 3);
	assert_string_equal(c.members[0].name, "launcher-0");
	assert_string_equal(c.members[1].name, "worker-0");
	assert_true(strategy_counts(&c, 0));
	assert_false(strategy_counts(&c, 1));
	assert_false(strategy_runs(&c, 2));
	assert_string_equal(strategy_command(&c, 0).v[0], "run.sh");
	/* It waits for all others. */
	const struct strategy_role *l = &c.roles[1];

	assert_int_equal(l->nafter, 1);
	assert_int_equal(l->after[0], 0);
	assert_int_equal(c.roles[0].ready_when, READY_STARTED);
	assert_int_equal(strategy_world(&c), 8);
}

static void the_command_of_a_worker_beside_a_launcher_is_not_run(void **state)
{
	struct crew c = good_crew("strategy = 'mpi'\n[roles.launcher]\ncommand = 'mpiexec ./x'\n"
				  "[roles.gpu]\ncount = 2\ncommand = 'y'\n");

	(void)state;
	assert_false(strategy_runs(&c, 1));
	assert_string_equal(strategy_program(&c, 1), "mpiexec");
}

static void hostfiles_have_the_nodes_with_slots(void **state)
{
	struct crew c = good_crew(top);

	(void)state;
	assert_string_equal(hosts(&c, strategy_hostfile),
			    "10.0.0.1 slots=2\n10.0.0.2 slots=2\n10.0.0.3 slots=2\n");
	assert_string_equal(hosts(&c, strategy_machinefile),
			    "10.0.0.1:2\n10.0.0.2:2\n10.0.0.3:2\n");
	c = good_crew(roles);
	assert_string_equal(hosts(&c, strategy_hostfile), "10.0.0.2 slots=4\n10.0.0.3 slots=4\n");
	assert_string_equal(hosts(&c, strategy_machinefile), "10.0.0.2:4\n10.0.0.3:4\n");
	/* One node with one slot is the machine itself, with all of its cores. */
	c = good_crew("strategy = 'mpi'\ncommand = 'mpirun x'\n");
	assert_string_equal(hosts(&c, strategy_hostfile), "");
	c = good_crew("strategy = 'mpi'\nprocesses_per_node = 3\ncommand = 'mpirun x'\n");
	assert_string_equal(hosts(&c, strategy_hostfile), "10.0.0.1 slots=3\n");
}

static void what_contradicts_a_launcher_is_refused(void **state)
{
	(void)state;
	refused("strategy = 'mpi'\ncommand = 'x'\n[roles.a]\n[roles.b]\n",
		"strategy 'mpi' has one role, or a role named 'launcher' that runs the command and others "
		"for its processes");
	refused("strategy = 'mpi'\ncommand = 'x'\n[roles.launcher]\ncount = 2\n[roles.b]\n",
		"roles.launcher: one node launches, not 2: count is 1");
	refused("strategy = 'mpi'\ncommand = 'x'\ncount = 2\nmax = 3\n",
		"strategy 'mpi' has a fixed number of nodes: leave out min and max");
	refused("strategy = 'mpi'\ncommand = 'x'\ncount = 2\non_lost = 'replace'\n",
		"mpirun does not survive the loss of a node: on_lost is \"fail\" or \"restart\" with "
		"strategy 'mpi'");
	refused("strategy = 'mpi'\ncommand = 'x'\ncount = 3\nmin = 2\n",
		"strategy 'mpi' has a fixed number of nodes: leave out min and max");
}

/* What launchers have said, and the words in the cause. */
static const struct {
	const char *said, *node, *cause;
} ends[] = {
	{"mpirun noticed that process rank 2 with PID 5699 on node 10.129.14.4 exited on signal 9 (Killed).\n",
	 "worker-2", "rank 2 on worker-2: killed by SIGKILL"},
	{"mpirun.openmpi noticed that process rank 13 with PID 0 on node fd00::2 exited on signal 11 (Segmentation fault).\n",
	 NULL, "rank 13 on fd00::2: killed by SIGSEGV"},
	{"the job to be terminated. The first process to do so was:\n\n  Process name: [[48090,1],2]\n  Exit code:    3\n---\n",
	 NULL, "rank 2: exit code 3"},
	{"MPI_ABORT was invoked on rank 7 in communicator MPI_COMM_WORLD\nwith errorcode 5.\n",
	 NULL, "rank 7: called MPI_Abort, exit code 5"},
	{"mpirun has exited due to process rank 2 with PID 6511 on\nnode 10.24.71.4 exiting improperly. There\n",
	 "gpu-1", "rank 2 on gpu-1: ended without MPI_Finalize"},
	{"ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[1,0],0] on node worker-0\n"
	 "  Remote daemon: [[1,0],1] on node 10.0.0.2\n",
	 "worker-1", "worker-1: the daemon of mpirun is gone"},
	{"ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n",
	 NULL,
	 "a daemon of mpirun did not start: is orted on the path of every node? Their logs say it"},
	{"There are not enough slots available in the system to satisfy the 8\nslots that were requested by the application:\n",
	 NULL,
	 "mpirun is asked for more processes than there are slots: count times processes_per_node"},
	{"mpirun was unable to launch the specified application as it could not access\nor execute an executable:\n\n"
	 "Executable: ./x\nNode: 127.100.1.26\n\nwhile attempting to start process rank 1.\n----\n",
	 "worker-1", "rank 1 on worker-1: its program is not there, or cannot be run"},
	{"mpirun was unable to find the specified executable file, and therefore\ndid not launch the job.  This error was "
	 "first reported for process\nrank 1; it may have occurred for other processes as well.\n\nNode:       127.100.1.58\n"
	 "Executable: x\n----\n",
	 "worker-1", "rank 1 on worker-1: its program is not in the path"},
	{"Abort(5) on node 2 (rank 2 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - process 2\n",
	 NULL, "rank 2: called MPI_Abort, exit code 5"},
	{"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 5869 RUNNING AT 10.25.79.4\n"
	 "=   EXIT CODE: 9\n=   CLEANING UP\n",
	 "worker-3", "worker-3: ended badly, exit code 9"},
	{"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 5869 RUNNING AT worker-3\n"
	 "=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
	 "worker-3", "worker-3: killed by SIGKILL"},
};

static void the_words_of_a_launcher_name_rank_node_and_signal(void **state)
{
	bool (*cause)(struct str, struct strategy_end *) = strategy_named("mpi")->cause;

	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++) {
		CLEANUP(buf_release) struct buf out = {0};
		struct strategy_end e;

		if (!cause(str_from(ends[i].said), &e))
			fail_msg("not understood: %s", ends[i].said);
		buf_init(&out, GOLDEN_MAX);
		strategy_describe_end(&e, ends[i].node, &out);
		assert_string_equal(out.p, ends[i].cause);
	}
}

/* Every beginning of each text: no byte beyond it is read, and half a sentence may be none. */
static void half_of_what_a_launcher_says_does_no_harm(void **state)
{
	bool (*cause)(struct str, struct strategy_end *) = strategy_named("mpi")->cause;
	struct strategy_end e;

	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++)
		for (size_t n = 0; n < strlen(ends[i].said); n++) {
			char *part = xstrndup(ends[i].said, n);

			cause((struct str){part, n}, &e);
			free(part);
		}
	assert_false(cause(STR("loss=0.5\nTraceback (most recent call last):\n"), &e));
	assert_false(cause(STR(""), &e));
	assert_false(cause(STR("noticed that process rank x"), &e));
	/* What stands behind a rule is another report. */
	assert_false(cause(STR("noticed that process rank 2 with\n---\nRemote daemon: x on node b "
			       "exited on signal 9"),
			   &e));
}

static const struct {
	const char *command, *name;
	bool leaves;
} commands[] = {
	{" orted --daemonize -mca ess \"env\"", "orted", true},
	{"orted -mca orte_leave_session_attached 1", "orted", false},
	{"PATH=/o/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/o/lib; /o/bin/orted --daemonize",
	 "orted", true},
	{"/o/bin/prted --daemonize", "prted", true},
	{"\"/usr/bin/hydra_pmi_proxy\" --control-port 127.0.0.1:4", "hydra_pmi_proxy", false},
	/* Somebody's own commands, whose codes are for somebody's script. */
	{"command -v orted", NULL, false},
	{"echo; ls -l /usr/bin/orted", NULL, false},
	{"orted.sh", NULL, false},
	{"\"\" ' ;; ", NULL, false},
	{"", NULL, false},
};

static void the_commands_that_start_daemons_are_known(void **state)
{
	bool (*daemon)(struct str, struct strategy_daemon *) = strategy_named("mpi")->daemon;

	(void)state;
	for (size_t i = 0; i < COUNT(commands); i++) {
		struct strategy_daemon d;
		bool is = daemon(str_from(commands[i].command), &d);

		if (is != !!commands[i].name || (is && !str_is(d.name, commands[i].name)) ||
		    d.leaves != commands[i].leaves)
			fail_msg("%s: %d %.*s", commands[i].command, is, STR_ARG(d.name));
	}
}

/* Rule: what a launcher notices by itself is its own business; a daemon that is missing, or that it would wait for for
 * ever, ends the run. */
static void daemons_that_did_not_start_are_told_from_those_that_ended(void **state)
{
	static const struct {
		bool one_host, leaves;
		enum err_kind kind;
		int code, signal;
		enum strategy_daemon_end want;
	} cases[] = {
		{false, false, ERR_NONE, 127, 0, DAEMON_IS_MISSING},
		{false, true, ERR_NONE, 126, 0, DAEMON_IS_MISSING},
		{true, true, ERR_NOT_FOUND, -1, 0, DAEMON_IS_MISSING},
		{true, true, ERR_NONE, 0, 0, DAEMON_IS_LAUNCHERS},
		{true, true, ERR_NONE, 1, 0, DAEMON_HAS_FAILED},
		{true, true, ERR_NONE, -1, 9, DAEMON_HAS_FAILED},
		{true, true, ERR_UNAVAILABLE, -1, 0, DAEMON_HAS_FAILED},
		/* On machines of their own mpirun starts all at once, and sees it. */
		{false, true, ERR_NONE, 1, 0, DAEMON_IS_LAUNCHERS},
		/* One in the foreground has the code of its job. */
		{true, false, ERR_NONE, 1, 0, DAEMON_IS_LAUNCHERS},
		{true, false, ERR_NONE, -1, 9, DAEMON_IS_LAUNCHERS},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct crew crew = {.one_host = cases[i].one_host};
		enum strategy_daemon_end got = strategy_daemon_end(
			&crew, cases[i].leaves, cases[i].kind, cases[i].code, cases[i].signal);

		if (got != cases[i].want)
			fail_msg("case %zu: %d", i, (int)got);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(the_command_runs_once_and_the_others_idle),
		T(a_script_is_looked_for_on_the_node_that_runs_it),
		T(the_launcher_has_a_role_of_its_own_if_the_file_says_so),
		T(the_command_of_a_worker_beside_a_launcher_is_not_run),
		T(hostfiles_have_the_nodes_with_slots),
		T(what_contradicts_a_launcher_is_refused),
		T(the_words_of_a_launcher_name_rank_node_and_signal),
		T(half_of_what_a_launcher_says_does_no_harm),
		T(the_commands_that_start_daemons_are_known),
		T(daemons_that_did_not_start_are_told_from_those_that_ended),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("mpi", tests, NULL, NULL);
}
