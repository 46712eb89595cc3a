/* Secret values: in one file that only the user reads, and in the START of a node. */
#include "rig.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "link/layout.h"
#include "master/messages.h"
#include "master/runs.h"
#include "master/secrets.h"

#define VALUE "s3cret-value"
#define JOB                                                                                        \
	"{\"name\":\"t\",\"command\":[\"true\"],\"env\":{\"HF_TOKEN\":\"" VALUE                    \
	"\",\"PLAIN\":\"seen\"}}"

static bool file_has(const char *dir, const char *name, const char *text)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(file_read(path, &b, NULL), 0);
	buf_addc(&b, '\0');
	bool has = strstr(b.p, text) != NULL;

	buf_release(&b);
	return has;
}

static bool start_has(struct rig *r, const char *text)
{
	struct buf b;

	buf_init(&b, FRAME_MAX_PAYLOAD);
	node_start_put(rig_run(r), 0, 1, true, &b);
	buf_addc(&b, '\0');
	bool has = strstr(b.p, text) != NULL;

	buf_release(&b);
	return has;
}

static void a_secret_is_in_no_row_and_in_one_file(void **state)
{
	struct rig *r = *state;
	mode_t before = umask(0); /* what the file allows is not left to the user's umask */
	const char *dir = rig_submit(r, JOB)->dir;
	CLEANUP(freep) char *path = path_join(dir, LAYOUT_SECRETS);
	struct stat st;

	umask(before);
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM job WHERE json LIKE '%PLAIN%' AND "
				       "plan LIKE '%PLAIN%'"),
			 1);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM job WHERE json || plan || client_env "
				       "LIKE '%" VALUE "%'"),
			 0);
	assert_false(file_has(dir, "job.toml", VALUE) || file_has(dir, "plan.json", VALUE));
	assert_true(file_has(dir, LAYOUT_SECRETS, VALUE));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Such as those of package managers, which a job on this machine inherits. */
static void a_secret_of_the_clients_environment_is_no_less_secret(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_http(r, "POST", "/api/v1/runs",
				  "{\"request_id\":\"request-0123456789\",\"job\":" RIG_JOB
				  ",\"base_dir\":\"/\",\"client_env\":{\"PATH\":\"/bin\","
				  "\"CONDA_TOKEN\":\"" VALUE "\"}}"),
			 201);
	assert_int_equal(
		rig_stored(r, "SELECT count(*) FROM job WHERE client_env LIKE '%CONDA_TOKEN%'"), 1);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM job WHERE json || plan || client_env "
				       "LIKE '%" VALUE "%'"),
			 0);
	assert_true(file_has(rig_run(r)->dir, LAYOUT_SECRETS, VALUE));
	assert_true(start_has(r, VALUE));
}

/* The row says that there are secrets: without them the next master could not start the job. */
static void secrets_are_on_disk_before_their_run_is(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *path = path_join(rig_submit(r, JOB)->dir, LAYOUT_SECRETS);

	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 0);
	assert_true(rig_is_synced(path));
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	assert_true(start_has(r, VALUE));
	rig_crash(r);
	assert_true(rig_start(r));
	assert_true(start_has(r, VALUE));
}

static void credentials_that_hold_no_more_are_replaced(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, JOB);
	CLEANUP(freep) char *path = xasprintf("/api/v1/runs/%s/cancel", lr->row.id);

	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	lr->busy++;
	assert_int_equal(rig_http(r, "POST", path, "{\"credentials\":{\"access_key\":\"new\"}}"),
			 200);
	assert_string_equal(lr->credentials, "{\"access_key\":\"new\"}");
	if (!lr->ended)
		assert_true(file_has(lr->dir, LAYOUT_SECRETS, "\"new\""));
	lr->busy--;
	live_run_done(lr);
}

static void secrets_end_with_their_run(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *path = path_join(rig_submit(r, JOB)->dir, LAYOUT_SECRETS);
	struct rig_agent *a = rig_agent(r, 0);

	agent_run(a);
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_false(file_exists(path));
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(a_secret_is_in_no_row_and_in_one_file),
		CASE(a_secret_of_the_clients_environment_is_no_less_secret),
		CASE(secrets_are_on_disk_before_their_run_is),
		CASE(credentials_that_hold_no_more_are_replaced),
		CASE(secrets_end_with_their_run),
	};

	return cmocka_run_group_tests_name("master: secrets", tests, NULL, NULL);
}
