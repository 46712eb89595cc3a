#include "net/resolve.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

#include "base/alloc.h"
#include "base/deadline.h"
#include "base/err.h"
#include "sys/loop.h"

#define MAX_NAME 253
#define MAX_LABEL 63
#define BASE_FDS 8 /* descriptors for an event base, with some spare */
#define LOOK_MS 20 /* between two checks of deadline and stop flag */

/* A blocking resolution, with its own event base that runs until the answer or the deadline. */
struct lookup {
	struct event_base *base; /* of its own */
	struct evdns_base *dns;
	struct event *look;
	const struct deadline *deadline;
	struct err why; /* why it was given up */
	bool answered, closing;
	int result; /* EVUTIL_EAI_* */
	struct evutil_addrinfo *list;
};

static void keep_quiet(int is_warning, const char *text)
{
	(void)is_warning;
	(void)text;
}

static void quieten_evdns(void)
{
	evdns_set_log_fn(keep_quiet); /* it would write to stderr */
}

/* Check a name and copy it; *ret_absolute: it ended in a dot, which is removed. */
static int take_name(const char *host, char out[static MAX_NAME + 2], bool *ret_absolute,
		     struct err *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	size_t n = strlen(host);

	*ret_absolute = n > 1 && host[n - 1] == '.';
	if (*ret_absolute)
		n--;
	if (n == 0 || n > MAX_NAME)
		return err_set(err, ERR_INVALID, "'%.60s' is not the name of a host", host);
	memcpy(out, host, n);
	out[n] = '\0';
	for (const char *label = out; label;) {
		size_t len = strspn(label, allowed);

		if (len == 0 || len > MAX_LABEL || (label[len] && label[len] != '.'))
			return err_set(err, ERR_INVALID, "'%.60s' is not the name of a host", host);
		label = label[len] ? label + len + 1 : NULL;
	}
	return 0;
}

/* Set the options and read the files.  Without readable files: localhost, and a server on this host. */
static void read_files(struct evdns_base *dns, const struct resolve_options *o, bool absolute)
{
	/* A query is repeated after 1 s (resolv.conf may change that).  A and AAAA may go to different
	 * servers: after the first answer, wait long enough for the other query to be repeated to a live
	 * server, so that a dead server does not hide all IPv4 addresses. */
	evdns_base_set_option(dns, "timeout:", "1");
	evdns_base_set_option(dns, "attempts:", "5");
	evdns_base_set_option(dns, "getaddrinfo-allow-skew:", "5");
	evdns_base_resolv_conf_parse(dns,
				     DNS_OPTION_SEARCH | DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC,
				     o && o->resolv_conf ? o->resolv_conf : "/etc/resolv.conf");
	evdns_base_load_hosts(dns, o && o->hosts_file ? o->hosts_file : "/etc/hosts");
	if (absolute)
		evdns_base_search_clear(dns);
}

static void got_answer(int result, struct evutil_addrinfo *list, void *ctx)
{
	struct lookup *l = ctx;

	l->answered = true;
	l->result = result;
	l->list = list;
	if (!l->closing)
		event_base_loopbreak(l->base);
}

static void look_at_deadline(evutil_socket_t fd, short what, void *ctx)
{
	struct lookup *l = ctx;

	(void)fd;
	(void)what;
	if (deadline_check(l->deadline, "no name server answered", &l->why) < 0)
		event_base_loopbreak(l->base);
}

/* libevent aborts the process when it cannot open descriptors for an event base. */
static bool has_descriptors(void)
{
	int fds[BASE_FDS], n = 0;

	while (n < BASE_FDS && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fds[i]);
	return n == BASE_FDS;
}

/* -1: out of memory or descriptors. */
static int open_lookup(struct lookup *l, const struct resolve_options *o, bool absolute)
{
	struct event_config *config = has_descriptors() ? event_config_new() : NULL;
	const struct timeval often = {.tv_usec = LOOK_MS * 1000};

	if (config &&
	    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0)
		l->base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	l->dns = l->base ? evdns_base_new(l->base, 0) : NULL;
	l->look = l->dns ? event_new(l->base, -1, EV_PERSIST, look_at_deadline, l) : NULL;
	if (!l->look || event_add(l->look, &often) < 0)
		return -1;
	read_files(l->dns, o, absolute);
	return 0;
}

static void close_lookup(struct lookup *l)
{
	l->closing = true;
	if (l->look)
		event_free(l->look);
	if (l->dns) {
		/* Running queries fail now; their memory is freed in the next round of the base. */
		evdns_base_free(l->dns, 1);
		event_base_loop(l->base, EVLOOP_NONBLOCK);
	}
	if (l->list)
		evutil_freeaddrinfo(l->list);
	if (l->base)
		event_base_free(l->base);
}

static bool take_next(const struct evutil_addrinfo **from, int family, struct address *ret)
{
	const struct evutil_addrinfo *ai = *from;

	while (ai && ai->ai_family != family)
		ai = ai->ai_next;
	*from = ai ? ai->ai_next : NULL;
	if (!ai || ai->ai_addrlen > sizeof(ret->in6))
		return false;
	*ret = (struct address){.len = (socklen_t)ai->ai_addrlen};
	memcpy(&ret->sa, ai->ai_addr, ai->ai_addrlen);
	return true;
}

