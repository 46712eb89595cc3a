/* prune, and --all of kill and cleanup. */
#include "unit.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define HOUR_MS (60LL * 60 * 1000)

static const char *run_text(char *out, size_t size, const char *id, const char *state,
			    int64_t hours, const char *tags)
{
	snprintf(
		out, size,
		"{\"id\":\"%s\",\"state\":\"%s\",\"exit_code\":%s,\"ended_ms\":%lld,\"tags\":[%s]}",
		id, state, strcmp(state, "running") == 0 ? "null" : "0",
		(long long)(clock_wall_ms() - hours * HOUR_MS), tags);
	return out;
}

/* Newest first: one that runs, one of now, one of 2 h with a tag, one of 3 h. */
static void put_runs(void **state)
{
	char a[300], b[300], c[300], d[300];
	CLEANUP(freep)
	char *text = xasprintf("{\"runs\":[%s,%s,%s,%s]}",
			       run_text(a, sizeof(a), "live", "running", 9, ""),
			       run_text(b, sizeof(b), "new", "succeeded", 0, ""),
			       run_text(c, sizeof(c), "tagged", "failed", 2, "\"x\""),
			       run_text(d, sizeof(d), "old", "succeeded", 3, ""));

	home_put(state, "runs.json", text);
	setenv("XDG_CONFIG_HOME", *state, 1);
}

static void assert_prunes(void **state, const char *names, const char *const *argv)
{
	struct ran r = drive(state, argv);

	if (r.code)
		fail_msg("%s", r.err.p);
	assert_string_equal(r.out.n ? r.out.p : "", names);
	ran_release(&r);
}
#define PRUNES(state, names, ...)                                                                  \
	assert_prunes((state), (names), (const char *const[]){"prune", __VA_ARGS__, NULL})

static void old_runs_are_removed_but_never_one_that_runs(void **state)
{
	put_runs(state);
	PRUNES(state, "tagged\nold\n", "--older-than", "1h", "--dry-run");
	assert_int_equal(home_count(state, "requests.log", "cleanup"), 0);
	PRUNES(state, "old\n", "--older-than", "1h", "--keep-tagged");
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs/old/cleanup"), 1);
	assert_int_equal(home_count(state, "requests.log", "/cleanup"), 1);
	assert_int_equal(home_count(state, "requests.log", "/size"), 0);
}

static void a_run_that_cannot_be_removed_does_not_keep_the_others(void **state)
{
	put_runs(state);
	home_put(state, "fault-watched", "x"); /* the first that is asked for */
	struct ran r = DRIVE(state, "prune", "--older-than", "1h");

	assert_int_equal(r.code, 2);
	assert_has(&r.err, "being watched: try again");
	assert_string_equal(r.out.p, "old\n");
	ran_release(&r);
}

static void a_run_that_is_gone_meanwhile_is_nothing_to_say(void **state)
{
	put_runs(state);
	home_put(state, "fault-gone", "x");
	struct ran r = DRIVE(state, "prune", "--older-than", "1h");

	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "old\n");
	assert_string_equal(r.err.p, "regatta: 1 run is removed\n");
	ran_release(&r);
}

static void the_newest_stay_as_far_as_there_is_room(void **state)
{
	put_runs(state);
	PRUNES(state, "old\n", "--max-size", "200", "--dry-run");
	PRUNES(state, "tagged\nold\n", "--max-size", "199", "--dry-run");
	PRUNES(state, "old\n", "--max-size", "199", "--keep-tagged", "--dry-run");
	PRUNES(state, "", "--max-size", "10G");
	struct ran r = DRIVE(state, "prune", "--max-size", "0.1K", "--output", "json");
	assert_int_equal(r.code, 2); /* 102.4 bytes */
	ran_release(&r);
	r = DRIVE(state, "prune", "--max-size", "150", "--dry-run", "--output", "json");
	assert_string_equal(r.out.p,
			    "[{\"id\":\"tagged\",\"bytes\":100},{\"id\":\"old\",\"bytes\":100}]\n");
	ran_release(&r);
}

