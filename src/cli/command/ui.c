/* regatta ui - a one-time link to the dashboard. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/browser_gateway.h"
#include "cli/client/target.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/session.h"
#include "net/address.h"
#include "net/http_client.h"

#define CALL_MS 10000
#define NARROW_MS (12 * 60 * 60 * 1000) /* as long as a session of a browser */
#define OPENER "xdg-open"

extern char **environ;

/* Only where there is a screen; the link is printed anyway, so a failure is not reported. */
static void open_browser(const char *url)
{
	const char *display = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	char program[] = OPENER;
	CLEANUP(freep) char *link = strdup(url);
	char *argv[] = {program, link, NULL};
	posix_spawn_file_actions_t quiet;
	posix_spawnattr_t attr;
	sigset_t all;
	pid_t pid;

	if ((!display || !*display) && (!wayland || !*wayland))
		return;
	posix_spawn_file_actions_init(&quiet);
	for (int fd = 0; fd <= 2; fd++)
		posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", fd ? 1 : 0, 0);
	posix_spawn_file_actions_addclosefrom_np(&quiet, 3);
	/* xdg-open may become the browser itself: it is not waited for, and Ctrl-C here must not reach it. */
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&attr, &all);
	(void)posix_spawnp(&pid, OPENER, &quiet, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&quiet);
}

/* The master's URL may be its own loopback address: the link gets the address that this
 * command used.  The certificate of a pinned master is for its numeric address, not for a name. */
static struct str link_from_here(const struct api *api, struct str url, struct arena *a)
{
	const struct http_url *to = &api->target->url;
	const char *path = memmem(url.p, url.n, "/login?", 7);
	struct address peer = {.len = sizeof(peer.in6)};
	CLEANUP(buf_release) struct buf b = {0};
	char host[ADDRESS_TEXT] = "";

	if (!path)
		return url;
	if (api->target->pin && api->http &&
	    getpeername(http_client_fd(api->http), &peer.sa, &peer.len) == 0 &&
	    address_port(&peer) == to->port)
		address_text(&peer, host);
	buf_init(&b, 4096);
	buf_addz(&b, to->tls ? "https://" : "http://");
	http_url_authority(&b, host[0] ? host : to->host, to->port, to->tls, false);
	buf_addstr(&b, (struct str){path, url.n - (size_t)(path - url.p)});
	return arena_str(a, buf_str(&b));
}

static void write_answer(struct doc *d, struct str url, struct arena *a, struct buf *answer)
{
	doc_set(a, d, STR("url"), doc_new_str(a, url));
	buf_reset(answer);
	doc_to_json(d, answer);
	buf_addc(answer, '\n');
}

/* The answer is printed, and on a terminal the browser is opened. */
static int show_link(const struct cli_call *c, struct str url, struct str json)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		buf_addstr(&out, json);
		return cli_print(&out);
	}
	text_add_escaped(&out, url);
	buf_addc(&out, '\n');
	int code = cli_print(&out);

	if (isatty(STDOUT_FILENO)) {
		cli_say("this link works once, within two minutes");
		if (!call_flag(c, "print"))
			open_browser(arena_str(a, url).p);
	}
	return code;
}

/* A token of the master with a smaller scope than the context's; it is of no use after the command. */
static int narrow(struct api *api, const char *scope, struct target **ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf answer = {0};
	const struct target *t = api->target;
	const char *body = arena_printf(
		a, "{\"scope\":\"%s\",\"name\":\"regatta ui\",\"valid_ms\":%d}", scope, NARROW_MS);
	struct doc *d;

	buf_init(&answer, API_MAX_ANSWER);
	if (api_call(api, "POST", "/api/v1/tokens", str_from(body), CALL_MS, &answer, err) < 0 ||
	    reply_parse(buf_str(&answer), a, &d, err) < 0)
		return -1;
	return target_new(t->name, t->way, t->pin, doc_str(d, "token", STR("")).p, ret, err);
}

/* Of a master that no browser reaches: this command passes on what the browser asks. */
static int serve_browser(const struct cli_call *c, struct api *api, const char *run,
			 const char *scope)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf url = {0};
	struct browser_gateway *g = NULL;
	struct target *narrowed = NULL;
	struct err err;

	buf_init(&url, CLI_MAX_TEXT);
	if ((strcmp(scope, "admin") != 0 && narrow(api, scope, &narrowed, &err) < 0) ||
	    browser_gateway_open(narrowed ? narrowed : api->target, run, &g, &err) < 0) {
		target_free(narrowed);
		return api_fail(api, &err);
	}
	browser_gateway_link(g, &url);
	int code = show_link(
		c, buf_str(&url),
		str_from(arena_printf(a, "{\"url\":\"%.*s\",\"scope\":\"%s\",\"valid_ms\":%d}\n",
				      (int)url.n, url.p, scope, SESSION_CODE_MS)));

	if (code == 0) {
		cli_say("the master of this run is in a cluster: the page is served from here until "
			"Ctrl-C");
		browser_gateway_run(g);
	}
	browser_gateway_free(g);
	target_free(narrowed);
	return code;
}

int command_ui(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf answer = {0};
	CLEANUP(buf_release) struct buf out = {0};
	CLEANUP(freep) char *run = NULL;
	const char *scope = call_text(c, "scope");
	struct doc *d;
	struct err err;

	buf_init(&answer, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	buf_printf(&out, "{\"scope\":\"%s\"}", scope ? scope : "admin");
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (call_arg(c, 0) && api_pick_run(&api, call_arg(c, 0), &run, &err) < 0)
		return api_fail(&api, &err);
	if (api.target->way)
		return serve_browser(c, &api, run ? run : "", scope ? scope : "admin");
	if (api_call(&api, "POST", "/api/v1/login", buf_str(&out), CALL_MS, &answer, &err) < 0 ||
	    reply_parse(buf_str(&answer), a, &d, &err) < 0)
		return api_fail(&api, &err);
	struct str url = doc_str(d, "url", STR(""));
	if (api_remote(&api)) {
		url = link_from_here(&api, url, a);
		write_answer(d, url, a, &answer);
	}
	return show_link(c, url, buf_str(&answer));
}
