/* start - make the files of an attempt and fork its shim. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "agent/attempt/expand_start.h"
#include "agent/attempt/internal.h"
#include "agent/environ.h"
#include "agent/shim/shim.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/machine.h"

extern char **environ;

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
	if (attempt_open_dir(at, node_dir, no, err) < 0 ||
	    spool_make(at->dirfd, streams_count(at->processes), err) < 0 ||
	    make_wakeup(at->dirfd, err) < 0 || attempt_write_fence(at, err) < 0)
		return -1;
	return attempt_watch_wakeup(at, err);
}

static int make_groups(struct attempt *at, uint64_t memory, struct err *err)
{
	at->no_groups = false;
	cgroup_remove(&at->cg); /* one that an earlier attempt was killed in; see cgroup.used */
	cgroup_make(&at->cg, memory > 0);
	return memory > 0 ? cgroup_limit_memory(&at->cg, memory, err) : 0;
}

/* NULL-terminated: the environment of each process. */
static const char ***make_envs(const struct attempt *at, const struct message_start *m,
			       const struct start_texts *texts, bool contained)
{
	CLEANUP(freep) char *fifo = path_join(at->dir, LAYOUT_METRICS_FIFO);
	const char ***envs = xcalloc((size_t)at->processes + 1, sizeof(*envs));

	for (int i = 0; i < at->processes; i++) {
		struct message_start own = *m;

		if (texts->envs) {
			own.env = texts->envs[i].v;
			own.nenv = texts->envs[i].n;
		}
		envs[i] = environ_make(&own, at->mark, fifo,
				       contained	  ? ENVIRON_IMAGE
				       : at->cfg->own_env ? ENVIRON_OWN
							  : ENVIRON_FEW);
	}
	return envs;
}

static void envs_freep(const char ****envs)
{
	for (const char ***e = *envs; *e; e++)
		environ_freep(e);
	free(*envs);
}

/* What each process of the node runs. */
struct commands {
	const char *const **argvs, *const **envs;
	const struct cpus *cpus; /* NULL: all */
	const int *keep;	 /* descriptors of the shim */
	size_t nkeep;
};

static struct commands commands_new(const struct attempt *at, struct arena *a)
{
	size_t n = (size_t)at->processes;

	return (struct commands){.argvs = arena_array(a, const char *const *, n),
				 .envs = arena_array(a, const char *const *, n)};
}

/* Of the CPUs that the agent may use, for each process its own; NULL: there are not enough, or nothing to share. */
static const struct cpus *make_shares(int processes, struct arena *a)
{
	struct cpus all, *each = arena_array(a, struct cpus, (size_t)processes);

	if (processes < 2 || machine_gpus() > 0 || !cpus_allowed(&all))
		return NULL;
	for (int i = 0; i < processes; i++)
		if (!cpus_share(&all, processes, i, &each[i]))
			return NULL;
	return each;
}

static int fork_shim(struct attempt *at, const struct message_start *m, const struct commands *c,
		     struct err *err)
{
	CLEANUP(freep) char *file = NULL;
	struct shim_start s = {
		.dir = at->dir,
		.attempt = m->attempt,
		.boot_id = at->boot_id,
		.sync = !at->cfg->boot[0], /* with a boot id attempt_find notices a lost claim */
		.processes = at->processes,
		.argvs = c->argvs,
		.envs = c->envs,
		.cpus = c->cpus,
		.cwd = m->cwd,
		.isolation = {at->cfg->netns, at->cfg->hosts, at->cfg->node},
		.pty = m->pty,
		.cg = at->cg,
		.grace_ms = m->grace_ms,
		.deadline_ms = m->deadline_ms,
		.limits = at->cfg->limits,
		.keep = c->keep,
		.nkeep = c->nkeep,
	};

	if (child_find_command(c->argvs[0][0], environ_get(c->envs[0], "PATH"), m->cwd, &file,
			       &s.unfit) == 0)
		s.file = file;
	return shim_fork(&s, &at->shim, err);
}

const char *attempt_container_name(const struct attempt *at, int process, struct arena *a)
{
	return arena_printf(a, "regatta-%s-%s-%d-%d-%d-%.8s", at->cfg->run, at->cfg->node,
			    at->cfg->incarnation, at->no, process, at->cfg->mark);
}

/* Each process has a container of its own. */
static void contain(const struct attempt *at, const struct message_start *m,
		    const struct attempt_container *c, int process, struct commands *to,
		    struct arena *a)
{
	struct container_job j = {
		.record = &c->record,
		.name = attempt_container_name(at, process, a),
		.image = c->image,
		.workdir = c->workdir,
		.env = to->envs[process],
		.argv = m->argv,
		.memory = m->memory,
		.cpus = to->cpus ? cpus_text(&to->cpus[process], a) : NULL,
		.pty = m->pty,
		.uid = getuid(),
		.gid = getgid(),
	};

	memcpy(j.mounts, c->mounts, sizeof(j.mounts));
	to->argvs[process] = container_argv(&j, a);
	to->envs[process] = container_env(&j, (const char *const *)environ, a);
}

static int launch(struct attempt *at, const struct message_start *m,
		  const struct start_texts *texts, const struct attempt_container *c,
		  struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(envs_freep) const char ***envs = make_envs(at, m, texts, c != NULL);
	struct commands commands = commands_new(at, a);

	commands.keep = texts->keep;
	commands.nkeep = texts->nkeep;
	commands.cpus = m->bind ? make_shares(at->processes, a) : NULL;
	for (int i = 0; i < at->processes; i++) {
		commands.argvs[i] = m->argv;
		commands.envs[i] = envs[i];
		if (c)
			contain(at, m, c, i, &commands, a);
	}
	if (c && container_record_write(at->dirfd, LAYOUT_CONTAINER, &c->record, err) < 0)
		return -1;
	return fork_shim(at, m, &commands, err);
}

/* Make the directory of files for long values; all other files are in the node's directory. */
static int make_dir_of(const char *node_dir, const char *name, struct err *err)
{
	CLEANUP(freep) char *dir = path_join(node_dir, LAYOUT_LONG_VALUES);

	return strchr(name, '/') ? file_mkdir_p(dir, 0700, err) : 0;
}

static int write_files(const char *node_dir, const struct start_texts *texts, struct err *err)
{
	for (size_t i = 0; i < texts->nfiles; i++) {
		CLEANUP(freep) char *path = path_join(node_dir, texts->files[i].name);

		if (make_dir_of(node_dir, texts->files[i].name, err) < 0 ||
		    file_write(path, str_from(texts->files[i].text), 0600, err) < 0)
			return -1;
	}
	return 0;
}

void attempt_start(struct attempt *at, const char *node_dir, const struct message_start *m,
		   const struct start_texts *texts, const struct attempt_container *c)
{
	struct err err = {0};

	attempt_release(at);
	at->no = m->attempt;
	at->processes = m->processes > 1 ? m->processes : 1;
	if (make_dir(at, node_dir, m->attempt, &err) < 0 ||
	    write_files(node_dir, texts, &err) < 0 ||
	    make_groups(at, c ? 0 : m->memory, &err) < 0) {
		attempt_give_up(at, &err);
		return;
	}
	attempt_hold_pipes(at);
	if (launch(at, m, texts, c, &err) < 0)
		attempt_give_up(at, &err);
}
