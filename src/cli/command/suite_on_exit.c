#include "cli/command/suite_on_exit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/download.h"
#include "cli/command/suite_input.h"
#include "core/suite.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "sys/command_list.h"

#define CALL_MS 5000
#define REPORT_MS 300000
#define RENEW_MS (SUITE_CLAIM_MS / 6)

/* failed NULL: they are to run, or go on; else they have run. */
static int tell(struct api *api, const char *path, const char *client, const char *failed,
		struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct jsonw w;

	buf_init(&body, 4096);
	jsonw_init(&w, &body);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "client", client);
	if (failed) {
		jsonw_kbool(&w, "done", true);
		jsonw_kz(&w, "failed", failed);
	}
	jsonw_close(&w);
	return api_call(api, "POST", path, buf_str(&body), CALL_MS, NULL, err);
}

/* ---- the claim, repeated by a thread of its own while the commands run ---- */

struct renewal {
	struct api api;
	const char *path, *client;
	int64_t until_ms; /* of the claim, at the least */
	volatile int lost;
	int end; /* eventfd */
	pthread_t thread;
};

static void *renew(void *arg)
{
	struct renewal *r = arg;
	struct pollfd end = {.fd = r->end, .events = POLLIN};

	while (!r->lost && poll(&end, 1, RENEW_MS) == 0) {
		int64_t now = clock_boot_ms();
		struct err err = {0};

		if (tell(&r->api, r->path, r->client, NULL, &err) == 0)
			r->until_ms = now + SUITE_CLAIM_MS;
		else if (err.kind == ERR_CONFLICT || clock_boot_ms() + CALL_MS > r->until_ms)
			r->lost = 1;
	}
	return NULL;
}

static int renewal_start(struct renewal *r, struct api *api, struct err *err)
{
	r->end = eventfd(0, EFD_CLOEXEC);
	if (r->end < 0)
		return err_errno(err, errno, "eventfd");
	api_init_like(&r->api, api);
	int rc = pthread_create(&r->thread, NULL, renew, r);
	if (rc == 0)
		return 0;
	close(r->end);
	api_release(&r->api);
	return err_errno(err, rc, "start a thread");
}

static void renewal_end(struct renewal *r)
{
	uint64_t one = 1;

	while (write(r->end, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(r->thread, NULL);
	close(r->end);
	api_release(&r->api);
}

/* ---- the directory ---- */

/* The report is made for this, and copied. */
static int fetch_files(struct api *api, struct str id, const char *dir, struct err *err)
{
	static const char *const names[] = {"suite.toml", "summary.json", "table.csv",
					    "report.html"};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(close_fdp) int fd = -1;

	if (file_mkdir_p(dir, 0700, err) < 0)
		return -1;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	if (api_call(api, "GET", api_suite_path(a, id, "/report"), STR(""), REPORT_MS, NULL, err) <
	    0)
		return err_wrap(err, "report");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct download d = {.dir = fd, .name = names[i]};

		if (download_file(api,
				  api_suite_path(a, id, arena_printf(a, "/files/%s", names[i])), &d,
				  err) < 0)
			return -1;
	}
	return 0;
}

static const char *const *make_env(struct arena *a, const struct doc *suite, const char *dir)
{
	size_t n = 0;

	while (environ[n])
		n++;
	const char **env = arena_array(a, const char *, n + 4);
	for (size_t i = 0; i < n; i++)
		env[i] = environ[i];
	env[n++] = arena_printf(a, "REGATTA_SUITE=%.*s", STR_ARG(doc_str(suite, "id", STR(""))));
	env[n++] = arena_printf(a, "REGATTA_SUITE_DIR=%s", dir);
	env[n++] = arena_printf(a, "REGATTA_SUITE_STATE=%.*s",
				STR_ARG(doc_str(suite, "outcome", STR(""))));
	return env;
}

/* ---- all of it ---- */

static void run_commands(struct api *api, const struct suite_closer_here *closer,
			 const struct doc *suite, const char *dir, struct renewal *r)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *log = path_join(dir, "on_exit.log");
	const struct strs *commands = &closer->in->suite.runs.on_exit;
	struct command_list list = {.dir = closer->in->base_dir,
				    .log = log,
				    .commands = commands->v,
				    .n = commands->n,
				    .env = make_env(a, suite, dir),
				    .each_ms = SUITE_ON_EXIT_MS};
	const struct deadline d = deadline_in(-1, &r->lost);
	struct err err = {0};

	/* Without the files they run all the same: that is what on_exit promises. */
	if (fetch_files(api, doc_str(suite, "id", STR("")), dir, &err) < 0)
		cli_say("on_exit: the files of the suite are not here: %s", err.msg);
	command_list_run(&list, &d);
	if (list.done && tell(api, r->path, closer->client, list.failed, &err) == 0) {
		cli_say("on_exit has run here, in %s; its output is in %s", closer->in->base_dir,
			log);
		return;
	}
	cli_say("on_exit is run by the master: %s",
		list.done ? err.msg : "it has not heard of this client for too long");
}

int suite_on_exit(struct api *api, const struct suite_closer_here *closer, const struct doc *suite,
		  struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct str id = doc_str(suite, "id", STR(""));
	struct renewal r = {.path = api_suite_path(a, id, "/on_exit"),
			    .client = closer->client,
			    .until_ms = clock_boot_ms() + SUITE_CLAIM_MS};
	CLEANUP(freep) char *home = NULL;

	if (home_find(&home, err) < 0)
		return -1;
	if (tell(api, r.path, closer->client, NULL, err) < 0)
		return err->kind == ERR_CONFLICT ? 0 : -1;
	if (renewal_start(&r, api, err) < 0)
		return -1;
	run_commands(api, closer, suite,
		     arena_printf(a, "%s/" LAYOUT_SUITES "/%.*s", home, STR_ARG(id)), &r);
	renewal_end(&r);
	return 0;
}
