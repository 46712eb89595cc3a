#pragma once
/*
 * netlink - links, addresses and routes of a network namespace.
 *
 * A socket belongs to the namespace in which its thread was when it opened it.  IPv4 only.  Every
 * function waits for the kernel's answer, which is immediate.  Errors name the link; EPERM names the
 * missing privilege.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;

#define LINK_NAME_SIZE 16   /* with the NUL */
#define LINK_ALIAS_SIZE 256 /* with the NUL */

/* A veth pair. */
struct link_veth {
	const char *name;   /* of the end in this namespace ... */
	const char *bridge; /* ... which is put into this bridge */
	const char *peer;   /* name of the other end ... */
	int peer_netns;	    /* ... in that namespace */
};

/* The descriptor of a socket, -1 on error. */
int netlink_open(struct err *err);
int netlink_add_bridge(int fd, const char *name, struct err *err);
int netlink_add_veth(int fd, const struct link_veth *v, struct err *err);
/* Remove a link, and the other end of a pair with it.  No error if the link does not exist. */
int netlink_delete(int fd, const char *name, struct err *err);
int netlink_set_up(int fd, const char *name, struct err *err);
/* A text that `ip link` shows; it names the owner of the link. */
int netlink_set_alias(int fd, const char *name, const char *alias, struct err *err);
/* Add an address and the route to its network.  No error if the address exists. */
int netlink_add_address(int fd, const char *name, uint32_t address, int prefix, struct err *err);
/* Is there a link of that name, and what is its alias ("" if it has none)? */
int netlink_find(int fd, const char *name, bool *ret_there, char alias[static LINK_ALIAS_SIZE],
		 struct err *err);

typedef void netlink_link_fn(void *ctx, const char *name, const char *alias);
int netlink_each_link(int fd, netlink_link_fn *fn, void *ctx, struct err *err);
/* Each IPv4 route of every table, as the first address of its network and its prefix. */
typedef void netlink_route_fn(void *ctx, uint32_t network, int prefix);
int netlink_each_route(int fd, netlink_route_fn *fn, void *ctx, struct err *err);
