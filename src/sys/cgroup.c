#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/dir.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "sys/proctree.h"

#define PROC_TEXT_MAX (1024 * 1024) /* mountinfo of a machine with many containers */
#define KNOWN_MS 1000
#define GROUP_TEXT_MAX (256 * 1024) /* cgroup.procs and the statistics */

/* ---- paths ---- */

struct mount {
	struct str root, point, fstype, super;
};

/* "36 25 0:31 /root /point options [tags] - fstype source superoptions" */
static bool mount_parse(struct str line, struct mount *ret)
{
	struct str word;

	for (int i = 0; i < 3; i++)
		str_cut(&line, ' ');
	if (!line.p)
		return false;
	ret->root = str_cut(&line, ' ');
	ret->point = str_cut(&line, ' ');
	do {
		if (!line.p)
			return false;
		word = str_cut(&line, ' ');
	} while (!str_is(word, "-"));
	ret->fstype = str_cut(&line, ' ');
	str_cut(&line, ' ');
	ret->super = line.p ? line : STR("");
	return ret->point.n > 0;
}

static bool has_option(struct str options, const char *want)
{
	while (options.p)
		if (str_is(str_cut(&options, ','), want))
			return true;
	return false;
}

/* The process's group in the hierarchy with `controller`; "" selects v2. */
static bool own_group(const char *groups, const char *controller, struct str *ret)
{
	struct str text = str_from(groups);

	while (text.p && text.n > 0) {
		struct str line = str_cut(&text, '\n');

		str_cut(&line, ':');
		if (!line.p)
			continue;
		struct str names = str_cut(&line, ':');

		if (!line.p)
			continue;
		if (*controller ? has_option(names, controller) : names.n == 0) {
			*ret = line;
			return true;
		}
	}
	return false;
}

/* point + (group without the mount's root) + "/" + name */
static bool place(const struct mount *m, struct str group, const char *name,
		  char out[static CGROUP_PATH_MAX])
{
	bool whole = str_is(m->root, "/");

	if (!whole) {
		if (!str_starts(group, m->root))
			return false; /* the group is outside of what is mounted here */
		group.p += m->root.n;
		group.n -= m->root.n;
	}
	while (group.n > 0 && group.p[group.n - 1] == '/')
		group.n--;
	int n = snprintf(out, CGROUP_PATH_MAX, "%.*s%.*s/%s", STR_ARG(m->point), STR_ARG(group),
			 name);

	if (n > 0 && n < CGROUP_PATH_MAX)
		return true;
	out[0] = '\0';
	return false;
}

void cgroup_place_from(const char *mountinfo, const char *groups, const char *name,
		       struct cgroup *ret)
{
	struct str text = str_from(mountinfo), group;
	struct mount m;

	*ret = (struct cgroup){0};
	while (text.p && text.n > 0) {
		struct str line = str_cut(&text, '\n');

		if (!mount_parse(line, &m))
			continue;
		if (!ret->unified[0] && str_is(m.fstype, "cgroup2") &&
		    own_group(groups, "", &group))
			place(&m, group, name, ret->unified);
		if (!ret->memory[0] && str_is(m.fstype, "cgroup") &&
		    has_option(m.super, "memory") && own_group(groups, "memory", &group))
			place(&m, group, name, ret->memory);
	}
}

static bool may_make(const char *path)
{
	char parent[CGROUP_PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return access(parent, W_OK | X_OK) == 0;
}

/* Where groups can be made; each path ends with a slash. */
static void find_own_groups(struct cgroup *ret)
{
	struct buf mounts, groups;

	*ret = (struct cgroup){0};
	buf_init(&mounts, PROC_TEXT_MAX);
	buf_init(&groups, PROC_TEXT_MAX);
	if (file_read("/proc/self/mountinfo", &mounts, NULL) == 0 &&
	    file_read("/proc/self/cgroup", &groups, NULL) == 0 && mounts.n > 0 && groups.n > 0)
		cgroup_place_from(mounts.p, groups.p, "", ret);
	if (!may_make(ret->unified))
		ret->unified[0] = '\0';
	if (!may_make(ret->memory))
		ret->memory[0] = '\0';
	buf_release(&mounts);
	buf_release(&groups);
}

static void add_name(char path[static CGROUP_PATH_MAX], const char *name)
{
	size_t n = strlen(path);

	if (n > 0 &&
	    snprintf(path + n, CGROUP_PATH_MAX - n, "%s", name) >= (int)(CGROUP_PATH_MAX - n))
		path[0] = '\0';
}

void cgroup_place(const char *name, struct cgroup *ret)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct cgroup known;
	static int64_t until_ms;

	/* Cached, because reading mountinfo is slow on a machine with many mounts. */
	pthread_mutex_lock(&lock);
	if (clock_boot_ms() >= until_ms) {
		find_own_groups(&known);
		until_ms = clock_boot_ms() + KNOWN_MS;
	}
	*ret = known;
	pthread_mutex_unlock(&lock);
	add_name(ret->unified, name);
	add_name(ret->memory, name);
}

