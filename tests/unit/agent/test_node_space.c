/* Output that nobody stores, and full disks: the job waits, and lost bytes are counted. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "fake_master.h"
#include "own_mounts.h"

static void output_that_nobody_stores_blocks_the_job_at_the_budget(void **state)
{
	struct fake *f = *state;
	char *spool = arena_printf(f->arena, "%s/out", f->node);
	struct stat st;

	f->config = ",\"spool_bytes\":1000000";
	f->hold_acks = true;
	fake_ready(f);
	fake_start(f, "head -c 5000000 /dev/zero; echo $? > $DIR/written");
	fake_wait_bytes(f, STREAM_OUT, 1000000);
	assert_int_equal(stat(spool, &st), 0);
	assert_true(st.st_size <
		    3500000); /* the budget, and what was under way when it was looked at */
	assert_false(file_exists(fake_below(f, "written")));
	f->hold_acks = false;
	fake_hang_up(f);
	fake_meet(f);
	fake_wait(f, FRAME_COLLECTED);
	assert_int_equal(f->out[STREAM_OUT].n, 5000000);
}

static void what_is_stored_is_freed_on_the_node(void **state)
{
	struct fake *f = *state;
	char *spool = arena_printf(f->arena, "%s/out", f->node);
	struct stat st;

	fake_ready(f);
	fake_start(f, "head -c 100000000 /dev/zero; sleep 600");
	fake_wait_bytes(f, STREAM_OUT, 100000000);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
	assert_int_equal(stat(spool, &st), 0);
	assert_int_equal(st.st_size, 100000000);
	assert_true(st.st_blocks * 512 <= 64 * 1024 * 1024);
}

/* A node directory of 1 MiB; false (and a skipped test) where mounting is not allowed. */
static bool small_disk(struct fake *f)
{
	if (mount("tmpfs", f->node, "tmpfs", 0, "size=1m") == 0)
		return true;
	print_message("# skipped: a tmpfs cannot be mounted here\n");
	return false;
}

static void until_full(struct fake *f)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct statvfs vfs;

	do {
		assert_true(clock_boot_ms() < until);
		poll(NULL, 0, 1);
		assert_int_equal(statvfs(f->node, &vfs), 0);
	} while (vfs.f_bavail > 0);
}

static int unmount_teardown(void **state)
{
	struct fake *f = *state;

	umount2(f->node, MNT_DETACH);
	return fake_teardown(state);
}

static void a_full_disk_blocks_the_job_until_there_is_room(void **state)
{
	struct fake *f = *state;

	if (!small_disk(f))
		skip();
	f->hold_acks = true;
	f->config = ",\"full_ms\":600000";
	fake_ready(f);
	/* What goes to stderr has its place before stdout takes the rest. */
	fake_start(
		f,
		"head -c 3000000 /dev/urandom > $DIR/copy; echo started >&2; while ! [ -e $DIR/go ]; "
		"do sleep 0.01; done; cat $DIR/copy; exit 3");
	fake_wait_bytes(f, STREAM_ERR, 8);
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	until_full(f);
	/* Nothing is lost while it is full; then the disk grows. */
	assert_int_equal(mount("tmpfs", f->node, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 3);
	assert_null(doc_get(e, "gaps"));
	fake_output_is_copy(f, "copy");
}

static void a_disk_that_stays_full_costs_bytes_that_are_counted_not_the_job(void **state)
{
	struct fake *f = *state;

	if (!small_disk(f))
		skip();
	f->config = ",\"full_ms\":200";
	fake_ready(f);
	fake_start(f, "head -c 3000000 /dev/urandom > $DIR/copy; cat $DIR/copy; exit 3");
	const struct doc *e = fake_wait(f, FRAME_EXIT);
	const struct doc *gaps = doc_array(e, "gaps");
	uint64_t missing = 0;

	fake_wait(f, FRAME_COLLECTED);
	assert_int_equal(fake_int(e, "code"), 3);
	assert_non_null(gaps);
	for (size_t i = 0; i < gaps->array.n; i++) {
		assert_string_equal(fake_str(gaps->array.v[i], "stream"), "out");
		missing += (uint64_t)fake_int(gaps->array.v[i], "bytes");
	}
	assert_int_equal(f->out[STREAM_OUT].n + missing, 3000000);
	assert_non_null(strstr(fake_str(e, "reason"), "could not be kept"));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
#define DISK_CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, unmount_teardown)
		CASE(output_that_nobody_stores_blocks_the_job_at_the_budget),
		CASE(what_is_stored_is_freed_on_the_node),
		DISK_CASE(a_full_disk_blocks_the_job_until_there_is_room),
		DISK_CASE(a_disk_that_stays_full_costs_bytes_that_are_counted_not_the_job),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	own_mounts(0);
	return cmocka_run_group_tests_name("agent: node space", tests, NULL, NULL);
}
