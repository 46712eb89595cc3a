#pragma once
/* port_holder - which process listens on a TCP port of this machine, from /proc. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct port_holder {
	pid_t pid;
	char name[32]; /* of its program */
	/* REGATTA_RUN and REGATTA_NODE of its environment; "" if it has none, or belongs to another user */
	char run[128], node[128];
};

/*
 * The process that listens on `port` in this network namespace: on any address, or with `address` (IPv4,
 * network byte order) on that one or on all.  False: there is none, or its user does not let us see it.
 */
bool port_holder_find(int port, const uint32_t *address, struct port_holder *ret);
