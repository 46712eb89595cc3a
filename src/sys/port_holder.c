#include "sys/port_holder.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

#define LISTENS 0x0a /* the state of a socket in /proc/net/tcp */
#define LINE_MAX_BYTES 512
#define ENVIRON_MAX_BYTES (4 * 1024 * 1024)

static bool is_zero(const char *hex)
{
	return hex[strspn(hex, "0")] == '\0';
}

/* One row of /proc/net/tcp or tcp6: addresses are hexadecimal, as the machine has them in memory. */
static bool row_listens(const char *line, int port, const uint32_t *address, unsigned long *ret)
{
	char local[40];
	unsigned at, state;

	if (sscanf(line, " %*d: %39[0-9A-F]:%4x %*[0-9A-F]:%*x %2x %*x:%*x %*x:%*x %*x %*u %*d %lu",
		   local, &at, &state, ret) != 4 ||
	    state != LISTENS || at != (unsigned)port)
		return false;
	return !address || is_zero(local) ||
	       (strlen(local) == 8 && strtoul(local, NULL, 16) == *address);
}

static bool find_inode(const char *table, int port, const uint32_t *address, unsigned long *ret)
{
	char line[LINE_MAX_BYTES];
	bool found = false;
	FILE *f = fopen(table, "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = row_listens(line, port, address, ret);
	if (f)
		fclose(f);
	return found;
}

static bool has_socket(pid_t pid, unsigned long inode)
{
	char path[64], want[64], target[64];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	DIR *d = opendir(path);

	for (struct dirent *e; d && !found && (e = readdir(d));) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		found = strcmp(target, want) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

static pid_t find_process(unsigned long inode)
{
	pid_t pid = 0;
	DIR *d = opendir("/proc");

	for (struct dirent *e; d && !pid && (e = readdir(d));) {
		int64_t n;

		if (str_to_i64(str_from(e->d_name), &n) && has_socket((pid_t)n, inode))
			pid = (pid_t)n;
	}
	if (d)
		closedir(d);
	return pid;
}

static void read_name(struct port_holder *h)
{
	CLEANUP(buf_release) struct buf text = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)h->pid);
	buf_init(&text, LINE_MAX_BYTES);
	if (file_read(path, &text, NULL) < 0)
		return;
	struct str name = str_trim(buf_str(&text));

	snprintf(h->name, sizeof(h->name), "%.*s", STR_ARG(name));
}

static void read_run(struct port_holder *h)
{
	CLEANUP(buf_release) struct buf text = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)h->pid);
	buf_init(&text, ENVIRON_MAX_BYTES);
	if (file_read(path, &text, NULL) < 0)
		return;
	for (struct str rest = buf_str(&text); rest.n > 0;) {
		struct str value = str_cut(&rest, '\0'), name = str_cut(&value, '=');

		if (str_is(name, "REGATTA_RUN"))
			snprintf(h->run, sizeof(h->run), "%.*s", STR_ARG(value));
		if (str_is(name, "REGATTA_NODE"))
			snprintf(h->node, sizeof(h->node), "%.*s", STR_ARG(value));
	}
}

bool port_holder_find(int port, const uint32_t *address, struct port_holder *ret)
{
	struct port_holder h = {0};
	unsigned long inode;

	if (!find_inode("/proc/self/net/tcp", port, address, &inode) &&
	    !find_inode("/proc/self/net/tcp6", port, address, &inode))
		return false;
	h.pid = find_process(inode);
	if (!h.pid)
		return false;
	read_name(&h);
	read_run(&h);
	*ret = h;
	return true;
}
