/*
 * The TCP side of the master.
 *
 * Without --listen it listens on the loopback address only, with plain HTTP: on the port of the
 * previous master of this home, else on the first free port from HTTP_PORT on.  If no port is free
 * the master runs without TCP.  With --listen it uses TLS with its own key, which clients know by
 * its pin; agents dial the same port, with an ALPN name of their own (docs/adr/0012).  On a loopback
 * address it speaks plain HTTP as well, for browsers (docs/adr/0013).
 */
#include "master/listen.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/layout.h"
#include "master/agents.h"
#include "master/hosts.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "net/address.h"
#include "net/http_server.h"
#include "net/tls.h"

#define HTTP_PORT 5436 /* the port of the tool that regatta replaced */
#define HTTP_LAST_PORT 5499
#define PORT_FILE "port"
#define MAX_CONNECTIONS 4096
#define FILES_PER_NODE 1 /* its connection */
#define LOGS_PER_NODE 3	 /* open at the same time only as long as listen_max_logs() allows it */
#define FILES_PER_HOST 1
#define FILES_OWN 64 /* database, sockets, files that workers open briefly, some clients */

int listen_max_connections(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur / 2 >= MAX_CONNECTIONS)
		return MAX_CONNECTIONS;
	return r.rlim_cur < 4 ? 1 : (int)(r.rlim_cur / 2);
}

int listen_max_logs(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur / 4 >= INT_MAX)
		return INT_MAX;
	return r.rlim_cur < 4 ? 1 : (int)(r.rlim_cur / 4);
}

static int64_t nodes_of_active_runs(const struct master *m)
{
	int64_t n = 0;
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;
		if (!lr->ended)
			n += lr->plan.crew.n;
	}
	return n;
}

static int check_files(int64_t nodes, int64_t hosts, const char *advice, struct err *err)
{
	int64_t logs = LOGS_PER_NODE * nodes, max_logs = listen_max_logs();
	int64_t need = FILES_OWN + FILES_PER_NODE * nodes + FILES_PER_HOST * hosts +
		       (logs < max_logs ? logs : max_logs);
	char and_hosts[40] = "";
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || need <= (int64_t)r.rlim_cur ||
	    r.rlim_cur == RLIM_INFINITY)
		return 0;
	if (hosts)
		snprintf(and_hosts, sizeof(and_hosts), " and %lld hosts", (long long)hosts);
	return err_set(
		err, ERR_QUOTA,
		"%lld nodes%s need %lld open files, and the master may have %lld (ulimit -n): %s",
		(long long)nodes, and_hosts, (long long)need, (long long)r.rlim_cur, advice);
}

int listen_check_files(const struct master *m, int nodes, struct err *err)
{
	return check_files(
		nodes_of_active_runs(m) + nodes, hosts_connected(m->hosts),
		"use fewer nodes, or 'regatta master --stop' and start the master with a higher limit",
		err);
}

int listen_check_files_of_found(const struct master *m, struct err *err)
{
	return check_files(nodes_of_active_runs(m), 0, "raise the limit and start the master again",
			   err);
}

int listen_check_host(const struct master *m, struct err *err)
{
	return check_files(nodes_of_active_runs(m), hosts_connected(m->hosts) + 1,
			   "start the master again with a higher limit", err);
}

static int parse_listen(const char *text, char *addr, size_t size, int *ret_port, struct err *err)
{
	const char *colon = strrchr(text, ':');
	int64_t port;

	if (!colon || colon == text || (size_t)(colon - text) >= size ||
	    !str_to_i64(str_from(colon + 1), &port) || port < 0 || port > 65535)
		return err_set(err, ERR_INVALID,
			       "--listen '%s': expected ADDRESS:PORT, e.g. 127.0.0.1:5436", text);
	snprintf(addr, size, "%.*s", (int)(colon - text), text);
	if (addr[0] == '[' && addr[strlen(addr) - 1] == ']') {
		addr[strlen(addr) - 1] = '\0';
		memmove(addr, addr + 1, strlen(addr));
	}
	*ret_port = (int)port;
	return 0;
}

static bool is_loopback(const char *addr)
{
	return strncmp(addr, "127.", 4) == 0 || strcmp(addr, "::1") == 0;
}

static void put_url(char *out, size_t size, bool tls, const char *name, int port)
{
	bool v6 = strchr(name, ':') != NULL;

	snprintf(out, size, "%s://%s%s%s:%d", tls ? "https" : "http", v6 ? "[" : "", name,
		 v6 ? "]" : "", port);
}

/* Sets the URL for browsers of this machine, and the one for hosts and other machines, if they can
 * reach this one. */
