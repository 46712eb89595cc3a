#include "agent/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/claim.h"
#include "agent/config.h"
#include "agent/probe.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "link/message.h"
#include "sys/netns.h"
#include "sys/port_holder.h"

#define CLAIM "regatta-port-%d"
#define ANY "0.0.0.0"
#define LINE_BYTES 256

static int keep_name(struct port_claims *c, const char *netns, const char *name, struct err *err)
{
	int fd = claim_name(netns, name, err);

	if (fd < 0)
		return -1;
	c->fds[c->n++] = fd;
	return 0;
}

/* The run and node of a claim, from the second name of its agent. */
static bool claim_holder(int port, char *out, size_t size)
{
	char line[LINE_BYTES], want[64], run[128], node[128];
	bool found = false;
	FILE *f = fopen("/proc/self/net/unix", "re");

	snprintf(want, sizeof(want), "@" CLAIM " ", port);
	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, want);

		found = at && sscanf(at + strlen(want), "%127s %127s", run, node) == 2;
	}
	if (f)
		fclose(f);
	if (found)
		snprintf(out, size, "%.60s of run '%.60s'", node, run);
	return found;
}

static void describe_holder(int port, const char *address, char *out, size_t size)
{
	struct port_holder h;
	uint32_t v4;
	bool one = strcmp(address, ANY) != 0 && inet_pton(AF_INET, address, &v4) == 1;

	if (!port_holder_find(port, one ? &v4 : NULL, &h))
		snprintf(out, size, "another process");
	else if (h.run[0] && h.node[0])
		snprintf(out, size, "%.60s of run '%.60s'", h.node, h.run);
	else
		snprintf(out, size, "process %d (%s)", (int)h.pid, h.name);
}

static int refuse(const struct message_port *p, int port, const char *address, const char *holder,
		  struct err *err)
{
	const char *on = strcmp(address, ANY) == 0 ? "this machine" : address;

	return err_set(err, ERR_CONFLICT,
		       "port %d on %s is taken by %s: choose another one with %s", port, on, holder,
		       p->key);
}

static int check(const struct message_port *p, int port, const char *netns, const char *address,
		 struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct sockaddr_storage sa;
	socklen_t len;
	int on = 1;

	if (!probe_address(address, port, &sa, &len))
		return err_set(err, ERR_INVALID, "'%s' is not an address", address);
	fd = netns_socket(netns, sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	/* As servers do: connections in TIME_WAIT do not make the port busy. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, len) == 0)
		return 0;
	if (errno == EADDRINUSE) {
		char holder[160] = "another process";

		if (!netns)
			describe_holder(port, address, holder, sizeof(holder));
		return refuse(p, port, address, holder, err);
	}
	if (errno == EACCES)
		return err_set(err, ERR_DENIED, "port %d on %s needs a privilege", port, address);
	return err_set(err, ERR_UNAVAILABLE, "port %d on %s cannot be used: %s", port, address,
		       strerror(errno));
}

static int claim(struct port_claims *c, const struct message_port *p, int port,
		 const struct agent_config *cfg, struct err *err)
{
	char name[300], holder[160] = "another run";
	struct err own = {0};

	if (c->n + 2 > PORT_CLAIMS_MAX)
		return 0;
	snprintf(name, sizeof(name), CLAIM, port);
	if (keep_name(c, cfg->netns, name, &own) < 0) {
		if (own.code != EADDRINUSE)
			return err_set(err, own.kind, "%s", own.msg);
		claim_holder(port, holder, sizeof(holder));
		return refuse(p, port, ANY, holder, err);
	}
	snprintf(name, sizeof(name), CLAIM " %s %s", port, cfg->run, cfg->node);
	keep_name(c, cfg->netns, name, &own); /* without it messages do not name the run */
	return 0;
}

static int take(struct port_claims *c, const struct message_port *p, const char *address,
		const struct agent_config *cfg, struct err *err)
{
	for (int port = p->first; port < p->first + p->count; port++)
		if ((p->any && claim(c, p, port, cfg, err) < 0) ||
		    check(p, port, cfg->netns, p->any ? ANY : address, err) < 0)
			return -1;
	return 0;
}

int ports_claim(struct port_claims *c, const struct message_inputs *in,
		const struct agent_config *cfg, struct err *err)
{
	const struct message_port own = {
		.first = in->port, .count = 1, .key = "`port` of its role"};

	ports_release(c);
	if (in->port && take(c, &own, in->address, cfg, err) < 0)
		return -1;
	for (size_t i = 0; i < in->nports; i++)
		if (take(c, &in->ports[i], in->address, cfg, err) < 0)
			return -1;
	return 0;
}

void ports_release(struct port_claims *c)
{
	while (c->n > 0)
		close(c->fds[--c->n]);
}
