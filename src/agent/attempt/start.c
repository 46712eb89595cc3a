/* start - make what an attempt needs on disk and fork its shim. */
#include <errno.h>
#include <sys/stat.h>

#include "agent/attempt/attempt.h"
#include "agent/attempt/internal.h"
#include "agent/environ.h"
#include "agent/prepare.h"
#include "agent/shim/shim.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "link/layout.h"
#include "sys/child.h"

static int make_wakeup(int dirfd, struct err *err)
{
	if (mkfifoat(dirfd, SUPERVISOR_WAKEUP, 0600) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", SUPERVISOR_WAKEUP);
	return 0;
}

static int make_dir(struct attempt *at, const char *node_dir, int no, struct err *err)
{
	CLEANUP(freep) char *dir = attempt_dir(node_dir, no);

	if (no > 1 && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", dir);
	if (attempt_open_dir(at, node_dir, no, err) < 0 || spool_make(at->dirfd, err) < 0 ||
	    make_wakeup(at->dirfd, err) < 0)
		return -1;
	return attempt_watch_wakeup(at, err);
}

static int make_groups(struct attempt *at, uint64_t memory, struct err *err)
{
	at->no_groups = false;
	cgroup_make(&at->cg, memory > 0);
	return memory > 0 ? cgroup_limit_memory(&at->cg, memory, err) : 0;
}

static int launch(struct attempt *at, const char *node_dir, const struct message_start *m,
		  struct err *err)
{
	CLEANUP(freep) char *cwd = prepare_cwd(node_dir, m->cwd);
	CLEANUP(freep) char *file = NULL;
	CLEANUP(freep) char *fifo = path_join(at->dir, LAYOUT_METRICS_FIFO);
	CLEANUP(environ_freep) const char **env = environ_make(m, at->mark, fifo);
	struct shim_start s = {
		.dir = at->dir,
		.attempt = m->attempt,
		.boot_id = at->boot_id,
		.sync = !at->cfg->boot
				 [0], /* with a boot id a lost claim is noticed: see attempt_find */
		.argv = m->argv,
		.env = env,
		.cwd = cwd,
		.pty = m->pty,
		.cg = at->cg,
		.grace_ms = m->grace_ms,
		.deadline_ms = m->deadline_ms,
		.limits = at->cfg->limits,
	};

	if (child_find_command(m->argv[0], environ_get(env, "PATH"), cwd, &file, &s.unfit) == 0)
		s.file = file;
	return shim_fork(&s, &at->shim, err);
}

static int write_hosts(const char *node_dir, const char *name, const char *text, struct err *err)
{
	CLEANUP(freep) char *path = path_join(node_dir, name);

	if (!text[0])
		return 0;
	return file_write(path, str_from(text), 0600, err);
}

void attempt_start(struct attempt *at, const char *node_dir, const struct message_start *m)
{
	struct err err = {0};

	attempt_release(at);
	at->no = m->attempt;
	if (make_dir(at, node_dir, m->attempt, &err) < 0 ||
	    write_hosts(node_dir, LAYOUT_HOSTFILE, m->hostfile, &err) < 0 ||
	    write_hosts(node_dir, LAYOUT_MACHINEFILE, m->machinefile, &err) < 0 ||
	    make_groups(at, m->memory, &err) < 0) {
		attempt_give_up(at, &err);
		return;
	}
	attempt_hold_pipes(at);
	if (launch(at, node_dir, m, &err) < 0)
		attempt_give_up(at, &err);
}
