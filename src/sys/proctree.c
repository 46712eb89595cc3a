#include "sys/proctree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define ENVIRON_MAX (2 * 1024 * 1024) /* bytes of an environment that are searched */

static bool stat_field(struct str *rest, struct str *ret)
{
	if (!rest->p)
		return false;
	*ret = str_cut(rest, ' ');
	return ret->n > 0;
}

static bool parse_stat(pid_t pid, const char *text, struct proc_info *ret)
{
	/* The command's name may contain spaces and parentheses: parse after its last one. */
	const char *close_paren = strrchr(text, ')');
	uint64_t f[25] = {0};
	struct str rest, word;

	if (!close_paren || close_paren[1] != ' ')
		return false;
	rest = str_trim(str_from(close_paren + 2));
	if (!stat_field(&rest, &word))
		return false;
	*ret = (struct proc_info){.pid = pid, .state = word.p[0]};
	for (int i = 4; i <= 24; i++) {
		int64_t v;

		if (!stat_field(&rest, &word))
			return false;
		/* Some fields are signed (priority, tpgid); none of those matter here. */
		f[i] = str_to_i64(word, &v) && v > 0 ? (uint64_t)v : 0;
	}
	ret->ppid = (pid_t)f[4];
	ret->cpu_ticks = f[14] + f[15] + f[16] + f[17];
	ret->start = f[22];
	ret->memory_bytes = f[24] * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

bool proc_read(pid_t pid, struct proc_info *ret)
{
	char path[32], text[1024];
	CLEANUP(close_fdp) int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return parse_stat(pid, text, ret);
}

static bool is_dead(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

bool proc_alive(struct proc_id id)
{
	struct proc_info p;

	return id.pid > 0 && proc_read(id.pid, &p) && p.start == id.start && !is_dead(p.state);
}

struct proc_id proc_id_of(pid_t pid)
{
	struct proc_info p;

	return (struct proc_id){pid, proc_read(pid, &p) ? p.start : 0};
}

void proc_list_release(struct proc_list *l)
{
	vec_release(l);
}

static bool next_pid(DIR *d, pid_t *ret)
{
	struct dirent *e;
	int64_t pid;

	while ((e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && str_to_i64(str_from(e->d_name), &pid)) {
			*ret = (pid_t)pid;
			return true;
		}
	return false;
}

static void read_all(struct proc_list *out)
{
	CLEANUP(closedirp) DIR *d = opendir("/proc");
	pid_t pid;

	while (d && next_pid(d, &pid)) {
		struct proc_info p;

		if (proc_read(pid, &p))
			*vec_push(out) = p;
	}
}

static bool listed(const struct proc_list *l, pid_t pid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].pid == pid)
			return true;
	return false;
}

void proc_descendants(pid_t root, struct proc_list *out)
{
	CLEANUP(proc_list_release) struct proc_list all = {0};
	CLEANUP(proc_list_release) struct proc_list below = {0};
	bool grew;

	read_all(&all);
	/* Zombies are followed: an unreaped parent may still have children. */
	do {
		grew = false;
		for (size_t i = 0; i < all.n; i++) {
			const struct proc_info *p = &all.v[i];

			if (p->pid == root || listed(&below, p->pid))
				continue;
			if (p->ppid == root || listed(&below, p->ppid)) {
				*vec_push(&below) = *p;
				grew = true;
			}
		}
	} while (grew);
	for (size_t i = 0; i < below.n; i++)
		if (!is_dead(below.v[i].state))
			*vec_push(out) = below.v[i];
}

/* Does the NUL-separated block hold the entry? */
static bool env_has(const char *block, size_t n, const char *entry, bool prefix)
{
	size_t want = strlen(entry);

	for (size_t at = 0; at < n;) {
		size_t len = strnlen(block + at, n - at);

		if (prefix ? len >= want : len == want)
			if (memcmp(block + at, entry, want) == 0)
				return true;
		at += len + 1;
	}
	return false;
}

static size_t read_environ(pid_t pid, char *out, size_t max)
{
	char path[32];
	CLEANUP(close_fdp) int fd = -1;
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n < max) {
		ssize_t got = read(fd, out + n, max - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static bool is_ours(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

void proc_with_env(const char *entry, bool prefix, struct proc_list *out)
{
	CLEANUP(closedirp) DIR *d = opendir("/proc");
	CLEANUP(freep) char *block = xmalloc(ENVIRON_MAX);
	pid_t self = getpid(), pid;

	while (d && next_pid(d, &pid)) {
		struct proc_info p;

		if (pid == self || !is_ours(pid) || !proc_read(pid, &p) || is_dead(p.state))
			continue;
		if (env_has(block, read_environ(pid, block, ENVIRON_MAX), entry, prefix))
			*vec_push(out) = p;
	}
}

bool proc_carries(pid_t pid, const char *entry)
{
	CLEANUP(freep) char *block = xmalloc(ENVIRON_MAX);
	struct proc_info p;

	return proc_read(pid, &p) && !is_dead(p.state) &&
	       env_has(block, read_environ(pid, block, ENVIRON_MAX), entry, false);
}

void proc_kill(const struct proc_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct proc_id id = {l->v[i].pid, l->v[i].start};

		if (proc_alive(id))
			kill(id.pid, SIGKILL);
	}
}

int proc_open(struct proc_id id)
{
	CLEANUP(close_fdp) int fd = (int)syscall(SYS_pidfd_open, id.pid, 0);

	if (fd < 0)
		return -1;
	/* The pid may have been reused before pidfd_open: check the start time after it. */
	if (!proc_alive(id)) {
		errno = ESRCH;
		return -1;
	}
	return TAKE_FD(fd);
}

/* ---- boot id ---- */

static char boot_id[PROC_BOOT_ID];

static void read_boot_id(void)
{
	struct buf text;

	buf_init(&text, PROC_BOOT_ID - 1);
	if (file_read(BOOT_ID_FILE, &text, NULL) == 0)
		snprintf(boot_id, sizeof(boot_id), "%.*s", STR_ARG(str_trim(buf_str(&text))));
	buf_release(&text);
}

void proc_boot_id(char out[static PROC_BOOT_ID])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_boot_id);
	snprintf(out, PROC_BOOT_ID, "%s", boot_id);
}
