#include "net/address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
