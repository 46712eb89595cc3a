#pragma once
/*
 * address - the address to which a socket is bound or connected.
 *
 * Unix sockets are named by directory and name, because their path may be longer
 * than sun_path.  Addresses of hosts are numeric here: resolve.h turns names into them.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct err;

struct address {
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

/* From "127.0.0.1" or "::1"; false if the text is not a numeric address or the port is out of range. */
bool address_ip(struct address *ret, const char *text, int port);
void address_set_port(struct address *a, int port);
int address_port(const struct address *a);
/* The address without its port, as text. */
#define ADDRESS_TEXT 64
void address_text(const struct address *a, char out[static ADDRESS_TEXT]);
/* dir/name.  A long path goes through /proc/self/fd/<dirfd>, so dirfd stays open while the
 * address is used. */
int address_unix(struct address *ret, int dirfd, const char *dir, const char *name,
		 struct err *err);
/* The address of this machine that others most likely reach: that of its default route, else any that
 * is not loopback.  Nothing is sent.  False if there is none. */
bool address_outward(struct address *ret, int family);
/* The name of the interface that has a local IPv4 or IPv6 address; "" if unknown. */
void address_interface(const struct address *a, char *out, size_t size);
