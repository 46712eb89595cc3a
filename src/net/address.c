#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

bool address_ip(struct address *ret, const char *text, int port)
{
	*ret = (struct address){0};
	if (port < 0 || port > 65535)
		return false;
	if (inet_pton(AF_INET, text, &ret->in4.sin_addr) == 1) {
		ret->in4.sin_family = AF_INET;
		ret->len = sizeof(ret->in4);
	} else if (inet_pton(AF_INET6, text, &ret->in6.sin6_addr) == 1) {
		ret->in6.sin6_family = AF_INET6;
		ret->len = sizeof(ret->in6);
	} else {
		return false;
	}
	address_set_port(ret, port);
	return true;
}

void address_set_port(struct address *a, int port)
{
	if (a->sa.sa_family == AF_INET6)
		a->in6.sin6_port = htons((uint16_t)port);
	else
		a->in4.sin_port = htons((uint16_t)port);
}

int address_port(const struct address *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in4.sin_port);
}

void address_text(const struct address *a, char out[static ADDRESS_TEXT])
{
	const void *from = a->sa.sa_family == AF_INET6 ? (const void *)&a->in6.sin6_addr
						       : (const void *)&a->in4.sin_addr;

	if (!inet_ntop(a->sa.sa_family, from, out, ADDRESS_TEXT))
		snprintf(out, ADDRESS_TEXT, "?");
}

int address_unix(struct address *ret, int dirfd, const char *dir, const char *name, struct err *err)
{
	size_t max = sizeof(ret->un.sun_path);
	int n;

	if (!*name || strchr(name, '/'))
		return err_set(err, ERR_INVALID, "'%s' is no name for a socket", name);
	*ret = (struct address){.un.sun_family = AF_UNIX};
	n = snprintf(ret->un.sun_path, max, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= max)
		n = snprintf(ret->un.sun_path, max, "/proc/self/fd/%d/%s", dirfd, name);
	if (n < 0 || (size_t)n >= max)
		return err_set(err, ERR_INVALID, "the socket name '%s' is too long", name);
	ret->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	return 0;
}

static bool is_loopback(const struct address *a)
{
	return a->sa.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr)
					   : ntohl(a->in4.sin_addr.s_addr) >> 24 == 127;
}

static bool from_route(struct address *ret, int family)
{
	struct address far;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address_ip(&far, family == AF_INET6 ? "2001:db8::1" : "192.0.2.1", 9);
	*ret = (struct address){.len = sizeof(ret->in6)};
	bool ok = fd >= 0 && connect(fd, &far.sa, far.len) == 0 &&
		  getsockname(fd, &ret->sa, &ret->len) == 0 && !is_loopback(ret);

	if (fd >= 0)
		close(fd);
	return ok;
}

bool address_outward(struct address *ret, int family)
{
	socklen_t len = family == AF_INET6 ? sizeof(ret->in6) : sizeof(ret->in4);
	struct ifaddrs *all = NULL;
	bool found = false;

	if (from_route(ret, family))
		return true;
	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP))
			continue;
		*ret = (struct address){.len = len};
		memcpy(&ret->sa, i->ifa_addr, len);
		found = !is_loopback(ret) &&
			!(family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ret->in6.sin6_addr));
	}
	freeifaddrs(all);
	return found;
}

void address_interface(const struct address *a, char *out, size_t size)
{
	struct ifaddrs *all = NULL;
	char own[ADDRESS_TEXT], other[ADDRESS_TEXT];

	out[0] = '\0';
	address_text(a, own);
	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct address b = {.len = sizeof(b.in6)};

		if (!i->ifa_addr || i->ifa_addr->sa_family != a->sa.sa_family)
			continue;
		memcpy(&b.sa, i->ifa_addr,
		       a->sa.sa_family == AF_INET ? sizeof(b.in4) : sizeof(b.in6));
		address_text(&b, other);
		if (strcmp(own, other) != 0)
			continue;
		snprintf(out, size, "%s", i->ifa_name);
		break;
	}
	freeifaddrs(all);
}
