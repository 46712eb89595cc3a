#pragma once
/* For the files of driver/local/: the network of a run whose nodes have network namespaces. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "sys/netlink.h"

struct doc;
struct driver_row;
struct err;
struct resolve_input;
struct sweep_input;

/* ---- local_net.c: a node's namespace, and the veth pair that joins it to the bridge ---- */

/* The network in the spec of a local.node or local.bridge. */
struct local_net {
	char address[16]; /* "": the run has no network of its own */
	int prefix;
};
void local_net_read(const struct doc *spec, struct local_net *ret);

/* The alias of a link: its owner, for a sweep and for people (`ip link`).  node NULL: the run's bridge. */
void local_net_alias(const char *install, const char *run, const char *node,
		     char out[static LINK_ALIAS_SIZE]);
/* The name of a link is a digest of its alias, because it can only be short. */
void local_net_bridge_name(const struct driver_row *row, char out[static LINK_NAME_SIZE]);

/* Make namespace, veth pair and hosts file of a node, unless they are complete. */
int local_net_make(const struct driver_row *row, const struct local_net *net, const char *node_dir,
		   const char *run_dir, struct err *err);
/* Does the link or the namespace of the node exist? */
bool local_net_is_there(const struct driver_row *row, const char *node_dir);
int local_net_remove(const struct driver_row *row, const char *node_dir, struct err *err);

/* ---- local_range.c: the addresses of a run ---- */

struct range {
	uint32_t first, last;
};
bool range_is_free(struct range r, const struct range *taken, size_t n);
/* Find a network for `nodes` nodes that overlaps none of `taken`; the search begins at `start`. */
bool range_choose(const struct range *taken, size_t n, int nodes, uint64_t start,
		  struct range *ret);
int range_prefix(struct range r);
/* range_choose, with the routes of this machine and the other runs of `in` as `taken`. */
int range_resolve(const struct resolve_input *in, struct range *ret, struct err *err);
/* The network of an address with prefix, "10.3.4.1/24". */
bool range_parse(const char *text, struct range *ret);

/* ---- local_sweep.c ---- */
size_t local_sweep(const struct sweep_input *in, struct err *err);
