/* regatta master - run the user's master in the foreground, or stop it. */
#include "master/master.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define SHUTDOWN_MS 30000
#define EXIT_MS                                                                                    \
	(10 * 60 *                                                                                 \
	 1000) /* for the exit: with --cancel it comes after the grace periods of the runs */

static int print_stopped(const struct cli_call *c, bool stopped, int64_t pid, int64_t active)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct jsonw w;

	if (c->output == OUTPUT_TABLE) {
		if (!stopped)
			cli_say("no master is running");
		else if (active > 0)
			cli_say("master %" PRId64 " stopped; %" PRId64
				" run%s on until %s lease ends, any command starts a master that takes over",
				pid, active, active == 1 ? " goes" : "s go",
				active == 1 ? "its" : "their");
		else
			cli_say("master %" PRId64 " stopped", pid);
		return 0;
	}
	buf_init(&out, 4096);
	jsonw_init(&w, &out);
	jsonw_open(&w, '{');
	jsonw_kbool(&w, "stopped", stopped);
	if (stopped) {
		jsonw_kint(&w, "pid", pid);
		jsonw_kint(&w, "runs_active", active);
	}
	jsonw_close(&w);
	buf_addc(&out, '\n');
	return cli_print(&out);
}

/* Waits until the process is gone, not only until it has agreed to exit. */
static int wait_for_exit(int pidfd, int64_t pid, struct err *err)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int rc;

	if (pidfd < 0)
		return 0; /* it had exited before pidfd_open() */
	do
		rc = poll(&p, 1, EXIT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return err_set(err, ERR_TIMEOUT, "master %" PRId64 " has not left after 10 minutes",
			       pid);
	return rc < 0 ? err_errno(err, errno, "wait for master %" PRId64, pid) : 0;
}

static int stop_master(const struct cli_call *c, struct api *api, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	struct doc *version, *answer;

	buf_init(&json, API_MAX_ANSWER);
	if (api_get_doc(api, "/api/v1/version", a, &version, err) < 0)
		return -1;
	int64_t pid = doc_int(version, "pid", 0);
	CLEANUP(close_fdp) int pidfd = pid > 0 && pid <= INT32_MAX ? pidfd_open((pid_t)pid, 0) : -1;
	struct str body =
		call_flag(c, "cancel") ? STR("{\"cancel\":true}") : STR("{\"cancel\":false}");
	/* The master may exit before its answer arrives. */
	if (api_call(api, "POST", "/api/v1/shutdown", body, SHUTDOWN_MS, &json, err) < 0 &&
	    !api_lost(err))
		return -1;
	int64_t active = json.n && reply_parse(buf_str(&json), a, &answer, err) == 0
				 ? doc_int(answer, "runs_active", 0)
				 : doc_int(version, "runs_active", 0);
	if (wait_for_exit(pidfd, pid, err) < 0)
		return -1;
	return print_stopped(c, true, pid, call_flag(c, "cancel") ? 0 : active);
}

static int command_stop(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	struct err err;

	if (api_open(&api, false, &err) < 0)
		return err.kind == ERR_UNAVAILABLE ? print_stopped(c, false, 0, 0) : cli_fail(&err);
	int code = stop_master(c, &api, &err);
	return code < 0 ? api_fail(&api, &err) : code;
}

int command_master(const struct cli_call *c)
{
	CLEANUP(freep) char *home = NULL;
	struct err err;

	if (call_flag(c, "stop")) {
		if (!call_flag(c, "listen") && !call_flag(c, "background"))
			return command_stop(c);
		cli_say("master: --stop goes with --cancel only");
		return 2;
	}
	if (call_flag(c, "cancel")) {
		cli_say("master: --cancel goes with --stop");
		return 2;
	}
	if (home_find(&home, &err) < 0 || file_mkdir_p(home, 0700, &err) < 0)
		return cli_fail(&err);
	struct master_options o = {
		.home = home,
		.listen = call_text(c, "listen"),
		.background = call_flag(c, "background"),
	};
	if (!o.background)
		o.announce = c->output == OUTPUT_JSON	  ? ANNOUNCE_JSON
			     : isatty(STDOUT_FILENO) == 1 ? ANNOUNCE_LINES
							  : ANNOUNCE_NOTHING;
	return master_main(&o);
}
