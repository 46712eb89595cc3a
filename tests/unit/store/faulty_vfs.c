#include "faulty_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include "base/rand.h"
#include "base/vec.h"

#define SECTOR 512

/* A change of a file that no sync has followed yet. */
struct change {
	char *path;
	sqlite3_int64 at, size_before;
	char *before, *after; /* `n` bytes; `after` is NULL for a truncation to `at` */
	size_t n_before, n;
};

static struct {
	sqlite3_vfs vfs, *real;
	enum fault fault;
	uint64_t at, ops, syncs;
	bool hit;
	VEC(struct change) unsynced;
} disk;

struct faulty_file {
	sqlite3_file base;
	char *path;
	sqlite3_file *real;
};

enum op { OP_OPEN, OP_READ, OP_WRITE, OP_TRUNCATE, OP_SYNC, OP_DELETE };
static const int io_errors[] = {
	[OP_OPEN] = SQLITE_CANTOPEN,	 [OP_READ] = SQLITE_IOERR_READ,
	[OP_WRITE] = SQLITE_IOERR_WRITE, [OP_TRUNCATE] = SQLITE_IOERR_TRUNCATE,
	[OP_SYNC] = SQLITE_IOERR_FSYNC,	 [OP_DELETE] = SQLITE_IOERR_DELETE,
};

/* The result code of this call's fault, or SQLITE_OK. */
static int fault_now(enum op op)
{
	bool once = disk.fault == FAULT_IO_ONCE || disk.fault == FAULT_FULL_ONCE;
	bool full = disk.fault == FAULT_FULL_ONCE || disk.fault == FAULT_FULL_FOREVER;

	/* A full disk can be read. */
	if (full && (op == OP_READ || op == OP_DELETE))
		return SQLITE_OK;
	disk.ops++;
	if (!disk.at || disk.ops < disk.at || (once && disk.ops > disk.at))
		return SQLITE_OK;
	disk.hit = true;
	return full && op == OP_WRITE ? SQLITE_FULL : io_errors[op];
}

static void change_release(struct change *c)
{
	free(c->path);
	free(c->before);
	free(c->after);
}

static void forget(const char *path)
{
	size_t kept = 0;

	for (size_t i = 0; i < disk.unsynced.n; i++) {
		if (!path || strcmp(disk.unsynced.v[i].path, path) == 0)
			change_release(&disk.unsynced.v[i]);
		else
			disk.unsynced.v[kept++] = disk.unsynced.v[i];
	}
	disk.unsynced.n = kept;
}

/* What [at, at+n) and the size are before a change. */
static struct change *remember(struct faulty_file *f, sqlite3_int64 at, size_t n)
{
	struct change *c = vec_push(&disk.unsynced);

	c->path = xstrdup(f->path);
	c->at = at;
	f->real->pMethods->xFileSize(f->real, &c->size_before);
	sqlite3_int64 there = c->size_before - at;
	c->n_before = there <= 0 ? 0 : (uint64_t)there < n ? (size_t)there : n;
	c->before = xmalloc(n + 1);
	if (c->n_before)
		f->real->pMethods->xRead(f->real, c->before, (int)c->n_before, at);
	c->n = n;
	return c;
}

static int f_close(sqlite3_file *file)
{
	struct faulty_file *f = (struct faulty_file *)file;
	int rc = f->real->pMethods->xClose(f->real);

	free(f->path);
	free(f->real);
	return rc;
}

static int f_read(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
	struct faulty_file *f = (struct faulty_file *)file;
	int rc = fault_now(OP_READ);

	return rc ? rc : f->real->pMethods->xRead(f->real, p, n, at);
}

static int f_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
	struct faulty_file *f = (struct faulty_file *)file;
	int rc = fault_now(OP_WRITE);

	if (rc && rc != SQLITE_FULL)
		return rc;
	if (rc)
		n /= 2;
	if (disk.fault == FAULT_POWER_CUT && disk.at) {
		struct change *c = remember(f, at, (size_t)n);
		c->after = xmalloc((size_t)n + 1);
		memcpy(c->after, p, (size_t)n);
	}
	int done = f->real->pMethods->xWrite(f->real, p, n, at);
	return done ? done : rc;
}

static int f_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct faulty_file *f = (struct faulty_file *)file;
	int rc = fault_now(OP_TRUNCATE);
	sqlite3_int64 now = 0;

	if (rc)
		return rc;
	f->real->pMethods->xFileSize(f->real, &now);
	if (disk.fault == FAULT_POWER_CUT && disk.at && now > size)
		remember(f, size, (size_t)(now - size));
	return f->real->pMethods->xTruncate(f->real, size);
}

