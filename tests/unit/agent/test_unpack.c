/* Archives that a node unpacks. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/unpack.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/child.h"

static char *scratch;

static int make_scratch(void **state)
{
	char dir[] = "/tmp/regatta-unpack-XXXXXX";

	(void)state;
	scratch = mkdtemp(dir) ? xstrdup(dir) : NULL;
	return scratch ? 0 : -1;
}

static int remove_scratch(void **state)
{
	(void)state;
	file_remove_tree(scratch, NULL);
	free(scratch);
	return 0;
}

static char *below(const char *name)
{
	return xasprintf("%s/%s", scratch, name);
}

/* Runs a script in the test's directory. */
static void shell(const char *script)
{
	const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	CLEANUP(freep) char *line = xasprintf("cd %s && %s", scratch, script);
	const char *const argv[] = {"sh", "-c", line, NULL};
	struct child_spec spec = {
		.file = "/bin/sh", .argv = argv, .env = env, .in = -1, .out = -1, .err = 2};
	pid_t pid;
	int status;

	assert_int_equal(child_spawn(&spec, &pid, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int unpack(const char *name, struct err *err)
{
	CLEANUP(freep) char *path = below(name), *dest = below("dest");
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return unpack_archive(fd, dest, err);
}

static void a_tar_that_is_compressed_is_unpacked_like_one_that_is_not(void **state)
{
	CLEANUP(freep) char *file = below("dest/d/a");
	struct err err = {0};

	(void)state;
	shell("mkdir d; echo 1 > d/a; tar cf t d; tar czf t.gz d");
	assert_int_equal(unpack("t", &err), 0);
	assert_true(file_exists(file));
	shell("rm -r dest");
	assert_int_equal(unpack("t.gz", &err), 0);
	assert_true(file_exists(file));
}

static void a_checksum_that_is_wrong_is_noticed_after_the_last_file(void **state)
{
	struct err err = {0};

	(void)state;
	shell("echo 1 > a; tar czf t a; n=$(stat -c %s t); head -c $((n - 8)) t > bad; printf 12345678 >> bad");
	assert_int_equal(unpack("bad", &err), -1);
	assert_string_equal(err.msg, "the gzip file is damaged");
}

static void links_are_refused_whatever_they_came_in(void **state)
{
	struct err err = {0};

	(void)state;
	shell("ln -s /etc/passwd l; tar czf t l");
	assert_int_equal(unpack("t", &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_scratch, remove_scratch)
	static const struct CMUnitTest tests[] = {
		CASE(a_tar_that_is_compressed_is_unpacked_like_one_that_is_not),
		CASE(a_checksum_that_is_wrong_is_noticed_after_the_last_file),
		CASE(links_are_refused_whatever_they_came_in),
	};

	return cmocka_run_group_tests_name("agent: unpack", tests, NULL, NULL);
}
