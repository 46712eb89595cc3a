/* start - make the files of an attempt and fork its shim. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/attempt/attempt.h"
#include "agent/attempt/expand_start.h"
#include "agent/attempt/internal.h"
#include "agent/environ.h"
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
	    make_wakeup(at->dirfd, err) < 0 || attempt_write_fence(at, err) < 0)
		return -1;
	return attempt_watch_wakeup(at, err);
}

static int make_groups(struct attempt *at, uint64_t memory, struct err *err)
{
	at->no_groups = false;
	cgroup_make(&at->cg, memory > 0);
	return memory > 0 ? cgroup_limit_memory(&at->cg, memory, err) : 0;
}

static int launch(struct attempt *at, const struct message_start *m, struct err *err)
{
	CLEANUP(freep) char *file = NULL;
	CLEANUP(freep) char *fifo = path_join(at->dir, LAYOUT_METRICS_FIFO);
	CLEANUP(environ_freep) const char **env = environ_make(m, at->mark, fifo);
	struct shim_start s = {
		.dir = at->dir,
		.attempt = m->attempt,
		.boot_id = at->boot_id,
		.sync = !at->cfg->boot[0], /* with a boot id attempt_find notices a lost claim */
		.argv = m->argv,
		.env = env,
		.cwd = m->cwd,
		.isolation = {at->cfg->netns, at->cfg->hosts, at->cfg->node},
		.pty = m->pty,
		.cg = at->cg,
		.grace_ms = m->grace_ms,
		.deadline_ms = m->deadline_ms,
		.limits = at->cfg->limits,
	};

	if (child_find_command(m->argv[0], environ_get(env, "PATH"), m->cwd, &file, &s.unfit) == 0)
		s.file = file;
	return shim_fork(&s, &at->shim, err);
}

/* Make the directory of files for long values; all other files are in the node's directory. */
static int make_dir_of(const char *node_dir, const char *name, struct err *err)
{
	CLEANUP(freep) char *dir = path_join(node_dir, LAYOUT_LONG_VALUES);

	return strchr(name, '/') ? file_mkdir_p(dir, 0700, err) : 0;
}

static int write_files(const char *node_dir, const struct start_files *files, struct err *err)
{
	for (size_t i = 0; i < files->n; i++) {
		CLEANUP(freep) char *path = path_join(node_dir, files->v[i].name);

		if (make_dir_of(node_dir, files->v[i].name, err) < 0 ||
		    file_write(path, str_from(files->v[i].text), 0600, err) < 0)
			return -1;
	}
	return 0;
}

void attempt_start(struct attempt *at, const char *node_dir, const struct message_start *m,
		   const struct start_files *files)
{
	struct err err = {0};

	attempt_release(at);
	at->no = m->attempt;
	if (make_dir(at, node_dir, m->attempt, &err) < 0 ||
	    write_files(node_dir, files, &err) < 0 || make_groups(at, m->memory, &err) < 0) {
		attempt_give_up(at, &err);
		return;
	}
	attempt_hold_pipes(at);
	if (launch(at, m, &err) < 0)
		attempt_give_up(at, &err);
}
