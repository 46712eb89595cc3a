#include "agent/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/environ.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/tar.h"
#include "sys/child.h"

#define WAYS 3
#define WORDS 6

extern char **environ;

/* A zip as a tar, for machines that have Python and no bsdtar. */
static const char zip_to_tar[] =
	"import stat, sys, tarfile, zipfile\n"
	"out = tarfile.open(fileobj=sys.stdout.buffer, mode='w|')\n"
	"with zipfile.ZipFile(sys.stdin.buffer) as z:\n"
	"    for i in z.infolist():\n"
	"        t, mode = tarfile.TarInfo(i.filename), i.external_attr >> 16\n"
	"        t.mode = mode & 0o777 or 0o644\n"
	"        if i.is_dir():\n"
	"            t.type, t.mode = tarfile.DIRTYPE, 0o755\n"
	"            out.addfile(t)\n"
	"        elif stat.S_ISLNK(mode):\n"
	"            t.type, t.linkname = tarfile.SYMTYPE, z.read(i).decode()\n"
	"            out.addfile(t)\n"
	"        else:\n"
	"            t.size = i.file_size\n"
	"            with z.open(i) as f:\n"
	"                out.addfile(t, f)\n"
	"out.close()\n";

/* The programs that turn a format into a tar, the best first: standard input to standard output. */
static const struct format {
	const char *name;
	const char *magic;
	size_t n;
	const char *ways[WAYS][WORDS]; /* none: it is a tar */
} formats[] = {
	{"gzip", "\x1f\x8b", 2, {{"gzip", "-dc"}, {"bsdtar", "-cf", "-", "@-"}}},
	{"zstd", "\x28\xb5\x2f\xfd", 4, {{"zstd", "-dcq"}, {"bsdtar", "-cf", "-", "@-"}}},
	{"xz",
	 "\xfd"
	 "7zXZ",
	 5,
	 {{"xz", "-dc"}, {"bsdtar", "-cf", "-", "@-"}}},
	{"bzip2", "BZh", 3, {{"bzip2", "-dc"}, {"bsdtar", "-cf", "-", "@-"}}},
	{"zip", "PK\x03\x04", 4, {{"python3", "-c", zip_to_tar}, {"bsdtar", "-cf", "-", "@-"}}},
	{"zip", "PK\x05\x06", 4, {{"python3", "-c", zip_to_tar}, {"bsdtar", "-cf", "-", "@-"}}},
	{"tar", "", 0, {{0}}},
};

static const struct format *format_of(int fd)
{
	char head[8] = {0};
	ssize_t n = pread(fd, head, sizeof(head), 0);
	const struct format *f = formats;

	while (f->n > 0 && (n < (ssize_t)f->n || memcmp(head, f->magic, f->n) != 0))
		f++;
	return f;
}

static const char *search_path(void)
{
	const char *own = getenv("PATH");

	return own && own[0] ? own : ENVIRON_PATH;
}

/* Starts the first of the format's programs that this machine has. */
static int start(const struct format *f, int in, int out, pid_t *ret_pid, struct err *err)
{
	struct child_spec spec = {
		.env = (const char *const *)environ, .in = in, .out = out, .err = -1};

	for (int i = 0; i < WAYS && f->ways[i][0]; i++) {
		CLEANUP(freep) char *file = NULL;

		if (child_find_command(f->ways[i][0], search_path(), "/", &file, NULL) < 0)
			continue;
		spec.file = file;
		spec.argv = f->ways[i];
		return child_spawn(&spec, ret_pid, err);
	}
	return err_set(err, ERR_NOT_FOUND, "to unpack %s this machine needs %s or %s", f->name,
		       f->ways[0][0], f->ways[1][0]);
}

/* What follows the end mark of the tar: the program must be able to write it. */
static void drain(int fd)
{
	char bin[65536];
	ssize_t n;

	do {
		n = read(fd, bin, sizeof(bin));
	} while (n > 0 || (n < 0 && errno == EINTR));
}

static int unpack_through(const struct format *f, int fd, const char *dest, struct err *err)
{
	CLEANUP(close_fdp) int from = -1;
	int p[2], status = 0, rc;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	from = p[0];
	rc = start(f, fd, p[1], &pid, err);
	close(p[1]);
	if (rc < 0)
		return -1;
	rc = tar_unpack(from, dest, err);
	if (rc == 0)
		drain(from);
	else
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* A damaged file looks like the end of a tar: the program knows better. */
	if (rc == 0 && status != 0)
		return err_set(err, ERR_INVALID, "the %s file is damaged", f->name);
	return rc;
}

int unpack_archive(int fd, const char *dest, struct err *err)
{
	const struct format *f = format_of(fd);

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(err, errno, "read the archive");
	return f->n > 0 ? unpack_through(f, fd, dest, err) : tar_unpack(fd, dest, err);
}