static size_t take_turns(const struct evutil_addrinfo *list, struct address *ret)
{
	const struct evutil_addrinfo *four = list, *six = list;
	size_t n = 0;

	while (n < RESOLVE_MAX && (four || six)) {
		if (take_next(&four, AF_INET, &ret[n]))
			n++;
		if (n < RESOLVE_MAX && take_next(&six, AF_INET6, &ret[n]))
			n++;
	}
	return n;
}

static int judge(int result, const struct evutil_addrinfo *list, const char *host,
		 struct address *ret, size_t *ret_n, struct err *err)
{
	switch (result) {
	case 0:
		*ret_n = take_turns(list, ret);
		if (*ret_n > 0)
			return 0;
		return err_set(err, ERR_UNAVAILABLE, "resolve '%s': it has no address", host);
	case EVUTIL_EAI_NONAME:
	case EVUTIL_EAI_NODATA:
		return err_set(err, ERR_UNAVAILABLE, "resolve '%s': nobody knows this name", host);
	default:
		return err_set(err, ERR_UNAVAILABLE, "resolve '%s': the name servers fail (%s)",
			       host, evutil_gai_strerror(result));
	}
}

static void prepare_evdns(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, quieten_evdns);
}

int resolve_host(const struct resolve_options *o, const char *host, const struct deadline *d,
		 struct address ret[static RESOLVE_MAX], size_t *ret_n, struct err *err)
{
	struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct lookup l = {.deadline = d};
	char name[MAX_NAME + 2];
	bool absolute;

	if (address_ip(ret, host, 0)) {
		*ret_n = 1;
		return 0;
	}
	if (take_name(host, name, &absolute, err) < 0)
		return -1;
	prepare_evdns();
	int rc = open_lookup(&l, o, absolute);

	if (rc < 0) {
		err_set(err, ERR_UNAVAILABLE, "resolve '%s': no memory or descriptors left", host);
	} else {
		evdns_getaddrinfo(l.dns, name, NULL, &hints, got_answer, &l);
		if (!l.answered)
			event_base_dispatch(l.base);
		rc = l.answered ? judge(l.result, l.list, host, ret, ret_n, err)
				: err_set(err, l.why.kind, "resolve '%s': %s", host, l.why.msg);
	}
	close_lookup(&l);
	return rc;
}

/* ---- on a loop ---- */

struct resolving {
	struct loop *loop;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *request; /* running; else NULL */
	struct loop_timer *timer;		   /* the time limit; then it calls fn */
	char host[MAX_NAME + 2];
	struct address all[RESOLVE_MAX];
	size_t n;
	struct err why;
	resolved_fn fn; /* NULL: resolving_free was called */
	void *ctx;
};

static void resolving_release(void *ctx)
{
	struct resolving *r = ctx;

	if (r->dns)
		evdns_base_free(r->dns, 0);
	free(r);
}

static void tell(void *ctx)
{
	struct resolving *r = ctx;

	if (r->request) {
		err_set(&r->why, ERR_TIMEOUT, "resolve '%s': no name server answered", r->host);
		r->n = 0;
	}
	r->fn(r->ctx, r->all, r->n, &r->why);
}

static void resolved(int result, struct evutil_addrinfo *list, void *ctx)
{
	struct resolving *r = ctx;

	r->request = NULL;
	if (r->fn) {
		judge(result, list, r->host, r->all, &r->n, &r->why);
		loop_timer_set(r->timer, 0);
	}
	if (list)
		evutil_freeaddrinfo(list);
	if (!r->fn) /* evdns is on the call stack: free r later */
		loop_soon(r->loop, resolving_release, r);
}

struct resolving *resolve_start(struct loop *l, const struct resolve_options *o, const char *host,
				int64_t limit_ms, resolved_fn fn, void *ctx)
{
	struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct resolving *r = xcalloc(1, sizeof(*r));
	bool absolute;

	*r = (struct resolving){.loop = l, .fn = fn, .ctx = ctx};
	r->timer = loop_timer_new(l, tell, r);
	loop_timer_set(r->timer, 0);
	if (address_ip(r->all, host, 0)) {
		r->n = 1;
		return r;
	}
	if (take_name(host, r->host, &absolute, &r->why) < 0)
		return r;
	prepare_evdns();
	r->dns = evdns_base_new(loop_event_base(l), 0);
	if (!r->dns) {
		err_set(&r->why, ERR_UNAVAILABLE, "resolve '%s': no memory or descriptors left",
			host);
		return r;
	}
	read_files(r->dns, o, absolute);
	loop_timer_set(r->timer, limit_ms);
	struct evdns_getaddrinfo_request *request =
		evdns_getaddrinfo(r->dns, r->host, NULL, &hints, resolved, r);

	if (request) /* NULL: answered already */
		r->request = request;
	return r;
}

struct resolving *resolving_free(struct resolving *r)
{
	if (!r)
		return NULL;
	r->timer = loop_timer_free(r->timer);
	r->fn = NULL;
	if (r->request)
		evdns_getaddrinfo_cancel(r->request); /* calls resolved(), which frees r */
	else
		loop_soon(r->loop, resolving_release, r);
	return NULL;
}
