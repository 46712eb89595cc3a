/*
 * local.node - a node on this machine: a directory and an agent process.
 *
 * create makes what is missing: the directory, its agent.json, a running agent.  It is the same call
 * for a new node and for one whose agent was killed.  destroy is done only when nothing of the node
 * is found: no agent, no shim, no process in the job's groups or with the node's mark, no container, no
 * network, no directory.
 */
#include "driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "base/vec.h"
#include "driver/local/internal.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "sys/cgroup.h"
#include "sys/container.h"
#include "sys/files_limit.h"
#include "sys/forkserver.h"
#include "sys/proctree.h"

#define CONFIG_MAX (64 * 1024)
#define STATUS_MAX (64 * 1024)
#define MARK_BYTES (FORKSERVER_MARK_LEN / 2)
#define LOST "lost"    /* instead of a boot id: the node's directory was lost and made again */
#define LEAVING_MS 500 /* how long an agent that has cleaned up may take to exit */
#define KILL_MS 2000   /* after that the outcome is HELD, and the core calls destroy again */
#define KILL_PAUSE_MS 2
#define CONTAINERS_MS 20000 /* the same for the removal of containers */

extern char **environ;

/* Variables of the master's environment that agents get; a prefix ends with '*'. */
static const char *const passed[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"SHELL",
	"LANG",
	"LC_*",
	"TZ",
	"TMPDIR",
	"TERM",
	"LD_LIBRARY_PATH",
	"PYTHONPATH",
	"VIRTUAL_ENV",
	"CONDA_*",
	"CUDA_*",
	"NVIDIA_*",
	/* for what they fetch and run */
	"DOCKER_*",
	"CONTAINER*",
	"XDG_*",
	"SSL_CERT_FILE",
	"http_proxy",
	"https_proxy",
	"HTTPS_PROXY",
	"no_proxy",
	"NO_PROXY",
};

struct node {
	char *dir; /* of the node */
	char *run_dir;
	char *home;	    /* of the master or host, with its link socket, log and trash */
	char *master, *pin; /* URL and pin of a master on another machine; NULL: it is in home */
	char *base_dir;	    /* of the job file */
	char *output_dir;
	char mark[2 * MARK_BYTES + 1];
	char boot[PROC_BOOT_ID]; /* id of the boot in which it was made, or LOST */
	struct cgroup cg;
	struct local_net net;
};

static void node_release(struct node *n)
{
	free(n->dir);
	free(n->run_dir);
	free(n->home);
	free(n->master);
	free(n->pin);
	free(n->base_dir);
	free(n->output_dir);
}

/* ---- agent.json ---- */

static char *in_node(const struct node *n, const char *name)
{
	return path_join(n->dir, name);
}

static void copy_text(char *out, size_t size, struct str s)
{
	if (s.n < size)
		snprintf(out, size, "%.*s", STR_ARG(s));
}

static struct str first_line(const struct buf *text)
{
	struct str rest = buf_str(text);

	return str_cut(&rest, '\n');
}

/* Read the spec, and agent.json of an earlier call; without agent.json the node has no mark yet.
 * ERR_INVALID: the spec has no directories.  Another error: agent.json exists and cannot be read (too
 * few descriptors, for example), so that the node's processes cannot be found. */
static int node_load(const struct driver_row *row, struct node *n, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = NULL;
	struct buf text;

	*n = (struct node){0};
	if (json_parse(str_from(row->spec), a, &d, err) < 0)
		return err_wrap(err, "spec of node '%s'", row->name);
	struct str run_dir = doc_str(d, "run_dir", STR("")), home = doc_str(d, "home", STR(""));
	if (!run_dir.n || !home.n)
		return err_set(err, ERR_INVALID, "the spec of node '%s' has no run_dir or no home",
			       row->name);
	n->dir = xasprintf("%s/%s" LAYOUT_NODE_SUFFIX, run_dir.p, row->name);
	n->run_dir = xstrdup(run_dir.p);
	n->home = xstrdup(home.p);
	local_net_read(d, &n->net);
	if (doc_get(d, "master")) {
		n->master = xstrdup(doc_str(d, "master", STR("")).p);
		n->pin = xstrdup(doc_str(d, "pin", STR("")).p);
	}
	n->base_dir =
		xstrdup(doc_str(d, "base_dir", STR("/")).p); /* plans of older versions have none */
	n->output_dir = xasprintf("%s/" LAYOUT_OUTPUTS "/%s", run_dir.p, row->name);
	CLEANUP(freep) char *path = in_node(n, LAYOUT_AGENT_CONFIG);

	buf_init(&text, CONFIG_MAX);
	int rc = file_exists(path) ? file_read(path, &text, err) : 0;

	if (rc == 0 && text.n > 0 && json_parse(first_line(&text), a, &d, NULL) == 0) {
		copy_text(n->mark, sizeof(n->mark), doc_str(d, "mark", STR("")));
		copy_text(n->boot, sizeof(n->boot), doc_str(d, "boot", STR("")));
		copy_text(n->cg.unified, sizeof(n->cg.unified), doc_str(d, "cgroup", STR("")));
		copy_text(n->cg.memory, sizeof(n->cg.memory), doc_str(d, "cgroup_memory", STR("")));
	}
	buf_release(&text);
	return rc < 0 ? err_wrap(err, "node '%s'", row->name) : 0;
}

