/*
 * local_net - the network of one node: a namespace, held by a mount in the node's directory, and a
 * veth pair ("cable") from its eth0 to the bridge of the run.
 *
 * The alias of the cable is set last.  A cable with its alias is complete and may be in use by a job;
 * one without it was left by a create that was killed, and is made again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "driver/driver.h"
#include "driver/local/internal.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "net/digest.h"
#include "sys/netns.h"

#define NAME_BYTES 6 /* of the digest in a link's name, which has 3 letters and 12 hex digits */

void local_net_read(const struct doc *spec, struct local_net *ret)
{
	struct str address = doc_str(spec, "address", STR(""));
	int64_t prefix = doc_int(spec, "prefix", 0);

	*ret = (struct local_net){0};
	if (address.n >= sizeof(ret->address) || prefix < 8 || prefix > 30)
		return;
	memcpy(ret->address, address.p, address.n);
	ret->prefix = (int)prefix;
}

void local_net_alias(const char *install, const char *run, const char *node,
		     char out[static LINK_ALIAS_SIZE])
{
	snprintf(out, LINK_ALIAS_SIZE, "regatta %.64s %.100s%s%.80s", install, run, node ? " " : "",
		 node ? node : "");
}

static void link_name(const char *letters, const char *alias, char out[static LINK_NAME_SIZE])
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * NAME_BYTES + 1];

	sha256_of(alias, strlen(alias), digest);
	hex_encode(digest, NAME_BYTES, hex);
	snprintf(out, LINK_NAME_SIZE, "%s%s", letters, hex);
}

void local_net_bridge_name(const struct driver_row *row, char out[static LINK_NAME_SIZE])
{
	char alias[LINK_ALIAS_SIZE];

	local_net_alias(row->install, row->run, NULL, alias);
	link_name("rgb", alias, out);
}

/* The cable of a node, and the path of its namespace. */
struct cable {
	char name[LINK_NAME_SIZE], alias[LINK_ALIAS_SIZE];
	char *netns;
};

static void cable_of(const struct driver_row *row, const char *node_dir, struct cable *ret)
{
	local_net_alias(row->install, row->run, row->name, ret->alias);
	link_name("rgv", ret->alias, ret->name);
	ret->netns = path_join(node_dir, LAYOUT_NETNS);
}

static void cable_release(struct cable *c)
{
	free(c->netns);
}

static bool is_complete(int nl, const struct cable *c)
{
	char alias[LINK_ALIAS_SIZE];
	bool there = false;

	return netns_is_at(c->netns) && netlink_find(nl, c->name, &there, alias, NULL) == 0 &&
	       there && strcmp(alias, c->alias) == 0;
}

static int fill_inside(void *ctx, struct err *err)
{
	const struct local_net *net = ctx;
	CLEANUP(close_fdp) int nl = netlink_open(err);
	struct in_addr at;

	if (inet_pton(AF_INET, net->address, &at) != 1)
		return err_set(err, ERR_INVALID, "'%s' is not an IPv4 address", net->address);
	if (nl < 0 ||
	    netlink_add_address(nl, LAYOUT_NETNS_IFACE, ntohl(at.s_addr), net->prefix, err) < 0)
		return -1;
	return netlink_set_up(nl, LAYOUT_NETNS_IFACE, err);
}

static int make_cable(int nl, const struct driver_row *row, const struct local_net *net,
		      const struct cable *c, struct err *err)
{
	CLEANUP(close_fdp) int inside = -1;
	char bridge[LINK_NAME_SIZE];

	if (netns_make(c->netns, err) < 0)
		return -1;
	inside = netns_open(c->netns, err);
	local_net_bridge_name(row, bridge);
	struct link_veth veth = {.name = c->name,
				 .bridge = bridge,
				 .peer = LAYOUT_NETNS_IFACE,
				 .peer_netns = inside};

	if (inside < 0 || netlink_add_veth(nl, &veth, err) < 0 ||
	    netns_within(inside, fill_inside, (void *)net, err) < 0 ||
	    netlink_set_up(nl, c->name, err) < 0)
		return -1;
	return netlink_set_alias(nl, c->name, c->alias, err);
}

/* Each node gets its own copy, because a job may change its /etc/hosts. */
static int copy_hosts(const char *run_dir, const char *node_dir, struct err *err)
{
	CLEANUP(freep) char *from = path_join(run_dir, LAYOUT_HOSTS_FILE);
	CLEANUP(freep) char *to = path_join(node_dir, LAYOUT_HOSTS_FILE);

	if (unlink(to) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove '%s'", to);
	return file_copy(from, to, err);
}

static int remove_cable(int nl, const struct cable *c, struct err *err)
{
	if (netlink_delete(nl, c->name, err) < 0)
		return -1;
	return netns_remove(c->netns, err);
}

int local_net_make(const struct driver_row *row, const struct local_net *net, const char *node_dir,
		   const char *run_dir, struct err *err)
{
	CLEANUP(close_fdp) int nl = netlink_open(err);
	CLEANUP(cable_release) struct cable c;

	cable_of(row, node_dir, &c);
	if (nl < 0)
		return -1;
	if (is_complete(nl, &c))
		return 0;
	if (remove_cable(nl, &c, err) < 0 || copy_hosts(run_dir, node_dir, err) < 0)
		return -1;
	if (make_cable(nl, row, net, &c, err) < 0) {
		remove_cable(nl, &c, NULL);
		return -1;
	}
	return 0;
}

bool local_net_is_there(const struct driver_row *row, const char *node_dir)
{
	CLEANUP(close_fdp) int nl = netlink_open(NULL);
	CLEANUP(cable_release) struct cable c;
	char alias[LINK_ALIAS_SIZE];
	bool there = false;

	cable_of(row, node_dir, &c);
	/* If the kernel cannot be asked the cable counts as existing, so that it is not forgotten. */
	if (nl < 0 || netlink_find(nl, c.name, &there, alias, NULL) < 0)
		return true;
	return there || netns_is_at(c.netns);
}

int local_net_remove(const struct driver_row *row, const char *node_dir, struct err *err)
{
	CLEANUP(close_fdp) int nl = netlink_open(err);
	CLEANUP(cable_release) struct cable c;

	cable_of(row, node_dir, &c);
	if (nl < 0 || remove_cable(nl, &c, err) < 0)
		return -1;
	if (local_net_is_there(row, node_dir))
		return err_set(err, ERR_UNAVAILABLE, "its link '%s' still exists", c.name);
	return 0;
}