/* ---- files of a group ---- */

static int open_in(const char *dir, const char *name, int flags)
{
	char path[CGROUP_PATH_MAX + 32];

	if (!dir[0])
		return -1;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, flags | O_CLOEXEC);
}

static int write_in(const char *dir, const char *name, const char *text)
{
	CLEANUP(close_fdp) int fd = open_in(dir, name, O_WRONLY);
	size_t n = strlen(text);

	return fd >= 0 && write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

static bool read_in(const char *dir, const char *name, struct buf *out)
{
	CLEANUP(close_fdp) int fd = open_in(dir, name, O_RDONLY);

	buf_reset(out);
	while (fd >= 0) {
		char *p = buf_reserve(out, 4096);
		ssize_t n = p ? read(fd, p, 4096) : -1;

		if (n < 0)
			return false;
		if (n == 0)
			return out->n > 0;
		buf_commit(out, (size_t)n);
	}
	return false;
}

/* The number after `key` in "key value" lines; with key NULL the whole text. */
static bool number_in(const char *dir, const char *name, const char *key, uint64_t *ret)
{
	struct buf text;
	bool found = false;

	buf_init(&text, GROUP_TEXT_MAX);
	if (read_in(dir, name, &text)) {
		struct str rest = buf_str(&text);

		if (!key)
			found = str_to_u64(str_trim(rest), ret);
		while (key && !found && rest.p && rest.n > 0) {
			struct str line = str_cut(&rest, '\n');

			if (str_is(str_cut(&line, ' '), key) && line.p)
				found = str_to_u64(str_trim(line), ret);
		}
	}
	buf_release(&text);
	return found;
}

/* ---- make, limit, enter ---- */

static void make_part(char *path)
{
	if (path[0] && mkdir(path, 0755) < 0 && errno != EEXIST)
		path[0] = '\0';
}

void cgroup_make(struct cgroup *cg, bool want_memory)
{
	cg->used = cg->unified[0] && access(cg->unified, F_OK) == 0;
	make_part(cg->unified);
	if (want_memory)
		make_part(cg->memory);
	else
		cg->memory[0] = '\0';
}

static void find_part(char *path)
{
	if (path[0] && access(path, F_OK) < 0)
		path[0] = '\0';
}

void cgroup_find(struct cgroup *cg)
{
	find_part(cg->unified);
	find_part(cg->memory);
}

static bool has_file(const char *dir, const char *name)
{
	CLEANUP(close_fdp) int fd = open_in(dir, name, O_RDONLY);

	return fd >= 0;
}

/* A v2 group has the memory controller only if its parent enables it. */
static bool unified_has_memory(const struct cgroup *cg)
{
	char parent[CGROUP_PATH_MAX];

	if (has_file(cg->unified, "memory.max"))
		return true;
	if (!cg->unified[0])
		return false;
	snprintf(parent, sizeof(parent), "%s", cg->unified);
	*strrchr(parent, '/') = '\0';
	write_in(parent, "cgroup.subtree_control", "+memory");
	return has_file(cg->unified, "memory.max");
}

int cgroup_limit_memory(struct cgroup *cg, uint64_t bytes, struct err *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	if (unified_has_memory(cg)) {
		if (write_in(cg->unified, "memory.max", text) < 0)
			return err_set(err, ERR_UNAVAILABLE, "cannot set memory.max in %s: %s",
				       cg->unified, strerror(errno));
		/* Otherwise the job would swap at the limit. */
		write_in(cg->unified, "memory.swap.max", "0");
		return 0;
	}
	if (has_file(cg->memory, "memory.limit_in_bytes")) {
		if (write_in(cg->memory, "memory.limit_in_bytes", text) < 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "cannot set memory.limit_in_bytes in %s: %s", cg->memory,
				       strerror(errno));
		write_in(cg->memory, "memory.memsw.limit_in_bytes", text);
		return 0;
	}
	return err_set(
		err, ERR_UNAVAILABLE,
		"memory cannot be limited here: no cgroup with a memory controller can be made; "
		"remove `memory` from the role or run with that permission");
}

int cgroup_open(const struct cgroup *cg)
{
	return cg->unified[0] && !cg->used ? open(cg->unified, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
					   : -1;
}

int cgroup_enter_memory(const struct cgroup *cg)
{
	return cg->memory[0] ? write_in(cg->memory, "cgroup.procs", "0") : 0;
}

int cgroup_enter_unified(const struct cgroup *cg)
{
	return cg->unified[0] ? write_in(cg->unified, "cgroup.procs", "0") : 0;
}

/* ---- list and kill the processes of a group ---- */

static void list_part(const char *dir, struct proc_list *out)
{
	struct buf text;

	buf_init(&text, GROUP_TEXT_MAX);
	if (read_in(dir, "cgroup.procs", &text)) {
		struct str rest = buf_str(&text);

		while (rest.p && rest.n > 0) {
			struct str line = str_cut(&rest, '\n');
			struct proc_info p;
			int64_t pid;

			if (str_to_i64(line, &pid) && pid > 0 && proc_read((pid_t)pid, &p) &&
			    p.state != 'Z' && p.state != 'X')
				*vec_push(out) = p;
		}
	}
	buf_release(&text);
}

void cgroup_procs(const struct cgroup *cg, struct proc_list *out)
{
	list_part(cg->unified, out);
	if (out->n == 0)
		list_part(cg->memory, out);
}

bool cgroup_populated(const struct cgroup *cg)
{
	uint64_t v;

	if (number_in(cg->unified, "cgroup.events", "populated", &v))
		return v != 0;
	CLEANUP(proc_list_release) struct proc_list l = {0};

	cgroup_procs(cg, &l);
	return l.n > 0;
}

void cgroup_kill(const struct cgroup *cg)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};

	if (write_in(cg->unified, "cgroup.kill", "1") == 0)
		return;
	/* Kernels before 5.14, and v1: kill each process; the caller repeats until none is left. */
	cgroup_procs(cg, &l);
	proc_kill(&l);
}