static void make_identity(const struct driver_row *row, struct node *n)
{
	uint8_t bytes[MARK_BYTES];
	char name[256];

	rand_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), n->mark);
	/* With the mark in its name, because another installation may have the same run. */
	snprintf(name, sizeof(name), "regatta.%.80s.%.80s.%.8s", row->run, row->name, n->mark);
	cgroup_place(name, &n->cg);
	/*
	 * With the boot id stored, a job's claim need not be synced: after a crash of the machine the
	 * node has another boot id, and a job that may have run is not started again.  If agent.json was
	 * lost too (the row has an id already), LOST gives the same result.
	 */
	if (row->id[0])
		snprintf(n->boot, sizeof(n->boot), "%s", LOST);
	else
		proc_boot_id(n->boot);
}

static bool is_isolated(const struct node *n)
{
	return n->net.address[0];
}

/* Paths of the master's files if the master is on this machine, else of this host's cache. */
static void put_places(const struct node *n, struct jsonw *w)
{
	CLEANUP(freep) char *blobs = path_join(n->home, n->master ? LAYOUT_CACHE : LAYOUT_BLOBS);

	if (n->master) {
		jsonw_kz(w, "cache", blobs);
		return;
	}
	jsonw_kz(w, "base_dir", n->base_dir);
	jsonw_kz(w, "blobs", blobs);
	jsonw_kz(w, "output_dir", n->output_dir);
}

static void put_config(const struct driver_row *row, const struct node *n, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", row->run);
	jsonw_kz(&w, "node", row->name);
	jsonw_kz(&w, "token", row->token);
	jsonw_kint(&w, "incarnation", row->incarnation);
	if (n->master) {
		jsonw_kz(&w, "master", n->master);
		jsonw_kz(&w, "pin", n->pin);
	} else {
		jsonw_kz(&w, "link_dir", n->home);
		jsonw_kz(&w, "link_name", LAYOUT_LINK_SOCKET);
		jsonw_kz(&w, "home", n->home);
		jsonw_kbool(&w, "revive", true);
	}
	jsonw_kz(&w, "mark", n->mark);
	jsonw_kz(&w, "boot", n->boot);
	jsonw_kz(&w, "cgroup", n->cg.unified);
	jsonw_kz(&w, "cgroup_memory", n->cg.memory);
	if (is_isolated(n))
		jsonw_kbool(&w, "netns", true);
	put_places(n, &w);
	jsonw_kint(&w, "proto", LINK_PROTO);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

static int write_config(const struct driver_row *row, const struct node *n, struct err *err)
{
	CLEANUP(freep) char *path = in_node(n, LAYOUT_AGENT_CONFIG);
	struct buf before, now;
	int rc = 0;

	buf_init(&before, CONFIG_MAX);
	buf_init(&now, CONFIG_MAX);
	put_config(row, n, &now);
	if (now.overflow)
		rc = err_set(err, ERR_INVALID, "the paths of node '%s' are too long", row->name);
	else if (file_read(path, &before, NULL) < 0)
		rc = file_write(path, buf_str(&now), 0600, err);
	else if (!str_eq(first_line(&before), first_line(&now)))
		/* Atomic: the old agent's processes can only be found by the mark in this file. */
		rc = file_write_atomic(path, buf_str(&now), 0600, false, err);
	buf_release(&before);
	buf_release(&now);
	return rc;
}

/* ---- the agent ---- */

/* The running agent, pid 0 if there is none.  The lock ends with the process, so the pid is not stale. */
static struct proc_id living_agent(const struct node *n)
{
	CLEANUP(freep) char *path = in_node(n, LAYOUT_AGENT_CONFIG);
	struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fcntl(fd, F_GETLK, &held) < 0 || held.l_type == F_UNLCK || held.l_pid <= 0)
		return (struct proc_id){0};
	struct proc_id id = proc_id_of(held.l_pid);

	return proc_alive(id) ? id : (struct proc_id){0};
}

