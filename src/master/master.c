/* Start and stop of a master; it also stops when it is idle. */
#include "master/master.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/rand.h"
#include "link/conn.h"
#include "link/layout.h"
#include "master/agents.h"
#include "master/api/api.h"
#include "master/api/auth.h"
#include "master/api/watch.h"
#include "master/execs.h"
#include "master/clock.h"
#include "master/handover.h"
#include "master/hosts.h"
#include "master/internal.h"
#include "master/listen.h"
#include "master/api/slices.h"
#include "master/api/sse.h"
#include "master/live_run.h"
#include "master/queue.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/suite_carrier.h"
#include "master/suites.h"
#include "master/upkeep/exports.h"
#include "master/upkeep/hooks.h"
#include "master/upkeep/feed.h"
#include "master/upkeep/leftovers.h"
#include "master/upkeep/metric_push.h"
#include "master/upkeep/own_machine.h"
#include "master/upkeep/records.h"
#include "master/upkeep/reports.h"
#include "master/upkeep/space.h"
#include "master/upkeep/trash.h"
#include "net/http_server.h"
#include "store/logfile.h"
#include "sys/files_limit.h"
#include "sys/loop.h"
#include "sys/pools.h"

#define IDLE_CHECK_MS 1000
#define DISK_THREADS 6
#define MAX_FILES 65536

struct workers *master_disk(struct master *m)
{
	return pools_get(m->pools, "disk", DISK_THREADS);
}

static void on_tick(void *ctx)
{
	struct master *m = ctx;
	int64_t now = master_now(m);
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		struct live_run *lr = value;
		if (!lr->ended && lr->core->next_ms && lr->core->next_ms <= now)
			run_event(lr, &(struct event){.kind = EV_TICK});
	}
	master_set_tick(m);
}

static void on_idle_check(void *ctx)
{
	struct master *m = ctx;
	size_t active = runs_active(m);

	trash_sweep(m->trash, !active);
	space_check(m->space);
	if (active || suites_active(m->suites) || watch_streams(m->watch) || sse_viewers(m->sse) ||
	    pools_pending(m->pools) || reports_waiting(m->reports) || exports_waiting(m->exports) ||
	    hooks_waiting(m->hooks) || metric_push_waiting(m->metric_push) ||
	    hosts_connected(m->hosts))
		m->last_busy_ms = master_now(m);
	auth_tick(m->auth);
	hosts_tick(m->hosts);
	own_machine_check(m->own_machine);
	if (!active && m->stopping) {
		loop_stop(m->loop);
		return;
	}
	if (m->background && master_now(m) - m->last_busy_ms >= m->idle_ms) {
		log_info("idle: leaving");
		loop_stop(m->loop);
		return;
	}
	loop_timer_set(m->idle, m->stopping		     ? 20
				: m->idle_ms < IDLE_CHECK_MS ? m->idle_ms
							     : IDLE_CHECK_MS);
}

static void on_stop_signal(void *ctx, int signo)
{
	struct master *m = ctx;

	log_info("signal %d: leaving; runs go on with their agents", signo);
	loop_stop(m->loop);
}

/* Reaps children.  The only child is the forkserver, which is started again when it is needed;
 * the end of an agent is seen on its connection. */
static void on_child(void *ctx, int signo)
{
	(void)ctx;
	(void)signo;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* The unix socket of the API is opened last: clients that find it find a master that is ready. */
static int listen_all(struct master *m, const struct master_options *o, struct err *err)
{
	if (listen_http(m, o->listen, err) < 0)
		return -1;
	if (listen_unix(m->loop, m->home, LAYOUT_LINK_SOCKET, agent_accept, m->agents,
			&m->link_listener, err) < 0)
		return -1;
	return http_server_listen_unix(m->http, m->home, LAYOUT_API_SOCKET, err);
}

static int64_t idle_ms(void)
{
	int64_t ms;

	return master_idle_time(getenv("REGATTA_IDLE"), &ms) ? ms : MASTER_IDLE_MS;
}

/* For a master in the foreground: log lines go to master.log as well as to standard error.  (The
 * standard error of a master in the background is master.log already.) */
static void keep_log(struct master *m)
{
	CLEANUP(freep) char *path = path_join(m->home, LAYOUT_MASTER_LOG);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		log_also(fd);
	else
		log_warn("cannot write '%s'", path);
}

/* Marks the directory with FS_TOPDIR_FL: ext4 then spreads its children over the disk.  Side by
 * side, the inodes that a removed run has just freed would slow down the next run, because ext4
 * avoids recently freed inodes. */
static int make_runs_dir(const struct master *m, struct err *err)
{
	CLEANUP(freep) char *dir = path_join(m->home, LAYOUT_RUNS);
	int flags;

	if (file_mkdir_p(dir, 0700, err) < 0)
		return -1;
	CLEANUP(close_fdp) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
		flags |= FS_TOPDIR_FL;
		ioctl(fd, FS_IOC_SETFLAGS,
		      &flags); /* other file systems refuse the flag and do not need it */
	}
	return 0;
}

/* A master on a machine of a run acts for the install that made the machine. */
static int take_install(const struct master *m, struct err *err)
{
	const char *install = getenv("REGATTA_INSTALL");

	if (!install || !*install)
		return 0;
	if (strlen(install) != STORE_INSTALL_DIGITS ||
	    strspn(install, "0123456789abcdef") != STORE_INSTALL_DIGITS)
		return err_set(err, ERR_INVALID, "REGATTA_INSTALL: '%.40s' is not an install",
			       install);
	return store_set_install(m->store, install, err);
}

/* A master whose key and token were chosen by whoever made its machine finds them in a directory that it may only
 * read. */