static void set_url(struct master *m, const char *addr, int port)
{
	int any = strcmp(addr, "0.0.0.0") == 0 ? AF_INET : strcmp(addr, "::") == 0 ? AF_INET6 : 0;
	const char *name = any == AF_INET ? "127.0.0.1" : any ? "::1" : addr;
	/* Of a master whose machine has another address for others than for itself. */
	const char *given = getenv("REGATTA_URL");
	char outward[ADDRESS_TEXT];
	struct address a;

	put_url(m->http_url, sizeof(m->http_url), m->tls && !is_loopback(addr), name, port);
	if (any && address_outward(&a, any)) {
		address_text(&a, outward);
		name = outward;
	}
	put_url(m->public_url, sizeof(m->public_url), m->tls, name, port);
	if (!m->tls)
		return;
	snprintf(m->given_url, sizeof(m->given_url), "%s", given ? given : "");
	if (m->given_url[0])
		memcpy(m->public_url, m->given_url, sizeof(m->public_url));
	tls_server_pin(m->tls, m->pin);
	if (m->given_url[0] || !is_loopback(name)) {
		m->services.url = m->public_url;
		m->services.pin = m->pin;
	}
}

static int listen_where_told(struct master *m, const char *listen, struct err *err)
{
	char addr[64];
	int port;

	if (parse_listen(listen, addr, sizeof(addr), &port, err) < 0)
		return -1;
	http_server_other(m->http, LINK_ALPN, agent_accept_over, m->agents);
	if (tls_server_open(m->home, &m->tls, err) < 0)
		return -1;
	if ((is_loopback(addr) ? http_server_listen_both : http_server_listen_tls)(
		    m->http, addr, port, m->tls, &port, err) < 0)
		return err->kind == ERR_CONFLICT
			       ? err_set(err, ERR_CONFLICT,
					 "--listen: port %d on %s is taken: choose another one, or stop "
					 "who listens there ('ss -ltnp')",
					 port, addr)
			       : -1;
	set_url(m, addr, port);
	return 0;
}

/* The port of the previous master of this home: open pages and their cookies depend on it. */
static int last_port(const struct master *m)
{
	CLEANUP(freep) char *path = path_join(m->home, PORT_FILE);
	CLEANUP(buf_release) struct buf text = {0};
	int64_t port;

	buf_init(&text, 64);
	if (file_read(path, &text, NULL) < 0 || !str_to_i64(str_trim(buf_str(&text)), &port) ||
	    port < HTTP_PORT || port > HTTP_LAST_PORT)
		return 0;
	return (int)port;
}

static void remember_port(const struct master *m, int port)
{
	CLEANUP(freep) char *path = path_join(m->home, PORT_FILE);
	char text[16];
	struct err err;

	if (port == last_port(m))
		return;
	snprintf(text, sizeof(text), "%d\n", port);
	if (file_write_atomic(path, str_from(text), 0600, false, &err) < 0)
		log_warn("%s", err.msg);
}

static int listen_on(struct master *m, int port, struct err *err)
{
	if (http_server_listen_tcp(m->http, "127.0.0.1", port, NULL, err) < 0)
		return -1;
	set_url(m, "127.0.0.1", port);
	remember_port(m, port);
	return 0;
}

static int listen_next_free(struct master *m)
{
	struct err err;
	int last = last_port(m);

	if (last && listen_on(m, last, &err) == 0)
		return 0;
	for (int port = HTTP_PORT; port <= HTTP_LAST_PORT; port++) {
		if (listen_on(m, port, &err) == 0)
			return 0;
		if (err.kind != ERR_CONFLICT)
			break;
	}
	log_warn("no HTTP port between %d and %d (%s): the master runs without HTTP over TCP",
		 HTTP_PORT, HTTP_LAST_PORT, err.msg);
	return 0;
}

static void write_address(struct master *m)
{
	CLEANUP(freep) char *path = path_join(m->home, "http");
	char text[256];
	struct err err;

	snprintf(text, sizeof(text), "%s\n%s%s", m->http_url, m->pin, m->pin[0] ? "\n" : "");
	if (file_write_atomic(path, str_from(text), 0600, false, &err) < 0)
		log_warn("%s", err.msg);
	log_info("HTTP on %s, token in %s/token%s%s", m->http_url, m->home,
		 m->pin[0] ? ", key " : "", m->pin);
}

int listen_http(struct master *m, const char *listen, struct err *err)
{
	if ((listen ? listen_where_told(m, listen, err) : listen_next_free(m)) < 0)
		return -1;
	if (m->http_url[0])
		write_address(m);
	return 0;
}

void listen_close(struct master *m)
{
	CLEANUP(freep) char *path = path_join(m->home, "http");

	if (m->http_url[0])
		unlink(path);
	m->tls = tls_server_free(m->tls);
}
