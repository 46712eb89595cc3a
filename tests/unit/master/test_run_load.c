/* Runs loaded from rows that were changed while no master ran. */
#include "rig.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "core/suite.h"
#include "link/layout.h"
#include "master/round.h"
#include "master/suites.h"

static void change_rows(struct rig *r, const char *sql)
{
	char *path = path_join(r->home, "regatta.db");
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	free(path);
}

/* A run whose one node is running; then no master, the rows changed, and the next master. */
static struct live_run *doctor(struct rig *r, const char *sql)
{
	rig_submit(r, RIG_JOB);
	agent_run(rig_agent(r, 0));
	rig_crash(r);
	change_rows(r, sql);
	assert_true(rig_start(r));
	return rig_run(r);
}

static void a_run_goes_on_by_its_plan_whatever_its_job_says(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = doctor(r, "UPDATE job SET json = '{\"engine\":\"moon\"}'");

	assert_non_null(lr);
	assert_null(lr->unreadable);
	assert_string_equal(lr->job->engine, "local");
	assert_int_equal(lr->core->phase, RUN_RUNNING);
	rig_until(r,
		  (agent_play(r->agents.v[0]), rig_stored(r, "SELECT ended_ms > 0 FROM run") == 1));
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_SUCCEEDED);
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void the_commit_of_the_source_is_kept_over_a_restart(void **state)
{
	struct rig *r = *state;
	struct err err = {0};

	assert_null(rig_try_submit(r, "request-0123456789",
				   RIG_JOB ",\"source\":{\"revision\":\"main\"}", &err));
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.msg, "'source.revision' must be a commit"));
	rig_submit(r, RIG_JOB ",\"source\":{\"revision\":\"" COMMIT
			      "\",\"dirty\":true,\"diff\":\"K25ldwo=\"}");
	agent_run(rig_agent(r, 0));
	rig_crash(r);
	assert_true(rig_start(r));
	struct live_run *lr = rig_run(r);
	CLEANUP(freep) char *diff = path_join(lr->dir, LAYOUT_SOURCE_DIFF);
	CLEANUP(buf_release) struct buf text = {0};

	assert_non_null(lr->source_state);
	assert_string_equal(lr->source_state,
			    "{\"revision\":\"" COMMIT "\",\"branch\":null,\"dirty\":true}");
	buf_init(&text, 100);
	assert_int_equal(file_read(diff, &text, NULL), 0);
	assert_true(str_is(buf_str(&text), "+new\n"));
}

static void a_run_without_a_plan_is_planned_once_and_keeps_it(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = doctor(r, "UPDATE job SET plan = NULL");

	assert_non_null(lr);
	assert_null(lr->unreadable);
	rig_until(r, rig_stored(r, "SELECT plan IS NOT NULL FROM job") == 1);
}

#define OLD_JOB "{\"name\":\"t\",\"command\":[\"true\"],\"env\":{\"HF_TOKEN\":\"s3cret-value\"}}"

static void old_file(const char *dir, const char *name)
{
	CLEANUP(freep) char *path = path_join(dir, name);

	assert_int_equal(file_write(path, STR("HF_TOKEN = s3cret-value"), 0600, NULL), 0);
}

static void is_masked(const char *dir, const char *name)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	struct buf text;

	buf_init(&text, 1 << 20);
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_null(strstr(buf_str(&text).p, "s3cret-value"));
	assert_non_null(strstr(buf_str(&text).p, "HF_TOKEN"));
	buf_release(&text);
}

/* Its rows and files hold the secrets, as before they were masked. */
static void the_files_of_an_old_run_are_masked_before_anybody_reads_them(void **state)
{
	static const char *const routes[] = {"job", "plan", "report"};

	for (size_t i = 0; i < COUNT(routes); i++) {
		if (i > 0)
			assert_int_equal(rig_make(state), 0);
		struct rig *r = *state;
		struct live_run *lr = rig_submit(r, OLD_JOB);
		CLEANUP(freep) char *dir = xstrdup(lr->dir);
		CLEANUP(freep) char *report = path_join(dir, "report.html");
		CLEANUP(freep)
		char *route = xasprintf("/api/v1/runs/%s/%s", lr->row.id, routes[i]);

		agent_run(rig_agent(r, 0));
		rig_until(r, (agent_play(r->agents.v[0]),
			      rig_stored(r, "SELECT ended_ms > 0 FROM run") == 1 &&
				      file_exists(report)));
		rig_crash(r);
		change_rows(r, "UPDATE job SET plan = NULL, json = '" OLD_JOB "'");
		old_file(dir, "job.toml");
		old_file(dir, "plan.json");
		old_file(dir, "report.html");
		assert_true(rig_start(r));
		assert_int_equal(rig_http(r, "GET", route, ""), 200);
		is_masked(dir, "job.toml");
		is_masked(dir, "plan.json");
		if (file_exists(report))
			is_masked(dir, "report.html");
		if (i + 1 < COUNT(routes))
			rig_drop(state);
	}
}

