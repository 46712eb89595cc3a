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

static struct job *job_of(const char *text)
{
	struct job *j = arena_new_of(arena, struct job);

	*j = good_job(arena, text);
	return j;
}

static struct crew crew_of(const char *text, const char *want_strategy)
{
	struct problems ps = {0};
	const struct job *j = job_of(text);
	struct crew c = {0};

	const struct strategy *s = strategy_for(j, arena, &ps);
	if (!s || !strategy_crew(s, j, arena, &c, &ps))
		fail_msg("%s", ps.v[0].text);
	assert_int_equal(ps.n, 0);
	assert_string_equal(s->name, want_strategy);
	return c;
}

/* Exactly one problem, on this line. */
static void refused(const char *text, int line, const char *message)
{
	struct problems ps = {0};
	const struct job *j = job_of(text);
	struct crew c = {.n = -7};

	const struct strategy *s = strategy_for(j, arena, &ps);
	if (s)
		assert_false(strategy_crew(s, j, arena, &c, &ps));
	assert_int_equal(c.n, -7);
	if (ps.n != 1 || strcmp(ps.v[0].text, message) != 0)
		fail_msg("%zu problems, first: %s\nwanted: %s", ps.n, ps.v[0].text, message);
	assert_int_equal(ps.v[0].pos.line, line);
}

/* Which strategy. */

static void without_a_word_roles_decide_the_strategy(void **state)
{
	(void)state;
	crew_of("command = 'x'\n", "single");
	crew_of("command = 'x'\n[roles.a]\n", "roles");
	crew_of("command = 'x'\nstrategy = ''\n", "single");
}

static const char *all_names(void)
{
	const char *all = strategy_names()[0];

	for (size_t i = 1; strategy_names()[i]; i++)
		all = arena_printf(arena, "%s, %s", all, strategy_names()[i]);
	return all;
}

static void an_unknown_strategy_is_a_problem_with_a_suggestion(void **state)
{
	(void)state;
	refused("strategy = 'singel'\ncommand = 'x'\n", 1,
		"there is no strategy 'singel': did you mean 'single'?");
	refused("command = 'x'\nstrategy = 'astrology'\n", 2,
		arena_printf(arena, "there is no strategy 'astrology': strategies here are %s",
			     all_names()));
}

static void the_names_are_listed_to_a_null(void **state)
{
	const char *const *names = strategy_names();
	(void)state;

	assert_string_equal(names[0], "single");
	assert_string_equal(names[1], "roles");
	assert_string_equal(names[2], "pserver");
	for (size_t i = 0; names[i]; i++)
		assert_string_equal(strategy_named(names[i])->name, names[i]);
}

/* single */

static void single_makes_workers_that_all_count(void **state)
{
	struct crew c = crew_of("command = 'echo a'\ncount = 3\n", "single");
	(void)state;

	assert_int_equal(c.nroles, 1);
	assert_int_equal(c.n, 3);
	assert_int_equal(c.ncounted, 3);
	assert_string_equal(c.roles[0].name, "worker");
	assert_string_equal(c.roles[0].command.v[1], "a");
	assert_true(c.roles[0].counted);
	assert_int_equal(c.roles[0].nafter, 0);
	assert_int_equal(c.roles[0].ready_when, READY_STARTED);
	assert_non_null(c.roles[0].spec);
	assert_string_equal(c.members[2].name, "worker-2");
	assert_int_equal(c.members[2].rank, 2);
	assert_int_equal(c.members[2].index, 2);
}

static void single_takes_no_roles(void **state)
{
	(void)state;
	refused("strategy = 'single'\ncommand = 'x'\n[roles.a]\n", 1,
		"strategy 'single' takes no roles: use strategy = \"roles\", or write command and count at "
		"the top of the file");
}

/* roles */

static void counted_roles_get_the_first_ranks(void **state)
{
	struct crew c = crew_of("command = 'x'\n"
				"[roles.store]\nservice = true\ncount = 2\n"
				"[roles.a]\ncount = 2\n"
				"[roles.etcd]\nservice = true\n"
				"[roles.b]\n",
				"roles");
	static const char *const names[] = {"a-0", "a-1", "b-0", "store-0", "store-1", "etcd-0"};
	(void)state;

	assert_int_equal(c.n, COUNT(names));
	assert_int_equal(c.ncounted, 3);
	for (int i = 0; i < c.n; i++) {
		const struct member *m = &c.members[i];
		assert_string_equal(m->name, names[i]);
		assert_int_equal(m->rank, i);
		assert_int_equal(c.roles[m->role].counted, i < c.ncounted);
	}
	assert_int_equal(c.members[4].index, 1);
	assert_string_equal(c.roles[c.members[4].role].name, "store");
}