static void runs_of_a_suite_that_goes_on_stay(void **state)
{
	put_runs(state);
	home_put(state, "suites.json", "{\"suites\":[{\"id\":\"sweep-abcd\"}]}");
	home_put(state, "suite.json",
		 "{\"variants\":[{\"runs\":[{\"run\":null},{\"run\":\"live\"}]},"
		 "{\"runs\":[{\"run\":\"old\"}]}]}");
	PRUNES(state, "tagged\n", "--older-than", "1h", "--dry-run");
	assert_int_equal(home_count(state, "requests.log", "GET /api/v1/suites?state=active"), 1);
	assert_int_equal(home_count(state, "requests.log", "GET /api/v1/suites/sweep-abcd "), 1);
	/* What stays takes its room. */
	PRUNES(state, "new\ntagged\n", "--max-size", "99", "--dry-run");
	home_put(state, "suites.json", "{\"suites\":[]}");
	PRUNES(state, "tagged\nold\n", "--older-than", "1h", "--dry-run");
}

static void the_config_file_says_what_the_options_do_not(void **state)
{
	CLEANUP(freep) char *dir = xasprintf("%s/regatta", (const char *)*state);

	put_runs(state);
	REFUSED(state, 2, "prune: give --older-than or --max-size", "prune");
	assert_int_equal(file_mkdir_p(dir, 0700, NULL), 0);
	home_put(state, "regatta/config.toml",
		 "[retention]\nolder_than = \"1h\"\nkeep_tagged = true\n");
	PRUNES(state, "old\n", "--dry-run");
	PRUNES(state, "", "--older-than", "4h");
	home_put(state, "regatta/config.toml", "[retention]\nolder = \"1h\"\n");
	REFUSED(state, 2, "config.toml:2:1: unknown key 'older' in retention", "prune");
	home_put(state, "regatta/config.toml", "[retention\n");
	REFUSED(state, 2, "config.toml", "prune");
	struct ran r = DRIVE(state, "explain", "retention.max_size");
	assert_has(&r.out, "The newest runs stay");
	ran_release(&r);
}

static void a_wrong_limit_is_said(void **state)
{
	put_runs(state);
	REFUSED(state, 2, "--older-than is 'x': expected a duration", "prune", "--older-than", "x");
	REFUSED(state, 2, "--older-than is '0s'", "prune", "--older-than", "0s");
	REFUSED(state, 2, "--max-size is '-1'", "prune", "--max-size", "-1");
}

static void all_runs_need_a_word_more(void **state)
{
	put_runs(state);
	home_put(
		state, "run.json",
		"{\"id\":\"live\",\"state\":\"succeeded\",\"exit_code\":0,\"nodes\":[],\"metrics\":{}}");
	REFUSED(state, 2, "kill: give a RUN, or --all", "kill");
	REFUSED(state, 2, "kill: both a RUN and --all", "kill", "--all", "live");
	REFUSED(state, 2, "kill --all is about 4 runs: --yes confirms it", "kill", "--all");
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
	struct ran r = DRIVE(state, "kill", "--all", "--yes");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 4);
	assert_int_equal(home_count(state, "requests.log", "GET /api/v1/runs?state=active&limit=0"),
			 2);
	r = DRIVE(state, "cleanup", "--all", "-y");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs/live/cleanup"), 4);
	home_put(state, "runs.json", "{\"runs\":[]}");
	r = DRIVE(state, "cleanup", "--all");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "there are no runs");
	ran_release(&r);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(old_runs_are_removed_but_never_one_that_runs),
		T(a_run_that_cannot_be_removed_does_not_keep_the_others),
		T(a_run_that_is_gone_meanwhile_is_nothing_to_say),
		T(the_newest_stay_as_far_as_there_is_room),
		T(runs_of_a_suite_that_goes_on_stay),
		T(the_config_file_says_what_the_options_do_not),
		T(a_wrong_limit_is_said),
		T(all_runs_need_a_word_more),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("prune", tests, NULL, NULL);
}
