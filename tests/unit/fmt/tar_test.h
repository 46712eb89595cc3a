#pragma once
/* tar_test - trees on disk and archives in files, for the tests of tar. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "fmt_test.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "fmt/tar.h"

static inline void put_file(void **state, const char *name, const char *content, mode_t mode)
{
	CLEANUP(freep) char *path = xstrdup(unit_path(state, name));
	char *slash = strrchr(path, '/');
	struct err err = {0};

	*slash = '\0';
	assert_int_equal(file_mkdir_p(path, 0755, &err), 0);
	*slash = '/';
	assert_int_equal(file_write_atomic(path, str_from(content), mode, false, &err), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static inline void put_dir(void **state, const char *name)
{
	assert_int_equal(file_mkdir_p(unit_path(state, name), 0755, NULL), 0);
}

/* An empty file, open for both. */
static inline int temp_fd(void **state)
{
	static unsigned n;
	CLEANUP(freep) char *name = xasprintf("archive-%u", n++);
	int fd = open(unit_path(state, name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static inline void assert_content(void **state, const char *name, const char *content)
{
	CLEANUP(buf_release) struct buf b;
	struct err err = {0};

	buf_init(&b, 1 << 20);
	if (file_read(unit_path(state, name), &b, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(buf_str(&b).p, content);
}