static int take_identity(const struct master *m, struct err *err)
{
	static const char *const names[] = {"token", "tls.key"};
	const char *from = getenv("REGATTA_IDENTITY");

	for (size_t i = 0; from && *from && i < sizeof(names) / sizeof(names[0]); i++) {
		CLEANUP(freep) char *path = path_join(from, names[i]);
		CLEANUP(freep) char *to = path_join(m->home, names[i]);
		CLEANUP(buf_release) struct buf text = {0};

		buf_init(&text, 65536);
		if (file_read(path, &text, err) < 0 ||
		    file_write_atomic(to, buf_str(&text), 0600, false, err) < 0)
			return err_wrap(err, "REGATTA_IDENTITY");
	}
	return 0;
}

int master_open(struct master *m, const struct master_options *o, struct err *err)
{
	m->home = path_clean(o->home);
	m->background = o->background;
	m->idle_ms = idle_ms();
	m->started_ms = clock_wall_ms();
	files_limit_raise(MAX_FILES);
	m->logs = logfile_pool_new(listen_max_logs());
	m->loop = loop_new(); /* before the services, whose timers are of this loop */
	m->agents = agents_new(m);
	list_init(&m->rounds);
	m->runs = map_new();
	m->imports = map_new();
	if (store_open(m->home, &m->store, err) < 0 || take_install(m, err) < 0 ||
	    take_identity(m, err) < 0)
		return -1;
	if (make_runs_dir(m, err) < 0)
		return -1;
	master_clock_start(m);
	m->last_busy_ms = master_now(m);

	m->pools = pools_new(m->loop);
	m->hosts = hosts_new(m);
	struct http_limits limits = {.max_connections = listen_max_connections()};
	m->http = http_server_new(m->loop, &limits, &api_handler, m);
	m->slices = slices_new(m->loop);
	m->sse = sse_new(m);
	m->watch = watch_new(m->loop);
	m->execs = execs_new(m);
	m->suites = suites_new(m);
	m->feeder = feeder_new(m->loop, m->store);
	m->reports = reports_new(m);
	m->exports = exports_new(m);
	m->hooks = hooks_new(m);
	m->metric_push = metric_push_new(m);
	m->own_machine = own_machine_new(m);
	m->records = records_new(m);
	m->space = space_new(m);
	m->trash = trash_new(m);
	m->tick = loop_timer_new(m->loop, on_tick, m);
	m->idle = loop_timer_new(m->loop, on_idle_check, m);
	loop_on_signal(m->loop, SIGTERM, on_stop_signal, m);
	loop_on_signal(m->loop, SIGINT, on_stop_signal, m);
	loop_on_signal(m->loop, SIGCHLD, on_child, m);
	loop_after_round(m->loop, round_end, m);
	if (!m->background)
		keep_log(m);
	m->auth = auth_new(m, err);
	if (!m->auth)
		return -1;
	if (runs_resume(m, err) < 0)
		return err_wrap(err, "load the active runs of '%s'", m->home);
	if (suites_resume(m->suites, err) < 0)
		return err_wrap(err, "load the active suites of '%s'", m->home);
	leftovers_sweep(m);
	if (hosts_load(m->hosts, err) < 0)
		return err_wrap(err, "load the hosts of '%s'", m->home);
	if (listen_all(m, o, err) < 0)
		return -1;
	records_check(m->records);
	exports_check(m->exports);
	hooks_check(m->hooks);
	handover_check(m);
	carriers_check(m);
	queue_update(m);
	return 0;
}

void master_close(struct master *m)
{
	struct str id;
	void *value;

	/* Waits for the calls that workers have begun; the next master makes the others. */
	m->pools = pools_free(m->pools);
	m->feeder = feeder_free(m->feeder);
	if (m->tick && !m->exit_code)
		round_end(m);
	m->auth = auth_free(m->auth);
	m->sse = sse_free(m->sse);
	m->watch = watch_free(m->watch);
	m->execs = execs_free(m->execs);
	m->slices = slices_free(m->slices);
	if (m->runs) {
		m->agents = agents_free(m->agents);
		for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
			live_run_free(value);
		map_free(m->runs);
	}
	map_free(m->imports);
	suites_free(m->suites);
	m->hosts = hosts_free(m->hosts);
	reports_free(m->reports);
	exports_free(m->exports);
	hooks_free(m->hooks);
	metric_push_free(m->metric_push);
	own_machine_free(m->own_machine);
	records_free(m->records);
	space_free(m->space);
	trash_free(m->trash);
	http_server_free(m->http);
	listen_close(m);
	listener_free(m->link_listener);
	loop_timer_free(m->tick);
	loop_timer_free(m->idle);
	loop_free(m->loop);
	store_close(m->store);
	logfile_pool_free(m->logs);
	free(m->home);
}

int master_main(const struct master_options *o)
{
	struct master m = {0};
	struct err err = {0};

	umask(077);
	prctl(PR_SET_NAME, "regatta-master"); /* by default the name is that of the file, "exe" */
	signal(SIGPIPE, SIG_IGN);
	log_setup(2, "master", LOG_INFO);
	if (master_open(&m, o, &err) < 0) {
		log_error("%s", err.msg);
		m.exit_code = err_exit_code(err.kind);
	} else {
		log_info("regatta %s on %s, pid %d", REGATTA_VERSION, m.home, (int)getpid());
		loop_timer_set(m.idle, m.idle_ms < IDLE_CHECK_MS ? m.idle_ms : IDLE_CHECK_MS);
		round_end(&m);
		announce_ready(&m, o->announce);
		loop_run(m.loop);
	}
	master_close(&m);
	return m.exit_code;
}