static void a_run_that_cannot_be_read_waits_for_its_kill(void **state)
{
	static const char *const damage[] = {
		"UPDATE job SET plan = 'no JSON'",
		"UPDATE job SET plan = '{\"version\":99}'",
		"UPDATE job SET plan = json_set(plan, '$.nodes[0].future', 1)",
		"UPDATE job SET facts = '['",
		"UPDATE job SET plan = NULL, json = '{\"engine\":\"moon\"}'",
		"UPDATE resource SET name = 'other'",
	};

	for (size_t i = 0; i < COUNT(damage); i++) {
		if (i > 0)
			assert_int_equal(rig_make(state), 0);
		struct rig *r = *state;
		struct live_run *lr = doctor(r, damage[i]);

		if (!lr || !lr->unreadable)
			fail_msg("taken as sound: %s", damage[i]);
		rig_idle(r);
		assert_int_equal(rig_count(r, "destroy"), 0);
		assert_int_equal(lr->core->phase, RUN_RUNNING);
		assert_int_equal(lr->core->nodes[0].state, NODE_LOST);

		rig_cancel(r, false);
		rig_until(r, rig_stored(r, "SELECT ended_ms > 0 FROM run") == 1);
		assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_CANCELLED);
		assert_true(rig_count(r, "destroy") > 0);
		if (i + 1 < COUNT(damage))
			rig_drop(state);
	}
}

static void the_deadline_of_a_run_that_cannot_be_read_does_not_end_it(void **state)
{
	struct rig *r = *state;
	struct live_run *lr =
		doctor(r, "UPDATE job SET plan = 'no JSON'; UPDATE run SET deadline_ms = 1");
	struct err err = {0};

	assert_non_null(lr->unreadable);
	/* The clock goes on for the others. */
	struct live_run *other = rig_try_submit(r, "request-of-another", RIG_JOB, &err);

	rig_until(r, other->core->phase == RUN_GATHERING);
	rig_idle(r);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run WHERE verdict > 0"), 0);
	assert_int_equal(lr->core->phase, RUN_RUNNING);
	assert_int_equal(rig_count(r, "destroy"), 0);
}

/* Also one whose rows contradict each other, so that it is not taken up. */
static void a_sweep_of_leftovers_spares_every_run_that_has_not_ended(void **state)
{
	static const char *const rows[] = {"SELECT 1", "UPDATE job SET plan = 'x'",
					   "DELETE FROM node"};
	struct rig *r = *state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct live_run *lr = rig_submit(r, RIG_JOB);

		snprintf(r->active, sizeof(r->active), "%s", lr->row.id);
		agent_run(rig_agent(r, 0));
		rig_crash(r);
		change_rows(r, rows[i]);
		assert_true(rig_start(r));
		assert_true(r->sweep_spares);
		rig_drop(state);
		assert_int_equal(rig_make(state), 0);
		r = *state;
	}
}

/* Rule: the files of an ended run are written, whatever becomes of the master that ended it. */
static void records_that_a_crash_prevented_are_written_by_the_next_master(void **state)
{
	static const char *const names[] = {"summary.json", "events.jsonl"};
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	CLEANUP(freep) char *dir = xstrdup(rig_submit(r, RIG_JOB)->dir);
	char *paths[COUNT(names)];

	for (size_t i = 0; i < COUNT(names); i++)
		paths[i] = path_join(dir, names[i]);
	agent_run(a);
	agent_finish(a);
	rig_until(r, file_exists(paths[0]));
	rig_crash(r);
	for (size_t i = 0; i < COUNT(names); i++)
		assert_int_equal(unlink(paths[i]), 0);
	assert_true(rig_start(r));
	rig_until(r, file_exists(paths[0]));
	assert_true(file_exists(paths[1]));
	for (size_t i = 0; i < COUNT(names); i++)
		free(paths[i]);
}

