/* regatta paddle stays with its run until a master elsewhere has it, as the old tool's client did. */
#include "unit.h"

#include <signal.h>

#include "cli/drive.h"
#include "cli/fake_master.h"

#define OBJECT(state, verdict, code, rest)                                                         \
	"{\"id\":\"job-abcd\",\"state\":\"" state "\",\"verdict\":" verdict ",\"exit_code\":" code \
	",\"elapsed_ms\":12,\"nodes\":[]" rest "}"
#define PROVISIONING OBJECT("provisioning", "null", "null", "")
#define HANDED OBJECT("running", "null", "null", ",\"master_url\":\"https://203.0.113.7:5436\"")
#define FAILED OBJECT("failed", "\"failed\"", "5", ",\"cause\":\"no capacity\"")
#define LINE                                                                                       \
	"master server finished init process, visit https://203.0.113.7:5436/status to check master log\n"

static void create_ends_with_the_line_of_the_old_tool(void **state)
{
	home_put(state, "watch.jsonl", PROVISIONING "\n" HANDED "\n");
	struct ran r = DRIVE(state, "paddle", "--action", "create", "--docker_image", "i");

	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, LINE);
	assert_has(&r.err, "job-abcd goes on without this terminal");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
	r = DRIVE(state, "paddle", "--docker_image", "i", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, HANDED "\n");
	ran_release(&r);
}

static void a_run_that_ends_before_is_the_end_of_create(void **state)
{
	home_put(state, "watch.jsonl", PROVISIONING "\n" FAILED "\n");
	struct ran r = DRIVE(state, "paddle", "--docker_image", "i");

	assert_int_equal(r.code, 5);
	assert_has(&r.out, "no capacity");
	assert_has_not(&r.out, "master server finished");
	ran_release(&r);
	home_put(state, "watch.jsonl", "nonsense\n");
	r = DRIVE(state, "paddle", "--docker_image", "i");
	assert_int_equal(r.code, 8);
	assert_has(&r.err, "not JSON");
	ran_release(&r);
}

static void a_lost_terminal_leaves_it_alone(void **state)
{
	home_put(state, "watch.jsonl", PROVISIONING "\n");
	home_put(state, "cancelled.json", FAILED "\n");
	struct driven d = DRIVE_BEGIN(state, "paddle", "--docker_image", "i");

	home_await(state, "requests.log", "/watch", 1);
	kill(d.pid, SIGHUP);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "job-abcd goes on without this terminal");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
}

static void status_and_cleanup_need_an_address(void **state)
{
	REFUSED(state, 2, "--action status needs --master_server_public_ip", "paddle", "--action",
		"status");
	REFUSED(state, 2, "--action cleanup needs --master_server_public_ip", "paddle", "--action",
		"cleanup");
}

static void what_is_no_address_or_port_is_said(void **state)
{
	REFUSED(state, 2, "--master_server_port 'x': expected a port from 1 to 65535", "paddle",
		"--action", "status", "--master_server_public_ip", "192.0.2.1",
		"--master_server_port", "x");
	REFUSED(state, 2, "--master_server_port '65536': expected a port from 1 to 65535", "paddle",
		"--action", "cleanup", "--master_server_public_ip", "192.0.2.1",
		"--master_server_port", "65536");
	REFUSED(state, 2, "--master_server_public_ip 'http://192.0.2.1': expected an address",
		"paddle", "--action", "status", "--master_server_public_ip", "http://192.0.2.1");
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(create_ends_with_the_line_of_the_old_tool),
		T(a_run_that_ends_before_is_the_end_of_create),
		T(a_lost_terminal_leaves_it_alone),
		T(status_and_cleanup_need_an_address),
		T(what_is_no_address_or_port_is_said),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("paddle", tests, NULL, NULL);
}
