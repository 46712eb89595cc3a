#include "small_disk.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "unit.h"

#define EXIT_NO_MOUNT 77

static int mount_small(const char *dir, size_t bytes, unsigned long flags)
{
	char options[64];

	snprintf(options, sizeof(options), "size=%zu,mode=700", bytes);
	return mount("none", dir, "tmpfs", flags, options);
}

void small_disk_grow(const char *dir, size_t bytes)
{
	assert_int_equal(mount_small(dir, bytes, MS_REMOUNT), 0);
}

static void in_child(const char *dir, size_t bytes, void (*fn)(void *, const char *), void *ctx)
{
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(EXIT_NO_MOUNT);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount_small(dir, bytes, 0) < 0)
		_exit(EXIT_NO_MOUNT);
	fn(ctx, dir);
	_exit(0);
}

void small_disk_run(const char *dir, size_t bytes, void (*fn)(void *ctx, const char *dir),
		    void *ctx)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A failed assertion ends this process and not the test of the parent. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		in_child(dir, bytes, fn, ctx);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_MOUNT) {
		printf("# skipped: mounting a small disk is not permitted here\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
