/*
 * The disk reserve: space kept back so that on a full disk active runs can still be taken down,
 * and recorded as gone.
 *
 * It is a preallocated file in the home.  A write of the database that finds the disk full takes
 * a step from its end and is repeated.  The step is claimed for the file of the database at
 * once, because the program that filled the disk may take the space otherwise.  Files that
 * teardown writes beside the database get the first half only, on request.
 *
 * The length of the file is the state: shorter than DISK_RESERVE_BYTES means that the reserve is
 * out, also after a restart.  A home without room for it has no reserve.
 *
 * SQLite's system calls belong to the process, and so does `hooked`: with several stores in one
 * process, the reserve of the one that was opened last is used.
 */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/path.h"

#define NAME "disk_reserve"
#define OLD_NAME "ballast" /* in homes made before 0.2: taken over */
#define STEP (2 << 20)	   /* bytes given up at a time */
/* part of a step that is claimed for the file that needed it */
#define CLAIM (STEP - 65536)
#define KEPT (DISK_RESERVE_BYTES / 2)	/* for the database alone */
#define FIRST_ROOM (DISK_RESERVE_BYTES) /* free space needed beside it before it is first made */
#define LOW (1 << 20)			/* less free space than this is a full disk */

typedef ssize_t (*pwrite_fn)(int fd, const void *p, size_t n, off_t offset);
typedef ssize_t (*write_fn)(int fd, const void *p, size_t n);

static struct {
	struct store *store;
	sqlite3_syscall_ptr pwrite, pwrite64, write;
} hooked;

static int64_t free_bytes(const struct store *st)
{
	struct statvfs v;

	/* f_bavail, as df counts: without the blocks that the file system reserves. */
	if (statvfs(st->home, &v) < 0 || v.f_blocks == 0 || v.f_frsize == 0)
		return INT64_MAX; /* the file system does not say */
	uint64_t most = (uint64_t)INT64_MAX / v.f_frsize;
	return (int64_t)((v.f_bavail < most ? v.f_bavail : most) * v.f_frsize);
}

/* Not posix_fallocate(): on a file system without fallocate it would write all blocks. */
static bool grow(struct store *st)
{
	if (fallocate(st->reserve_fd, 0, st->reserve_bytes,
		      DISK_RESERVE_BYTES - st->reserve_bytes) == 0) {
		st->reserve_bytes = DISK_RESERVE_BYTES;
		return true;
	}
	if (ftruncate(st->reserve_fd, st->reserve_bytes) < 0)
		st->reserve_bytes = 0; /* how much of it was allocated is unknown */
	return false;
}

/* Shortens the reserve by one step, if more than `keep` is left. */
static bool give(struct store *st, int64_t keep)
{
	int64_t left = st->reserve_bytes - STEP;

	if (st->reserve_fd < 0 || st->reserve_bytes <= keep)
		return false;
	if (left < keep)
		left = keep;
	if (ftruncate(st->reserve_fd, left) < 0)
		return false;
	st->reserve_bytes = left;
	/* Some file systems reuse freed blocks only after their next commit. */
	fsync(st->reserve_fd);
	return true;
}

/* Called after a failed write; true if it should be repeated. */
static bool make_room(int fd, off_t offset)
{
	int errnum = errno;

	if ((errnum != ENOSPC && errnum != EDQUOT) || !hooked.store || !give(hooked.store, 0)) {
		errno = errnum;
		return false;
	}
	if (offset >= 0) /* even if this fails, the write may succeed */
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, CLAIM);
	return true;
}

static ssize_t roomy_pwrite(int fd, const void *p, size_t n, off_t offset)
{
	ssize_t done;

	do
		done = ((pwrite_fn)(void *)hooked.pwrite)(fd, p, n, offset);
	while (done < 0 && make_room(fd, offset));
	return done;
}

static ssize_t roomy_pwrite64(int fd, const void *p, size_t n, off_t offset)
{
	ssize_t done;

	do
		done = ((pwrite_fn)(void *)hooked.pwrite64)(fd, p, n, offset);
	while (done < 0 && make_room(fd, offset));
	return done;
}

