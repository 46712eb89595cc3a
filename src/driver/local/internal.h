#pragma once
/* What the files of driver/local/ share: the network of a run whose nodes have network namespaces. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "sys/netlink.h"

struct doc;
struct driver_row;
struct err;
struct resolve_input;
struct sweep_input;

/* ---- local_net.c: a node's namespace, and the cable to the bridge ---- */

/* What the spec of a local.node or a local.bridge says of its network. */
struct local_net {
	char address[16]; /* "" : the run has no network of its own */
	int prefix;
};
void local_net_read(const struct doc *spec, struct local_net *ret);

/* Whose a link is, for a sweep and for whoever reads `ip link`.  node NULL: the run's bridge. */
void local_net_alias(const char *install, const char *run, const char *node,
		     char out[static LINK_ALIAS_SIZE]);
/* The names of links are short, so they are digests of that. */
void local_net_bridge_name(const struct driver_row *row, char out[static LINK_NAME_SIZE]);

/* Namespace, cable and hosts file in the node's directory.  What is complete stays as it is. */
int local_net_make(const struct driver_row *row, const struct local_net *net, const char *node_dir,
		   const char *run_dir, struct err *err);
/* Is anything of it there? */
bool local_net_is_there(const struct driver_row *row, const char *node_dir);
int local_net_remove(const struct driver_row *row, const char *node_dir, struct err *err);

/* ---- local_range.c: which addresses a run gets ---- */

struct range {
	uint32_t first, last;
};
bool range_is_free(struct range r, const struct range *taken, size_t n);
/* A network for so many nodes that meets none of `taken`; `start` is where the search begins. */
bool range_choose(const struct range *taken, size_t n, int nodes, uint64_t start,
		  struct range *ret);
int range_prefix(struct range r);
/* The same with the routes of this machine and the other runs of `in`. */
int range_resolve(const struct resolve_input *in, struct range *ret, struct err *err);
/* "10.3.4.1/24": the network of that address. */
bool range_parse(const char *text, struct range *ret);

/* ---- local_sweep.c ---- */
size_t local_sweep(const struct sweep_input *in, struct err *err);
