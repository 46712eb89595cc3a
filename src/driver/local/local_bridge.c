/*
 * local.bridge - the bridge of a run whose nodes have network namespaces, with the first address of
 * the run's network, so that this machine reaches the nodes too, and the hosts file with all nodes.
 */
#include "driver/driver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/local/internal.h"
#include "fmt/doc.h"
#include "link/layout.h"

struct bridge {
	struct arena *arena;
	int nl;
	char name[LINK_NAME_SIZE], alias[LINK_ALIAS_SIZE];
	struct local_net net;
	struct str hosts; /* "10.3.4.2 trainer-0\n", a line for each node */
	char *hosts_path;
};

static void bridge_release(struct bridge *b)
{
	arena_free(b->arena);
	free(b->hosts_path);
	close_fdp(&b->nl);
}

static int bridge_load(const struct driver_row *row, struct bridge *b, struct err *err)
{
	struct doc *d = NULL;

	*b = (struct bridge){.arena = arena_new(), .nl = -1};
	if (json_parse(str_from(row->spec), b->arena, &d, err) < 0)
		return err_wrap(err, "spec of '%s'", row->name);
	local_net_read(d, &b->net);
	b->hosts = doc_str(d, "hosts", STR(""));
	struct str run_dir = doc_str(d, "run_dir", STR(""));

	if (!b->net.address[0] || !run_dir.n)
		return err_set(err, ERR_INVALID, "the spec of '%s' has no address or no run_dir",
			       row->name);
	b->hosts_path = path_join(run_dir.p, LAYOUT_HOSTS_FILE);
	local_net_alias(row->install, row->run, NULL, b->alias);
	local_net_bridge_name(row, b->name);
	b->nl = netlink_open(err);
	return b->nl < 0 ? -1 : 0;
}

/* Write localhost and the nodes to the hosts file. */
static int write_hosts(const struct bridge *b, struct err *err)
{
	CLEANUP(freep)
	char *text = xasprintf("127.0.0.1 localhost\n::1 localhost\n%.*s", STR_ARG(b->hosts));

	if (file_write(b->hosts_path, str_from(text), 0644, err) < 0)
		return -1;
	/* Readable despite the master's umask: a job may run as another user. */
	if (chmod(b->hosts_path, 0644) < 0)
		return err_errno(err, errno, "make '%s' readable", b->hosts_path);
	return 0;
}

static int make_link(const struct bridge *b, struct err *err)
{
	char alias[LINK_ALIAS_SIZE];
	struct in_addr at;
	bool there;

	if (inet_pton(AF_INET, b->net.address, &at) != 1)
		return err_set(err, ERR_INVALID, "'%s' is not an IPv4 address", b->net.address);
	if (netlink_find(b->nl, b->name, &there, alias, err) < 0)
		return -1;
	if (there && alias[0] && strcmp(alias, b->alias) != 0)
		return err_set(err, ERR_CONFLICT, "the link '%s' belongs to another owner: %.80s",
			       b->name, alias);
	if ((!there && netlink_add_bridge(b->nl, b->name, err) < 0) ||
	    netlink_set_alias(b->nl, b->name, b->alias, err) < 0 ||
	    netlink_add_address(b->nl, b->name, ntohl(at.s_addr), b->net.prefix, err) < 0)
		return -1;
	return netlink_set_up(b->nl, b->name, err);
}

static int remove_link(const struct bridge *b, struct err *err)
{
	if (netlink_delete(b->nl, b->name, err) < 0)
		return -1;
	if (unlink(b->hosts_path) < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_errno(err, errno, "remove '%s'", b->hosts_path);
	return 0;
}

static enum outcome bridge_create(struct driver_row *row)
{
	CLEANUP(bridge_release) struct bridge b;

	if (bridge_load(row, &b, &row->err) < 0)
		return OUTCOME_REFUSED;
	if (write_hosts(&b, &row->err) < 0 || make_link(&b, &row->err) < 0) {
		/* A refused create is not followed by a destroy, so it must leave nothing. */
		if (row->err.kind != ERR_CONFLICT && remove_link(&b, NULL) < 0)
			return OUTCOME_UNSURE;
		return OUTCOME_REFUSED;
	}
	memcpy(row->id, b.name, sizeof(b.name));
	return OUTCOME_DONE;
}

static enum outcome bridge_observe(struct driver_row *row)
{
	CLEANUP(bridge_release) struct bridge b;
	char alias[LINK_ALIAS_SIZE];
	bool there = false;

	if (bridge_load(row, &b, &row->err) < 0 ||
	    netlink_find(b.nl, b.name, &there, alias, &row->err) < 0)
		return OUTCOME_UNSURE;
	row->identity_checked = true; /* the resource can only be on this machine */
	return there || file_exists(b.hosts_path) ? OUTCOME_DONE : OUTCOME_ABSENT;
}

static enum outcome bridge_destroy(struct driver_row *row)
{
	CLEANUP(bridge_release) struct bridge b;

	if (bridge_load(row, &b, &row->err) < 0 || remove_link(&b, &row->err) < 0)
		return OUTCOME_HELD;
	return OUTCOME_DONE;
}

const struct driver local_bridge_driver = {
	.kind = "local.bridge",
	.pool = "local",
	.create = bridge_create,
	.find = bridge_observe,
	.observe = bridge_observe,
	.destroy = bridge_destroy,
};
