#include "cli/client/target.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "cli/client/api.h"
#include "cli/client/contexts.h"
#include "driver/driver.h"
#include "driver/master_way.h"
#include "net/address.h"
#include "net/http_client.h"
#include "net/tls.h"

/* TCP keepalive: a master that is cut off is noticed after about 30 s. */
#define KEEP_IDLE_S 15
#define KEEP_INTERVAL_S 5
#define KEEP_COUNT 3

struct target *target_free(struct target *t)
{
	if (!t)
		return NULL;
	free(t->home);
	free(t->name);
	free(t->pin);
	free(t->way);
	if (t->token)
		explicit_bzero(t->token, strlen(t->token));
	free(t->token);
	free(t);
	return NULL;
}

static bool is_loopback(const char *host)
{
	struct address a;

	if (strcmp(host, "localhost") == 0)
		return true;
	if (!address_ip(&a, host, 1))
		return false;
	if (a.sa.sa_family == AF_INET)
		return (ntohl(a.in4.sin_addr.s_addr) >> 24) == 127;
	return IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr);
}

static int check_url(const char *url, struct http_url *ret, struct err *err)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return err_set(err, ERR_INVALID,
			       "'%.100s' is no URL of a master: https://HOST:PORT", url);
	if (http_url_parse(ret, str_from(url), false, err) < 0)
		return err_wrap(err, "'%.100s'", url);
	if (ret->user.n || (ret->path.n && !str_is(ret->path, "/")))
		return err_set(
			err, ERR_INVALID,
			"'%.100s': the URL of a master is https://HOST:PORT and nothing more", url);
	if (!ret->tls && !is_loopback(ret->host))
		return err_set(err, ERR_INVALID,
			       "'%.100s': plain http is for this machine only; use https", url);
	ret->user = ret->path = (struct str){0};
	return 0;
}

static int check_secrets(const struct http_url *u, const char *pin, const char *token,
			 struct err *err)
{
	if (pin && !u->tls)
		return err_set(err, ERR_INVALID, "a pin is for https");
	if (pin && !tls_pin_ok(pin))
		return err_set(
			err, ERR_INVALID,
			"'%.60s' is no pin: it is sha256// and 44 characters, as the master prints it",
			pin);
	for (const char *p = token; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, ERR_INVALID,
				       "the token has characters that no token can have");
	return *token ? 0 : err_set(err, ERR_INVALID, "the token is empty");
}

int target_new(const char *name, const char *url, const char *pin, const char *token,
	       struct target **ret, struct err *err)
{
	struct http_url u = {.tls = true};
	bool by_way = master_way_is(url);
	char *home;

	if (pin && !*pin)
		pin = NULL;
	if ((!by_way && check_url(url, &u, err) < 0) || check_secrets(&u, pin, token, err) < 0 ||
	    home_find(&home, err) < 0)
		return -1;
	struct target *t = xcalloc(1, sizeof(*t));
	*t = (struct target){
		.home = home,
		.name = xstrdup(name),
		.pin = pin ? xstrdup(pin) : NULL,
		.token = xstrdup(token),
		.way = by_way ? xstrdup(url) : NULL,
		.url = u,
		.remote = true,
	};
	*ret = t;
	return 0;
}

int target_find_own(struct target **ret, struct err *err)
{
	char *home;

	if (home_find(&home, err) < 0)
		return -1;
	struct target *t = xcalloc(1, sizeof(*t));
	t->home = home;
	*ret = t;
	return 0;
}

static int by_name(const char *home, const char *name, struct target **ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct context c;

	if (context_read(home, name, a, &c, err) < 0)
		return -1;
	if (target_new(name, c.url, c.pin, c.token, ret, err) < 0)
		return err_wrap(err, "context '%s'", name);
	return 0;
}