/* The agent that was started for this row, if it has not taken its lock yet. */
static struct proc_id newborn_agent(const struct driver_row *row, const struct node *n)
{
	CLEANUP(freep) char *entry = xasprintf("%s=%s", PROC_MARK, n->mark);
	int64_t pid;

	if (!n->mark[0] || !str_to_i64(str_from(row->id), &pid) || pid <= 0 || pid > INT32_MAX ||
	    !proc_carries((pid_t)pid, entry))
		return (struct proc_id){0};
	return proc_id_of((pid_t)pid);
}

static struct proc_id find_agent(const struct driver_row *row, const struct node *n)
{
	struct proc_id agent = living_agent(n);

	return agent.pid > 0 ? agent : newborn_agent(row, n);
}

static bool is_passed(const char *entry)
{
	size_t name = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		size_t n = strlen(passed[i]);

		if (passed[i][n - 1] == '*' ? name >= n - 1 && strncmp(entry, passed[i], n - 1) == 0
					    : name == n && strncmp(entry, passed[i], n) == 0)
			return true;
	}
	return false;
}

/* Made once: the environment of agents does not change while the master runs. */
static struct forkserver *the_forkserver(const struct node *n)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct forkserver *forkserver;

	pthread_mutex_lock(&lock);
	if (!forkserver) {
		CLEANUP(freep) const char **env = NULL;
		size_t count = 0, kept = 0;

		while (environ[count])
			count++;
		env = xcalloc(count + 1, sizeof(*env));
		for (size_t i = 0; i < count; i++)
			if (is_passed(environ[i]))
				env[kept++] = environ[i];
		forkserver = forkserver_new(n->home, env);
	}
	pthread_mutex_unlock(&lock);
	return forkserver;
}

static int spawn_agent(const struct node *n, pid_t *ret_pid, struct err *err)
{
	CLEANUP(freep) char *log = path_join(n->home, LAYOUT_AGENTS_LOG);
	struct forkserver_child child = {.mark = n->mark, .arg = n->dir, .log = log};

	return forkserver_fork(the_forkserver(n), &child, ret_pid, err);
}

static void set_id(struct driver_row *row, pid_t pid)
{
	snprintf(row->id, sizeof(row->id), "%d", (int)pid);
}

static int make_network(const struct driver_row *row, const struct node *n, struct err *err)
{
	return is_isolated(n) ? local_net_make(row, &n->net, n->dir, n->run_dir, err) : 0;
}

static int remove_network(const struct driver_row *row, const struct node *n, struct err *err)
{
	return is_isolated(n) ? local_net_remove(row, n->dir, err) : 0;
}

/* A refused create is not followed by a destroy, so it must leave nothing. */
static void undo_create(const struct node *n)
{
	CLEANUP(freep) char *config = in_node(n, LAYOUT_AGENT_CONFIG);
	CLEANUP(freep) char *hosts = in_node(n, LAYOUT_HOSTS_FILE);

	unlink(config);
	unlink(hosts);
	rmdir(n->dir);
}

/* Make everything that an agent needs at its start. */
static int make_place(const struct driver_row *row, const struct node *n, struct err *err)
{
	if (file_mkdir_p(n->dir, 0700, err) < 0 || write_config(row, n, err) < 0)
		return -1;
	return make_network(row, n, err);
}

static enum outcome node_create(struct driver_row *row)
{
	CLEANUP(node_release) struct node n;
	pid_t pid;

	if (node_load(row, &n, &row->err) < 0)
		return row->err.kind == ERR_INVALID ? OUTCOME_REFUSED : OUTCOME_UNSURE;
	struct proc_id agent = find_agent(row, &n);

	if (agent.pid > 0) {
		set_id(row, agent.pid);
		files_limit_restore(agent.pid);
		return OUTCOME_DONE;
	}
	bool is_new = !n.mark[0];

