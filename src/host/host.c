/* The daemon's main program: lock its directory, serve the link, and leave at a signal or a refusal of
 * the master.  The nodes stay. */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/rand.h"
#include "host/internal.h"
#include "link/layout.h"
#include "net/digest.h"
#include "sys/files_limit.h"
#include "sys/loop.h"
#include "sys/machine.h"
#include "sys/worker.h"

#define ID_FILE "id"
#define ID_BYTES 16
#define MAX_FILES 65536

static void on_stop_signal(void *ctx, int signo)
{
	struct host_daemon *h = ctx;

	log_info("signal %d: leaving; jobs on this host go on", signo);
	host_link_leave(h, "the host's daemon was asked to stop");
}

/* The daemon's only child is the forkserver. */
static void on_child(void *ctx, int signo)
{
	(void)ctx;
	(void)signo;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int take_lock(struct host_daemon *h, struct err *err)
{
	CLEANUP(freep) char *path = path_join(h->dir, LAYOUT_LOCK);
	char pid[32];

	h->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (h->lock < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (flock(h->lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(err, ERR_CONFLICT,
					 "another 'regatta agent' of this machine uses '%s': stop it, or "
					 "choose another directory (--dir)",
					 h->dir)
			       : err_errno(err, errno, "lock '%s'", path);
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(h->lock, 0) < 0 || pwrite(h->lock, pid, strlen(pid), 0) < 0)
		return err_errno(err, errno, "write '%s'", path);
	return 0;
}

/* A copy of the host's directory on another machine has another one.  The id itself is nobody's business: the
 * master gets a digest of it. */
static void find_machine(struct host_daemon *h)
{
	char id[MACHINE_ID_LEN + 1], text[64];
	uint8_t digest[SHA256_BYTES];

	if (!machine_id(id))
		return;
	int n = snprintf(text, sizeof(text), "regatta host %s", id);

	sha256_of(text, (size_t)n, digest);
	hex_encode(digest, HOST_MACHINE_LEN / 2, h->machine);
}

/* Made once: the master recognises the host by it. */
static int load_id(struct host_daemon *h, struct err *err)
{
	CLEANUP(freep) char *path = path_join(h->dir, ID_FILE);
	CLEANUP(buf_release) struct buf text = {0};
	uint8_t bytes[ID_BYTES];

	buf_init(&text, sizeof(h->id));
	if (file_exists(path)) {
		if (file_read(path, &text, err) < 0)
			return -1;
		snprintf(h->id, sizeof(h->id), "%.*s", STR_ARG(str_trim(buf_str(&text))));
		if (strlen(h->id) == 2 * ID_BYTES)
			return 0;
	}
	rand_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), h->id);
	return file_write_atomic(path, str_from(h->id), 0600, true, err);
}

int host_check_name(const char *name, struct err *err)
{
	if (message_host_name_ok(name))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"'%.80s' cannot be the name of a host (at most %d letters, digits, '.', '_' and "
		"'-'): choose one with --name",
		name, MESSAGE_HOST_NAME_MAX - 1);
}

static int begin(struct host_daemon *h, struct err *err)
{
	if (host_check_name(h->o->name, err) < 0 || file_mkdir_p(h->dir, 0700, err) < 0 ||
	    take_lock(h, err) < 0 || load_id(h, err) < 0)
		return -1;
	proc_boot_id(h->boot_id);
	find_machine(h);
	files_limit_raise(MAX_FILES);
	h->loop = loop_new();
	h->worker = workers_new(h->loop, "nodes", 1);
	loop_on_signal(h->loop, SIGTERM, on_stop_signal, h);
	loop_on_signal(h->loop, SIGINT, on_stop_signal, h);
	loop_on_signal(h->loop, SIGCHLD, on_child, h);
	return host_link_init(h, err);
}

static void end(struct host_daemon *h)
{
	h->worker = workers_free(h->worker);
	host_link_release(h);
	h->loop = loop_free(h->loop);
	close_fdp(&h->lock);
	free(h->dir);
}

int host_main(const struct host_options *o)
{
	struct host_daemon h = {.o = o, .lock = -1, .dir = path_clean(o->dir)};
	struct err err = {0};

	umask(077);
	list_init(&h.asks);
	prctl(PR_SET_NAME, "regatta-host");
	signal(SIGPIPE, SIG_IGN);
	log_setup(2, "host", LOG_INFO);
	if (begin(&h, &err) < 0) {
		log_error("%s", err.msg);
		h.exit_code = err_exit_code(err.kind);
	} else {
		host_nodes_tidy(&h);
		loop_run(h.loop);
	}
	end(&h);
	return h.exit_code;
}