#define REMOVE_DEPTH 16

/* A job may have made child groups; they are removed first. */
static bool remove_part(const char *path, int depth)
{
	CLEANUP(closedirp) DIR *d = NULL;
	struct dirent *e;

	if (!path[0] || rmdir(path) == 0 || errno == ENOENT)
		return true;
	if (depth >= REMOVE_DEPTH || !(d = opendir(path)))
		return false;
	while ((e = readdir(d))) {
		char below[CGROUP_PATH_MAX + 256];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, e->d_name) < (int)sizeof(below))
			remove_part(below, depth + 1);
	}
	return rmdir(path) == 0 || errno == ENOENT;
}

bool cgroup_remove(const struct cgroup *cg)
{
	bool a = remove_part(cg->unified, 0), b = remove_part(cg->memory, 0);

	return a && b;
}

/* ---- measuring ---- */

uint64_t cgroup_oom_kills(const struct cgroup *cg)
{
	uint64_t v = 0, sum = 0;

	if (number_in(cg->unified, "memory.events", "oom_kill", &v))
		sum += v;
	if (number_in(cg->memory, "memory.oom_control", "oom_kill", &v))
		sum += v;
	return sum;
}

bool cgroup_cpu_us(const struct cgroup *cg, uint64_t *ret)
{
	return number_in(cg->unified, "cpu.stat", "usage_usec", ret);
}

bool cgroup_memory_bytes(const struct cgroup *cg, uint64_t *ret)
{
	return number_in(cg->unified, "memory.current", NULL, ret) ||
	       number_in(cg->memory, "memory.usage_in_bytes", NULL, ret);
}