	if (is_new)
		make_identity(row, &n);
	bool has_place = make_place(row, &n, &row->err) == 0;

	if (!has_place || spawn_agent(&n, &pid, &row->err) < 0) {
		bool undone = !is_new || remove_network(row, &n, NULL) == 0;
		/* Code 0: the forkserver did not answer, and may have forked an agent. */
		if (is_new && (!has_place || row->err.code != 0))
			undo_create(&n);
		err_wrap(&row->err, "node '%s'", row->name);
		return undone ? OUTCOME_REFUSED : OUTCOME_UNSURE;
	}
	set_id(row, pid);
	files_limit_restore(pid);
	return OUTCOME_DONE;
}

static enum outcome node_observe(struct driver_row *row)
{
	CLEANUP(node_release) struct node n;

	if (node_load(row, &n, &row->err) < 0)
		return OUTCOME_UNSURE;
	row->identity_checked = true; /* the node can only be on this machine */
	struct proc_id agent = find_agent(row, &n);

	if (agent.pid > 0) {
		set_id(row, agent.pid);
		return OUTCOME_DONE;
	}
	return file_exists(n.dir) ? OUTCOME_BROKEN : OUTCOME_ABSENT;
}

static enum outcome node_find(struct driver_row *row)
{
	CLEANUP(node_release) struct node n;
	enum outcome now = node_observe(row);

	if (now != OUTCOME_BROKEN && now != OUTCOME_ABSENT)
		return now;
	/* A create that was killed may have left a network, which needs a destroy. */
	if (node_load(row, &n, &row->err) < 0)
		return OUTCOME_UNSURE;
	return is_isolated(&n) && local_net_is_there(row, n.dir) ? OUTCOME_DONE : OUTCOME_ABSENT;
}

/* ---- destroy ---- */

/* The recorded processes (shim, job) of an attempt that are alive. */
static void recorded_procs(const char *path, struct proc_list *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct buf text;

	buf_init(&text, STATUS_MAX);
	struct str rest = file_read(path, &text, NULL) == 0 ? buf_str(&text) : STR("");

	while (rest.p && rest.n > 0) {
		struct str line = str_cut(&rest, '\n');
		struct proc_info p;
		struct doc *d;

		if (json_parse(line, a, &d, NULL) < 0)
			continue;
		struct proc_id id = {(pid_t)doc_int(d, "pid", 0), (uint64_t)doc_int(d, "start", 0)};

		if (proc_alive(id) && proc_read(id.pid, &p)) {
			*vec_push(out) = p;
			proc_descendants(id.pid, out);
		}
	}
	buf_release(&text);
}

/* The first attempt is in the node's directory, later ones have subdirectories: see agent/agent.h. */
static void recorded_attempts(const struct node *n, struct proc_list *out)
{
	CLEANUP(freep) char *first = in_node(n, LAYOUT_STATUS);
	CLEANUP(closedirp) DIR *d = opendir(n->dir);
	const struct dirent *e;

	recorded_procs(first, out);
	while (d && (e = readdir(d))) {
		CLEANUP(freep) char *dir = in_node(n, e->d_name);
		CLEANUP(freep) char *path = path_join(dir, LAYOUT_STATUS);

		if (layout_attempt_no(e->d_name))
			recorded_procs(path, out);
	}
}

/* All processes of the node. */
static void list_procs(const struct node *n, struct proc_list *out)
{
	struct proc_id agent = living_agent(n);
	struct proc_info p;

	if (agent.pid > 0 && proc_read(agent.pid, &p))
		*vec_push(out) = p;
	recorded_attempts(n, out);
	cgroup_procs(&n->cg, out);
	if (n->mark[0]) {
		CLEANUP(freep) char *entry = xasprintf("%s=%s", PROC_MARK, n->mark);

		proc_with_env(entry, true, out);
	}
}

static bool said_clean(const struct node *n)
{
	CLEANUP(freep) char *path = in_node(n, LAYOUT_AGENT_CONFIG);
	struct buf text;
	bool clean;

	buf_init(&text, CONFIG_MAX);
	clean = file_read(path, &text, NULL) == 0 &&
		str_ends(buf_str(&text), STR("\n" LAYOUT_AGENT_CLEAN));
	buf_release(&text);
	return clean;
}