static ssize_t roomy_write(int fd, const void *p, size_t n)
{
	ssize_t done;

	do
		done = ((write_fn)(void *)hooked.write)(fd, p, n);
	while (done < 0 && make_room(fd, lseek(fd, 0, SEEK_CUR)));
	return done;
}

static sqlite3_syscall_ptr hook(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr ours)
{
	sqlite3_syscall_ptr was = vfs->xGetSystemCall(vfs, name);

	if (was)
		vfs->xSetSystemCall(vfs, name, ours);
	return was;
}

void store_disk_reserve_hook(struct store *st)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find("unix");

	hooked.store = st;
	if (hooked.write || !vfs || vfs->iVersion < 3)
		return;
	hooked.pwrite = hook(vfs, "pwrite", (sqlite3_syscall_ptr)(void *)roomy_pwrite);
	hooked.pwrite64 = hook(vfs, "pwrite64", (sqlite3_syscall_ptr)(void *)roomy_pwrite64);
	hooked.write = hook(vfs, "write", (sqlite3_syscall_ptr)(void *)roomy_write);
}

static void do_without(struct store *st)
{
	close(st->reserve_fd);
	st->reserve_fd = -1;
}

static void open_old(struct store *st)
{
	struct stat sb;

	if (fstat(st->reserve_fd, &sb) < 0 || !S_ISREG(sb.st_mode))
		sb = (struct stat){0};
	/* A sparse file (of a copied home, say) reserves nothing. */
	bool solid = sb.st_blocks * 512 >= sb.st_size && sb.st_size <= DISK_RESERVE_BYTES;
	st->reserve_bytes = solid ? sb.st_size : 0;
	if (!solid && ftruncate(st->reserve_fd, 0) < 0)
		do_without(st);
}

#define OPEN_FLAGS (O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

void store_disk_reserve_open(struct store *st)
{
	CLEANUP(freep) char *path = path_join(st->home, NAME);

	CLEANUP(freep) char *old = path_join(st->home, OLD_NAME);

	st->reserve_fd = open(path, OPEN_FLAGS);
	if (st->reserve_fd < 0 && rename(old, path) == 0)
		st->reserve_fd = open(path, OPEN_FLAGS);
	if (st->reserve_fd < 0)
		return;
	open_old(st);
	store_disk_reserve_ease(st); /* a master that starts has files to write */
}

void store_disk_reserve_make(struct store *st)
{
	CLEANUP(freep) char *path = path_join(st->home, NAME);

	if (st->reserve_fd >= 0 || free_bytes(st) < DISK_RESERVE_BYTES + FIRST_ROOM)
		return;
	st->reserve_fd = open(path, OPEN_FLAGS | O_CREAT | O_EXCL, 0600);
	if (st->reserve_fd < 0 || grow(st))
		return;
	do_without(st);
	unlink(path);
}

void store_disk_reserve_close(struct store *st)
{
	if (hooked.store == st)
		hooked.store = NULL;
	if (st->reserve_fd >= 0)
		close(st->reserve_fd);
}

bool store_disk_reserve_is_out(struct store *st)
{
	if (st->reserve_fd < 0 || st->reserve_bytes == DISK_RESERVE_BYTES)
		return false;
	return free_bytes(st) < DISK_RESERVE_BYTES - st->reserve_bytes + DISK_RESERVE_MARGIN ||
	       !grow(st);
}

bool store_disk_full(struct store *st)
{
	return store_disk_reserve_is_out(st) || (st->reserve_fd >= 0 && free_bytes(st) < LOW);
}

bool store_disk_tight(struct store *st)
{
	return st->reserve_fd >= 0 && st->reserve_bytes < DISK_RESERVE_BYTES &&
	       free_bytes(st) < DISK_RESERVE_MARGIN;
}

void store_disk_reserve_ease(struct store *st)
{
	if (st->reserve_fd >= 0 && st->reserve_bytes > KEPT && free_bytes(st) < LOW)
		give(st, KEPT);
}
