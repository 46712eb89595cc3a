/* Jobs that are refused at submission, so that they do not fail later. */
#include "rig.h"

#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "link/layout.h"
#include "master/upkeep/space.h"
#include "master/upkeep/trash.h"
#include "sys/loop.h"

#define WORD 65536
#define BODY_FITS (FRAME_MAX_PAYLOAD - 4096) /* into the body of a request, but not into a START */

/* A job whose command has so many bytes, in words that Linux takes. */
static char *job_of(size_t bytes)
{
	struct buf b;

	buf_init(&b, 2 * FRAME_MAX_PAYLOAD);
	buf_addz(&b, "{\"name\":\"t\",\"command\":[\"true\"");
	for (size_t done = 0; done < bytes; done += WORD) {
		size_t n = bytes - done < WORD ? bytes - done : WORD;

		buf_addz(&b, ",\"");
		memset(buf_reserve(&b, n), 'x', n);
		buf_commit(&b, n);
		buf_addz(&b, "\"");
	}
	buf_addz(&b, "]}");
	return buf_take(&b);
}

static void a_start_that_does_not_fit_is_refused_and_never_sent(void **state)
{
	struct rig *r = *state;
	struct err err = {0};
	char *job = job_of(BODY_FITS);

	assert_null(rig_try_submit(r, "request-0123456789", job, &err));
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.msg, "its command and environment"));
	rig_idle(r);
	assert_null(rig_run(r));
	assert_int_equal(r->calls.n, 0);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 0);
	free(job);
}

static void a_source_that_was_not_uploaded_is_refused(void **state)
{
	struct rig *r = *state;
	struct err err = {0};

	assert_null(rig_try_submit(r, "request-0123456789",
				   "{\"name\":\"t\",\"command\":[\"true\"],\"source\":\".\"}",
				   &err));
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	rig_idle(r);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 0);
}

static void machines_that_cannot_reach_the_master_are_not_made(void **state)
{
	struct rig *r = *state;
	struct err err = {0};

	r->m.services.url = NULL;
	assert_null(rig_try_submit(r, "request-0123456789",
				   "{\"name\":\"t\",\"command\":[\"true\"],\"engine\":\"aws.ec2\","
				   "\"master\":\"here\"}",
				   &err));
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.msg, "cannot reach this master"));
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 0);
}

static void the_longest_start_that_is_accepted_arrives_whole(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	size_t low = FRAME_MAX_PAYLOAD / 2, high = BODY_FITS;
	int no = 0;

	/* The limit is found, not known; each attempt is a run of its own, and none is committed. */
	while (high - low > 1024) {
		size_t middle = (low + high) / 2;
		struct err err = {0};
		char request[32], *job = job_of(middle);

		snprintf(request, sizeof(request), "request-%010d", no++);
		if (rig_try_submit(r, request, job, &err))
			low = middle;
		else
			high = middle;
		free(job);
		rig_crash(r);
		assert_true(rig_start(r));
	}
	char *job = job_of(low);

	rig_submit(r, job);
	agent_run(a); /* the rig reads each START */
	assert_true(a->start_bytes > low && a->start_bytes <= FRAME_MAX_PAYLOAD);
	free(job);
}

static void a_full_disk_refuses_new_runs_and_ends_those_that_there_are(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	struct err err = {0};

	rig_submit(r, RIG_JOB);
	agent_run(a);
	r->disk_full = true;
	assert_null(rig_try_submit(r, "request-9999999999", RIG_JOB, &err));
	assert_int_equal(err.kind, ERR_CAPACITY);
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_SUCCEEDED);
	r->disk_full = false;
	assert_non_null(rig_try_submit(r, "request-9999999999", RIG_JOB, &err));
}

static void the_disk_reserve_is_there_before_the_first_run(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *reserve = path_join(r->home, "disk_reserve");

	rig_submit(r, RIG_JOB);
	bool there = file_exists(reserve);

	store_disk_reserve_make(r->m.store);
	if (!file_exists(reserve))
		skip(); /* this file system cannot, or is full */
	assert_true(there);
}

static void a_create_that_is_refused_is_not_a_create(void **state)
{
	struct rig *r = *state;

	r->creating = OUTCOME_REFUSED;
	rig_submit(r, RIG_JOB);
	rig_until(r, rig_events(r, "refused") == 1);
	assert_int_equal(rig_run(r)->core->resources[0].state, RES_INTENT);
	rig_cancel(r, false);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_count(r, "destroy"), 0);
}

static bool starts_with(struct rig *r, rlim_t files)
{
	rig_crash(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files}), 0);
	return rig_start(r);
}

/* Rule: a master that cannot take the agents of its runs does not take up the runs.  The last test,
 * because a limit that was lowered stays so. */
static void a_master_with_too_few_descriptors_does_not_start(void **state)
{
	struct rig *r = *state;

	rig_submit(r, "{\"name\":\"t\",\"command\":[\"true\"],\"count\":16}");
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	/* Logs have at most a quarter of them. */
	assert_true(starts_with(r, 64 + 16 + 26));
	assert_int_equal(rig_run(r)->core->phase, RUN_GATHERING);
	assert_false(starts_with(r, 64 + 16 + 26 - 1));
}

/* Otherwise the trash waits until no run is active. */
static void on_a_full_disk_the_trash_is_emptied_while_a_run_is_active(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *trash = path_join(r->home, LAYOUT_TRASH);
	CLEANUP(freep) char *file = path_join(trash, "left");

	assert_int_equal(file_mkdir_p(trash, 0700, NULL), 0);
	assert_int_equal(file_write(file, STR("x"), 0600, NULL), 0);
	rig_submit(r, RIG_JOB);
	space_check(r->m.space);
	trash_sweep(r->m.trash, false);
	rig_idle(r);
	assert_true(file_exists(file));
	r->disk_full = true;
	space_check(r->m.space);
	trash_sweep(r->m.trash, false);
	rig_idle(r);
	assert_false(file_exists(file));
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

static void a_master_that_cancels_and_leaves_looks_at_once_whether_all_runs_have_ended(void **state)
{
	struct rig *r = *state;
	int looks = 0;

	r->m.idle = loop_timer_free(r->m.idle);
	r->m.idle = loop_timer_new(r->m.loop, count, &looks);
	rig_submit(r, RIG_JOB);
	assert_int_equal(rig_http(r, "POST", "/api/v1/shutdown", "{\"cancel\":true}"), 200);
	assert_true(r->m.stopping);
	rig_idle(r);
	assert_int_equal(looks, 1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(a_start_that_does_not_fit_is_refused_and_never_sent),
		CASE(a_source_that_was_not_uploaded_is_refused),
		CASE(machines_that_cannot_reach_the_master_are_not_made),
		CASE(the_longest_start_that_is_accepted_arrives_whole),
		CASE(a_full_disk_refuses_new_runs_and_ends_those_that_there_are),
		CASE(the_disk_reserve_is_there_before_the_first_run),
		CASE(a_create_that_is_refused_is_not_a_create),
		CASE(a_master_with_too_few_descriptors_does_not_start),
		CASE(on_a_full_disk_the_trash_is_emptied_while_a_run_is_active),
		CASE(a_master_that_cancels_and_leaves_looks_at_once_whether_all_runs_have_ended),
	};

	return cmocka_run_group_tests_name("master: submit", tests, NULL, NULL);
}