static void gates_become_indices_and_ready_is_resolved(void **state)
{
	struct crew c = crew_of("command = 'x'\n"
				"[roles.last]\nafter = ['done', 'port', 'plain']\n"
				"[roles.plain]\n"
				"[roles.port]\nport = 80\n"
				"[roles.quick]\nport = 80\nready_when = 'started'\n"
				"[roles.done]\nready_when = 'finished'\n",
				"roles");
	(void)state;

	assert_int_equal(c.roles[0].nafter, 3);
	assert_int_equal(c.roles[0].after[0], 4);
	assert_int_equal(c.roles[0].after[1], 2);
	assert_int_equal(c.roles[0].after[2], 1);
	assert_int_equal(c.roles[1].ready_when, READY_STARTED);
	assert_int_equal(c.roles[2].ready_when, READY_PORT);
	assert_int_equal(c.roles[2].port, 80);
	assert_int_equal(c.roles[3].ready_when, READY_STARTED);
	assert_int_equal(c.roles[4].ready_when, READY_FINISHED);
}

static void roles_needs_roles_and_one_that_counts(void **state)
{
	(void)state;
	refused("command = 'x'\nstrategy = 'roles'\n", 2,
		"strategy 'roles' needs at least one table [roles.<name>]");
	refused("command = 'x'\n[roles.a]\nservice = true\n[roles.b]\nservice = true\n", 2,
		"every role is a service: at least one must count for the finish (service = false)");
}

static void a_service_is_not_waited_for_to_finish(void **state)
{
	(void)state;
	refused("command = 'x'\n[roles.w]\n[roles.s]\nservice = true\nready_when = 'finished'\n", 3,
		"roles.s: a service does not finish by itself: ready_when is \"started\" or \"port\", or "
		"service is false");
}

/* pserver */

static void pservers_serve_and_trainers_wait_for_their_port(void **state)
{
	struct crew c = crew_of("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\ncount = 2\n"
				"[roles.trainer]\ncount = 3\n",
				"pserver");
	(void)state;

	assert_int_equal(c.n, 5);
	assert_int_equal(c.ncounted, 3);
	assert_string_equal(c.members[0].name, "trainer-0");
	assert_string_equal(c.members[3].name, "pserver-0");
	assert_false(c.roles[0].counted);
	assert_int_equal(c.roles[0].port, 5436);
	assert_int_equal(c.roles[0].ready_when, READY_PORT);
	assert_true(c.roles[1].counted);
	assert_int_equal(c.roles[1].nafter, 1);
	assert_int_equal(c.roles[1].after[0], 0);
}

static void what_the_file_says_of_pservers_holds(void **state)
{
	struct crew c =
		crew_of("strategy = 'pserver'\ncommand = 'x'\n[roles.trainer]\nafter = 'pserver'\n"
			"[roles.pserver]\nport = 7164\nservice = true\nready_when = 'started'\n",
			"pserver");
	(void)state;

	assert_int_equal(c.roles[1].port, 7164);
	assert_int_equal(c.roles[1].ready_when, READY_STARTED);
	assert_int_equal(c.roles[0].nafter, 1);
	assert_int_equal(c.roles[0].after[0], 1);
	assert_int_equal(c.roles[0].port, 0);
}

static void pserver_needs_its_two_roles_and_no_other(void **state)
{
	(void)state;
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.trainer]\n", 1,
		"strategy 'pserver' needs a table [roles.pserver]");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\n", 1,
		"strategy 'pserver' needs a table [roles.trainer]");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\n[roles.trianer]\n", 4,
		"strategy 'pserver' knows no role 'trianer': did you mean 'trainer'?");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\n[roles.trainer]\n[roles.evaluator]\n",
		5,
		"strategy 'pserver' knows no role 'evaluator': its roles are pserver and trainer; others are "
		"possible with strategy = \"roles\"");
}

static void what_contradicts_the_strategy_is_refused(void **state)
{
	(void)state;
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\nservice = false\n[roles.trainer]\n",
		3, "roles.pserver is a service: leave out service, or use strategy = \"roles\"");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\nafter = 'trainer'\n[roles.trainer]\n",
		3, "roles.pserver starts first: leave out after, or use strategy = \"roles\"");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\nready_when = 'finished'\n[roles.trainer]\n",
		3,
		"roles.pserver does not finish by itself: ready_when is \"port\" or \"started\"");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\ncount = 5001\n[roles.trainer]\n",
		3, "roles.pserver.count is 5001: at most 5000");
	refused("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\n[roles.trainer]\nservice = true\n",
		4,
		"roles.trainer decides when the run is finished and is no service: leave out service, or use "
		"strategy = \"roles\"");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_a_word_roles_decide_the_strategy),
		T(an_unknown_strategy_is_a_problem_with_a_suggestion),
		T(the_names_are_listed_to_a_null),
		T(single_makes_workers_that_all_count),
		T(single_takes_no_roles),
		T(counted_roles_get_the_first_ranks),
		T(gates_become_indices_and_ready_is_resolved),
		T(roles_needs_roles_and_one_that_counts),
		T(a_service_is_not_waited_for_to_finish),
		T(pservers_serve_and_trainers_wait_for_their_port),
		T(what_the_file_says_of_pservers_holds),
		T(pserver_needs_its_two_roles_and_no_other),
		T(what_contradicts_the_strategy_is_refused),
	};

	return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