/* The context of this home that has the URL; NULL if none has. */
static const char *context_with(const char *home, const struct http_url *u, struct arena *a)
{
	const char **names;
	struct http_url own;
	struct context c;
	struct err ignored;
	size_t n;

	if (context_list(home, a, &names, &n, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (context_read(home, names[i], a, &c, &ignored) == 0 &&
		    check_url(c.url, &own, &ignored) == 0 && own.tls == u->tls &&
		    own.port == u->port && strcmp(own.host, u->host) == 0)
			return names[i];
	return NULL;
}

/* REGATTA_TOKEN and REGATTA_PIN, or the context that has the URL. */
static int by_url(const char *home, const char *url, struct target **ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *token = getenv("REGATTA_TOKEN");
	struct http_url u;

	if (token && *token)
		return target_new(url, url, getenv("REGATTA_PIN"), token, ret, err);
	if (check_url(url, &u, err) < 0)
		return -1;
	const char *name = context_with(home, &u, a);
	if (name)
		return by_name(home, name, ret, err);
	return err_set(err, ERR_INVALID,
		       "master %.80s: REGATTA_TOKEN (and REGATTA_PIN) must be set, or give it a "
		       "name: 'regatta context add NAME URL'",
		       url);
}

int target_find(const char *wanted, struct target **ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *home = NULL;
	const char *from = "--master";

	if (home_find(&home, err) < 0)
		return -1;
	if (!wanted) {
		wanted = getenv("REGATTA_MASTER");
		wanted = wanted && *wanted ? wanted : NULL;
		from = "REGATTA_MASTER";
	}
	if (!wanted) {
		if (home_check_owner(home, err) < 0 || context_current(home, a, &wanted, err) < 0)
			return -1;
		from = "'regatta context use'";
	}
	if (strcmp(wanted, CONTEXT_LOCAL) == 0)
		return target_find_own(ret, err);
	int rc = strstr(wanted, "://") ? by_url(home, wanted, ret, err)
				       : by_name(home, wanted, ret, err);
	return rc < 0 && err->kind == ERR_NOT_FOUND ? err_wrap(err, "%s", from) : rc;
}

/* Its provider passes requests on to it, for whoever has the credentials. */
static int dial_way(const struct target *t, int timeout_ms, const volatile int *stop,
		    struct http_client **ret, struct err *err)
{
	const struct deadline d = deadline_in(timeout_ms, stop);
	struct driver_master at = {0};

	snprintf(at.url, sizeof(at.url), "%s", t->way);
	snprintf(at.pin, sizeof(at.pin), "%s", t->pin ? t->pin : "");
	snprintf(at.token, sizeof(at.token), "%s", t->token);
	return master_way_dial(&at, NULL, &d, ret, err);
}

static const char *either(const char *name, const char *other)
{
	const char *v = getenv(name);

	return v && *v ? v : getenv(other);
}

static void keep_alive(int fd)
{
	int on = 1, idle = KEEP_IDLE_S, interval = KEEP_INTERVAL_S, count = KEEP_COUNT;
	unsigned unsent_ms = 1000 * (KEEP_IDLE_S + KEEP_INTERVAL_S * KEEP_COUNT);

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof(unsent_ms));
}

static int failed(const struct target *t, struct err *err)
{
	if (err->kind == ERR_TIMEOUT)
		err->kind = ERR_UNAVAILABLE;
	if (t->way)
		return err_wrap(err, "master '%.60s'", t->name);
	if (err->kind == ERR_DENIED && t->pin) {
		struct err why = *err;
		err_set(err, ERR_DENIED,
			"%.180s: another server answers there, or the master has a new key",
			why.msg);
	} else if (err->kind == ERR_DENIED && strstr(err->msg, "TLS: ")) {
		err_set(err, ERR_DENIED,
			"its certificate is not of a CA that is trusted here: give its pin ('regatta "
			"master' prints it) to 'regatta context add'");
	}
	return err_wrap(err, "master '%.60s'", t->name);
}

int target_dial(const struct target *t, int timeout_ms, const volatile int *stop,
		struct http_client **ret, struct err *err)
{
	struct http_target to = {
		.host = t->url.host,
		.port = t->url.port,
		.tls = {.mode = !t->url.tls ? TLS_OFF
				: t->pin    ? TLS_PIN
					    : TLS_CA,
			.pin = t->pin},
		.proxy = {.http_proxy = getenv("http_proxy"),
			  .https_proxy = either("https_proxy", "HTTPS_PROXY"),
			  .no_proxy = either("no_proxy", "NO_PROXY")},
		.token = t->token,
		.stop = stop,
	};

	if (t->way ? dial_way(t, timeout_ms, stop, ret, err) < 0
		   : http_client_open(&to, timeout_ms, ret, err) < 0)
		return failed(t, err);
	keep_alive(http_client_fd(*ret));
	return 0;
}