static int f_sync(sqlite3_file *file, int flags)
{
	struct faulty_file *f = (struct faulty_file *)file;
	int rc = fault_now(OP_SYNC);

	if (rc)
		return rc;
	(void)flags;
	disk.syncs++;
	/* Changes are followed here; the real disk need not turn for them. */
	forget(f->path);
	return SQLITE_OK;
}

static int f_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	struct faulty_file *f = (struct faulty_file *)file;

	return f->real->pMethods->xFileSize(f->real, ret);
}

static int f_lock(sqlite3_file *file, int level)
{
	struct faulty_file *f = (struct faulty_file *)file;

	return f->real->pMethods->xLock(f->real, level);
}

static int f_unlock(sqlite3_file *file, int level)
{
	struct faulty_file *f = (struct faulty_file *)file;

	return f->real->pMethods->xUnlock(f->real, level);
}

static int f_check_lock(sqlite3_file *file, int *ret)
{
	struct faulty_file *f = (struct faulty_file *)file;

	return f->real->pMethods->xCheckReservedLock(f->real, ret);
}

static int f_control(sqlite3_file *file, int op, void *arg)
{
	(void)file, (void)op, (void)arg;
	return SQLITE_NOTFOUND;
}

static int f_sector(sqlite3_file *file)
{
	(void)file;
	return SECTOR;
}

/* Promises nothing: no atomic writes, no powersafe overwrite. */
static int f_traits(sqlite3_file *file)
{
	(void)file;
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = f_close,
	.xRead = f_read,
	.xWrite = f_write,
	.xTruncate = f_truncate,
	.xSync = f_sync,
	.xFileSize = f_size,
	.xLock = f_lock,
	.xUnlock = f_unlock,
	.xCheckReservedLock = f_check_lock,
	.xFileControl = f_control,
	.xSectorSize = f_sector,
	.xDeviceCharacteristics = f_traits,
};

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct faulty_file *f = (struct faulty_file *)file;
	int rc = fault_now(OP_OPEN);

	(void)vfs;
	f->base.pMethods = NULL;
	if (rc)
		return rc;
	f->real = xcalloc(1, (size_t)disk.real->szOsFile);
	rc = disk.real->xOpen(disk.real, name, f->real, flags, ret_flags);
	if (rc) {
		free(f->real);
		return rc;
	}
	f->path = xstrdup(name ? name : "");
	f->base.pMethods = &methods;
	return SQLITE_OK;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
	int rc = fault_now(OP_DELETE);

	(void)vfs;
	if (rc)
		return rc;
	forget(name);
	return disk.real->xDelete(disk.real, name, sync_dir);
}

void faulty_install(void)
{
	disk.real = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.real;
	disk.vfs.zName = "faulty";
	disk.vfs.szOsFile = sizeof(struct faulty_file);
	disk.vfs.xOpen = v_open;
	disk.vfs.xDelete = v_delete;
	assert_int_equal(sqlite3_vfs_register(&disk.vfs, 1), SQLITE_OK);
}

void faulty_arm(enum fault fault, uint64_t at)
{
	forget(NULL);
	disk.fault = fault;
	disk.at = at;
	disk.ops = disk.syncs = 0;
	disk.hit = false;
}

bool faulty_disarm(void)
{
	disk.at = 0;
	return disk.hit;
}

uint64_t faulty_syncs(void)
{
	return disk.syncs;
}

uint64_t faulty_ops(void)
{
	return disk.ops;
}

static int open_path(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void undo(const struct change *c)
{
	int fd = open_path(c->path);

	assert_int_equal(pwrite(fd, c->before, c->n_before, c->at), (ssize_t)c->n_before);
	assert_int_equal(ftruncate(fd, c->size_before), 0);
	close(fd);
}

/* The whole, nothing, or some sectors of it. */
static void redo(const struct change *c, struct rng *rng)
{
	int fd = open_path(c->path);

	if (!c->after) {
		if (rng_below(rng, 2))
			assert_int_equal(ftruncate(fd, c->at), 0);
	} else if (rng_below(rng, 3)) {
		bool torn = rng_below(rng, 2);

		for (size_t i = 0; i < c->n; i += SECTOR) {
			size_t n = c->n - i < SECTOR ? c->n - i : SECTOR;

			if (!torn || rng_below(rng, 2))
				assert_int_equal(pwrite(fd, c->after + i, n, c->at + (int64_t)i),
						 (ssize_t)n);
		}
	}
	close(fd);
}

void faulty_power_on(uint64_t seed)
{
	struct rng rng;

	rng_seed(&rng, seed);
	for (size_t i = disk.unsynced.n; i-- > 0;)
		undo(&disk.unsynced.v[i]);
	for (size_t i = 0; i < disk.unsynced.n; i++)
		redo(&disk.unsynced.v[i], &rng);
	forget(NULL);
}
