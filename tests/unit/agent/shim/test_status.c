/* The record of an attempt: claimed once, readable after every crash. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/shim/status.h"
#include "base/buf.h"
#include "base/err.h"

static int syncs;	      /* of a file that is linked as "status" */
static const char *status_at; /* where that is */
static int sync_errno;

/* Replaces the function of libc. */
int fsync(int fd)
{
	struct stat file, named;

	if (status_at && fstat(fd, &file) == 0 && stat(status_at, &named) == 0)
		syncs += file.st_ino == named.st_ino && file.st_size > 0;
	errno = sync_errno;
	return sync_errno ? -1 : 0;
}

static int open_dir(void **state)
{
	return open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static const struct exit_report sample_exit = {
	.attempt = 3,
	.code = -1,
	.signal = 9,
	.oom = true,
	.kind = ERR_TIMEOUT,
	.reason = "too \"long\"\n",
	.streams = {1, 2, 3},
};

static void what_is_written_is_read(void **state)
{
	int dir = open_dir(state), fd;
	struct gap gap = {STREAM_ERR, 10, 20};
	struct err err = {0};
	struct status st;

	assert_int_equal(status_read(dir, &st, &err), 0);
	assert_int_equal(st.attempt, 0); /* nothing there */
	assert_int_equal(status_claim(dir, 3, 1, "boot", true, &fd, &err), 0);
	assert_int_equal(status_read(dir, &st, &err), 0);
	assert_int_equal(st.attempt, 3);
	assert_string_equal(st.boot_id, "boot");
	assert_int_equal(st.shim.pid, getpid());
	assert_true(proc_alive(st.shim));
	assert_int_equal(st.job.pid, 0);
	assert_false(st.ended || st.has_exit);
	assert_int_equal(status_add_limits(fd, 5, 6, &err), 0);
	assert_int_equal(status_add_terminal(fd, (struct proc_id){55, 66}, &err), 0);
	assert_int_equal(status_add_job(fd, (struct proc_id){77, 88}, &err), 0);
	assert_int_equal(status_add_gap(fd, &gap, "full", &err), 0);
	assert_int_equal(status_add_ended(fd, 4, 0, &err), 0);
	assert_int_equal(status_read(dir, &st, &err), 0);
	assert_int_equal(st.job.pid, 77);
	assert_int_equal(st.job.start, 88);
	assert_int_equal(st.terminal.pid, 55);
	assert_int_equal(st.terminal.start, 66);
	assert_int_equal(st.grace_ms, 5);
	assert_int_equal(st.deadline_ms, 6);
	assert_true(st.ended && !st.has_exit);
	assert_int_equal(st.code, 4);
	assert_int_equal(st.exit.ngaps, 1);
	assert_int_equal(status_add_exit(fd, &sample_exit, &err), 0);
	assert_int_equal(status_read(dir, &st, &err), 0);
	assert_true(st.has_exit);
	assert_int_equal(st.exit.attempt, 3);
	assert_int_equal(st.exit.signal, 9);
	assert_true(st.exit.oom);
	assert_int_equal(st.exit.kind, ERR_TIMEOUT);
	assert_string_equal(st.exit.reason, sample_exit.reason);
	assert_int_equal(st.exit.streams[2], 3);
	assert_int_equal(st.exit.gaps[0].offset, 10);
	close(fd);
	close(dir);
}

static void an_attempt_is_claimed_once(void **state)
{
	int dir = open_dir(state), fd, other;
	struct err err = {0};

	assert_int_equal(status_claim(dir, 1, 1, "boot", true, &fd, &err), 0);
	assert_int_equal(status_claim(dir, 1, 1, "boot", true, &other, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	/* Nothing else is left in the directory. */
	char **names;
	size_t n;

	assert_int_equal(file_list_tree(*state, 10, &names, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(names[0], "status");
	file_list_free(names, n);
	close(fd);
	close(dir);
}

/* Text and name: what a crash of the machine loses was not claimed. */
static void a_claim_is_on_disk_when_it_has_to_be(void **state)
{
	int dir = open_dir(state), fd;
	struct err err = {0};

	syncs = 0;
	status_at = unit_path(state, "status");
	assert_int_equal(status_claim(dir, 1, 1, "boot", true, &fd, &err), 0);
	assert_int_equal(syncs, 1);
	close(fd);
	assert_int_equal(unlink(status_at), 0);
	sync_errno = EIO;
	assert_int_equal(status_claim(dir, 1, 1, "boot", true, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_IO);
	sync_errno = 0;
	status_at = NULL;
	close(dir);
}

static void of_many_that_claim_at_the_same_time_one_wins(void **state)
{
	enum { N = 16 };
	pid_t pids[N];
	int gate[2], winners = 0;
	char byte;

	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			int dir = open_dir(state), fd;

			close(gate[1]);
			if (read(gate[0], &byte, 1) != 0)
				_exit(2);
			_exit(status_claim(dir, 1, 1, "boot", false, &fd, NULL) == 0 ? 0 : 1);
		}
	}
	close(gate[1]); /* go */
	for (int i = 0; i < N; i++) {
		int status;

		waitpid(pids[i], &status, 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		winners += WEXITSTATUS(status) == 0;
	}
	close(gate[0]);
	assert_int_equal(winners, 1);
}

static void a_claim_in_a_directory_that_is_gone_fails(void **state)
{
	struct err err = {0};
	int dir, fd;

	mkdir(unit_path(state, "d"), 0700);
	dir = open(unit_path(state, "d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rmdir(unit_path(state, "d"));
	assert_int_equal(status_claim(dir, 1, 1, "boot", true, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(status_open(dir, &fd, &err), -1);
	close(dir);
}

/* The record of a killed writer, cut after every byte. */
static void a_torn_last_line_does_not_count(void **state)
{
	int dir = open_dir(state), fd;
	struct err err = {0};
	struct status whole, st;
	struct buf text;

	assert_int_equal(status_claim(dir, 3, 1, "boot", true, &fd, &err), 0);
	status_add_job(fd, (struct proc_id){77, 88}, &err);
	status_add_exit(fd, &sample_exit, &err);
	buf_init(&text, 10000);
	assert_int_equal(file_read_at(dir, "status", &text, &err), 0);
	status_parse(buf_str(&text), &whole);
	assert_true(whole.has_exit);
	size_t first = (size_t)((char *)memchr(text.p, '\n', text.n) - text.p) + 1;

	for (size_t n = 0; n < text.n; n++) {
		status_parse((struct str){text.p, n}, &st);
		assert_false(st.has_exit);
		assert_int_equal(st.attempt, n >= first ? 3 : 0);
	}
	buf_release(&text);
	close(fd);
	close(dir);
}

static void the_next_writer_closes_a_torn_line_before_its_own(void **state)
{
	int dir = open_dir(state), fd;
	struct err err = {0};
	struct status st;

	assert_int_equal(status_claim(dir, 3, 1, "boot", true, &fd, &err), 0);
	assert_int_equal(write(fd, "{\"rec\":\"exit\",\"co", 17), 17);
	close(fd);
	assert_int_equal(status_open(dir, &fd, &err), 0);
	assert_int_equal(status_add_exit(fd, &sample_exit, &err), 0);
	assert_int_equal(status_read(dir, &st, &err), 0);
	assert_true(st.has_exit);
	assert_int_equal(st.exit.signal, 9);
	close(fd);
	close(dir);
}

static void strange_records_change_nothing(void **state)
{
	static const char *const lines[] = {
		"[]\n",
		"{}\n",
		"{\"rec\":7}\n",
		"{\"rec\":\"unknown\"}\n",
		"\n\n",
		"{\"rec\":\"exit\"}\n",
		"{\"rec\":\"exit\",\"streams\":[1,2]}\n",
		"{\"rec\":\"exit\",\"streams\":[1,2,-3]}\n",
		"{\"rec\":\"exit\",\"streams\":[1,2,\"3\"]}\n",
		"{\"rec\":\"gap\",\"stream\":\"in\",\"offset\":1,\"bytes\":1}\n",
		"{\"rec\":\"gap\",\"stream\":\"out\",\"offset\":-1,\"bytes\":1}\n",
		"\xff\xfe\n",
		"{\"rec\":\"started\",\"attempt\":-1}\n",
		"{\"rec\":\"job\",\"pid\":-5}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct status st;

		status_parse(str_from(lines[i]), &st);
		assert_false(st.has_exit);
		assert_int_equal(st.attempt, 0);
		assert_int_equal(st.job.pid, 0);
		assert_int_equal(st.exit.ngaps, 0);
	}
}

static void the_first_exit_is_the_exit(void **state)
{
	struct status st;

	(void)state;
	status_parse(
		STR("{\"rec\":\"exit\",\"code\":1,\"streams\":[0,0,0]}\n{\"rec\":\"exit\",\"code\":2,\"streams\":[0,0,0]}\n"),
		&st);
	assert_int_equal(st.exit.code, 1);
}

#define STARTED "{\"rec\":\"started\",\"attempt\":1,\"processes\":3}\n"
#define PROCESS(local, code)                                                                       \
	"{\"rec\":\"process\",\"local\":" #local ",\"code\":" #code ",\"signal\":0}\n"

static void only_who_ended_well_before_the_failure_ended_early(void **state)
{
	struct status st;

	(void)state;
	status_parse(STR(STARTED PROCESS(2, 0) PROCESS(1, 7) PROCESS(0, 0)), &st);
	assert_int_equal(st.failed, 1);
	assert_int_equal(st.early, 2);
	status_parse(STR(STARTED PROCESS(1, 7) PROCESS(0, 0) PROCESS(2, 0)), &st);
	assert_int_equal(st.failed, 1);
	assert_int_equal(st.early, -1);
}

static void a_status_that_cannot_be_read_is_an_error(void **state)
{
	struct err err = {0};
	struct status st;

	mkdir(unit_path(state, "status"), 0700);
	int dir = open_dir(state);

	assert_int_equal(status_read(dir, &st, &err), -1);
	assert_int_not_equal(err.kind, ERR_NONE);
	close(dir);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(what_is_written_is_read),
		CASE(an_attempt_is_claimed_once),
		CASE(a_claim_is_on_disk_when_it_has_to_be),
		CASE(of_many_that_claim_at_the_same_time_one_wins),
		CASE(a_claim_in_a_directory_that_is_gone_fails),
		CASE(a_torn_last_line_does_not_count),
		CASE(the_next_writer_closes_a_torn_line_before_its_own),
		CASE(strange_records_change_nothing),
		CASE(the_first_exit_is_the_exit),
		CASE(only_who_ended_well_before_the_failure_ended_early),
		CASE(a_status_that_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests_name("agent: status", tests, NULL, NULL);
}