/* Each event once, in order: as many as the store has. */
static int64_t check_events(const char *path)
{
	CLEANUP(buf_release) struct buf text = {0};
	int64_t n = 0;

	buf_init(&text, 64u << 20);
	if (file_read(path, &text, NULL) < 0)
		return 0;
	for (struct str rest = buf_str(&text); rest.n;) {
		struct str line = str_cut(&rest, '\n');
		char seq[32];

		snprintf(seq, sizeof(seq), "\"seq\":%" PRId64 ",", ++n);
		assert_non_null(memmem(line.p, line.n, seq, strlen(seq)));
	}
	return n;
}

#define MANY_EVENTS 6500

/* Rule: the end of a run with very many events is no pause: most are in its file before, and after a restart each is
 * there once. */
static void many_events_are_written_while_the_run_goes_on(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct rig_agent *a = rig_agent(r, 0);
	CLEANUP(freep) char *path = path_join(lr->dir, "events.jsonl");
	CLEANUP(freep) char *part = path_join(lr->dir, ".events.jsonl.part");
	CLEANUP(freep) char *summary = path_join(lr->dir, "summary.json");

	agent_run(a);
	assert_false(file_exists(part));
	for (int i = 0; i < MANY_EVENTS; i++)
		run_note(lr, "note", -1, "%d", i);
	rig_turn(r); /* a part of them in each turn */
	assert_in_range(check_events(part), 1000, MANY_EVENTS - 1000);
	run_note(lr, "note", -1, "and on");
	rig_turn(r);
	assert_true(check_events(part) > 5000);
	assert_false(file_exists(path));
	rig_crash(r);
	assert_true(rig_start(r));
	rig_until(r, (agent_play(a), file_exists(summary)));
	assert_int_equal(check_events(path), rig_stored(r, "SELECT count(*) FROM event"));
	assert_false(file_exists(part));
}

/* Rule: a run that was made for an entry of a suite, and has ended, is its run. */
static void a_run_of_a_suite_that_ended_before_the_next_master_looked_is_not_made_again(
	void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		rig_http(
			r, "POST", "/api/v1/suites",
			"{\"request_id\":\"request-0123456789\",\"suite\":{\"name\":\"s\",\"suite\":{\"job\":"
			"\"x.toml\"},\"matrix\":{\"env.X\":[\"1\",\"2\"]}},\"base_dir\":\"/\",\"of\":[0,0],"
			"\"submissions\":[{\"job\":" RIG_JOB
			",\"base_dir\":\"/\",\"client_env\":{}}]}"),
		201);
	rig_until(r, rig_run(r));
	struct rig_agent *a = rig_agent(r, 0);

	agent_run(a);
	agent_finish(a);
	rig_until(r, suites_at(r->m.suites, 0)->core->entries[1].state == ENTRY_RUNNING);
	rig_crash(r);
	rig_damage(r, "UPDATE suite_entry SET state = 1, run = NULL WHERE place = 0");
	assert_true(rig_start(r));
	const struct core_suite *s = suites_at(r->m.suites, 0)->core;

	assert_int_equal(s->entries[0].state, ENTRY_STARTING);
	rig_until(r, s->entries[0].state == ENTRY_SUCCEEDED);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_goes_on_by_its_plan_whatever_its_job_says,
						rig_make, rig_drop),
		cmocka_unit_test_setup_teardown(the_commit_of_the_source_is_kept_over_a_restart,
						rig_make, rig_drop),
		cmocka_unit_test_setup_teardown(a_run_without_a_plan_is_planned_once_and_keeps_it,
						rig_make, rig_drop),
		cmocka_unit_test_setup_teardown(
			the_files_of_an_old_run_are_masked_before_anybody_reads_them, rig_make,
			rig_drop),
		cmocka_unit_test_setup_teardown(
			a_sweep_of_leftovers_spares_every_run_that_has_not_ended, rig_make,
			rig_drop),
		cmocka_unit_test_setup_teardown(a_run_that_cannot_be_read_waits_for_its_kill,
						rig_make, rig_drop),
		cmocka_unit_test_setup_teardown(
			the_deadline_of_a_run_that_cannot_be_read_does_not_end_it, rig_make,
			rig_drop),
		cmocka_unit_test_setup_teardown(
			records_that_a_crash_prevented_are_written_by_the_next_master, rig_make,
			rig_drop),
		cmocka_unit_test_setup_teardown(many_events_are_written_while_the_run_goes_on,
						rig_make, rig_drop),
		cmocka_unit_test_setup_teardown(
			a_run_of_a_suite_that_ended_before_the_next_master_looked_is_not_made_again,
			rig_make, rig_drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
