#include "agent/claim.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/netns.h"

int claim_name(const char *netns, const char *name, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	CLEANUP(close_fdp) int fd = netns_socket(netns, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC);
	size_t n = strnlen(name, sizeof(sa.sun_path) - 1);

	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	memcpy(sa.sun_path + 1, name, n);
	if (bind(fd, (struct sockaddr *)&sa,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0)
		return err_errno(err, errno, "claim '%s'", name);
	return TAKE_FD(fd);
}
