#include "base/below.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"

bool below_is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int open_dir(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int below_enter(int parent, const char *name)
{
	if (below_is_link(parent, name))
		unlinkat(parent, name, 0);
	if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
		return -1;
	return open_dir(parent, name);
}

/* Opens the directory of the file `name`, one part at a time by step(). */
static int walk(int top, const char *name, int (*step)(int parent, const char *name))
{
	struct str rest = {name, (size_t)(path_base(name) - name)};
	CLEANUP(close_fdp) int fd = fcntl(top, F_DUPFD_CLOEXEC, 3);

	while (fd >= 0 && rest.p && rest.n > 0) {
		struct str part = str_cut(&rest, '/');
		CLEANUP(freep) char *dir = xstrndup(part.p, part.n);
		int below = part.n > 0 ? step(fd, dir) : fcntl(fd, F_DUPFD_CLOEXEC, 3);
		int errnum = errno;

		close_fdp(&fd);
		fd = below;
		errno = errnum;
	}
	return TAKE_FD(fd);
}

int below_enter_parent(int top, const char *name, struct err *err)
{
	int fd = walk(top, name, below_enter);

	return fd < 0 ? err_errno(err, errno, "make the directory of '%s'", name) : fd;
}

int below_open(int top, const char *name)
{
	CLEANUP(close_fdp) int dir = walk(top, name, open_dir);

	return dir < 0 ? -1
		       : openat(dir, path_base(name),
				O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

int below_remove(int dir, const char *name, struct err *err)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	CLEANUP(freep) char *path = xasprintf("/proc/self/fd/%d/%s", dir, name);

	return file_remove_tree(path, err);
}