/* Has a released agent recorded that the job is gone, and exited?  Waits LEAVING_MS for it. */
static bool left_clean(const struct node *n)
{
	struct proc_id agent = living_agent(n);

	if (agent.pid > 0) {
		CLEANUP(close_fdp) int fd = proc_open(agent);
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (fd >= 0)
			poll(&p, 1, LEAVING_MS);
		agent = living_agent(n);
	}
	return agent.pid == 0 && said_clean(n) && !cgroup_populated(&n->cg);
}

static bool is_over(const struct driver_row *row)
{
	return row->deadline && deadline_check(row->deadline, "", NULL) < 0;
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/*
 * Kill all processes of the node.  0: none is left; otherwise the pid of a survivor.  No process must
 * be found twice in a row, because a process in execve has no environment, and so no mark.
 */
static pid_t kill_everybody(const struct driver_row *row, const struct node *n)
{
	int64_t until = clock_boot_ms() + KILL_MS;
	int clean = 0;

	for (;;) {
		CLEANUP(proc_list_release) struct proc_list l = {0};

		list_procs(n, &l);
		clean = l.n == 0 && !cgroup_populated(&n->cg) ? clean + 1 : 0;
		if (clean == 2)
			return 0;
		if (clean == 0 && (clock_boot_ms() >= until || is_over(row)))
			return l.n > 0 ? l.v[0].pid : -1;
		cgroup_kill(&n->cg);
		proc_kill(&l);
		pause_ms(KILL_PAUSE_MS);
	}
}

/* Move the directory to the trash, which the master empties when it is idle.  Removing files at once would
 * slow down the next runs: ext4 takes long to find an inode that was not just freed. */
static int put_away(const struct driver_row *row, const struct node *n, struct err *err)
{
	CLEANUP(freep) char *trash = path_join(n->home, LAYOUT_TRASH);
	CLEANUP(freep) char *to = xasprintf("%s/%s.%s.%s", trash, row->run, row->name, n->mark);

	if (rename(n->dir, to) == 0)
		return 0;
	if (errno == ENOENT && file_mkdir_p(trash, 0700, NULL) == 0 && rename(n->dir, to) == 0)
		return 0;
	return file_remove_tree(n->dir, err);
}

static enum outcome without_network(struct driver_row *row, const struct node *n)
{
	if (remove_network(row, n, &row->err) == 0)
		return OUTCOME_DONE;
	err_wrap(&row->err, "node '%s'", row->name);
	return OUTCOME_HELD;
}

/* Containers are no processes of the node: they may outlive all of these. */
static int remove_containers(const struct driver_row *row, const struct node *n, struct err *err)
{
	CLEANUP(freep) char *path = in_node(n, LAYOUT_CONTAINER);
	struct deadline d = deadline_in(CONTAINERS_MS, NULL);
	struct container_record record;
	bool ignored = false;

	if (!file_exists(path))
		return 0;
	if (row->deadline)
		d = deadline_within(row->deadline, CONTAINERS_MS);
	if (container_record_read(AT_FDCWD, path, &record, err) < 0 ||
	    container_remove(&record, &d, &ignored, err) < 0)
		return err_wrap(err, "node '%s'", row->name);
	return 0;
}

static enum outcome node_destroy(struct driver_row *row)
{
	CLEANUP(node_release) struct node n;

	if (node_load(row, &n, &row->err) < 0)
		return OUTCOME_HELD;
	if (!file_exists(n.dir))
		return without_network(row, &n);
	pid_t left = left_clean(&n) ? 0 : kill_everybody(row, &n);

	if (left != 0) {
		err_set(&row->err, ERR_UNAVAILABLE, "node '%s': process %d is still alive",
			row->name, (int)left);
		return OUTCOME_HELD;
	}
	if (remove_containers(row, &n, &row->err) < 0)
		return OUTCOME_HELD;
	if (!cgroup_remove(&n.cg)) {
		err_set(&row->err, ERR_UNAVAILABLE, "node '%s': its cgroup cannot be removed yet",
			row->name);
		return OUTCOME_HELD;
	}
	if (without_network(row, &n) != OUTCOME_DONE)
		return OUTCOME_HELD;
	if (put_away(row, &n, &row->err) < 0) {
		err_wrap(&row->err, "node '%s'", row->name);
		return OUTCOME_HELD;
	}
	return OUTCOME_DONE;
}

const struct driver local_node_driver = {
	.kind = "local.node",
	.pool = "local",
	.create = node_create,
	.find = node_find,
	.observe = node_observe,
	.destroy = node_destroy,
};
