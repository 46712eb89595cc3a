/* The program itself, for machines that boot and have only its sum.  It is no secret, so everybody who
 * knows the sum gets it; nothing else is served. */
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "master/api/api.h"
#include "net/digest.h"

/* The sum of this process's program, which does not change while it runs. */
static int own_sum(int fd, const char **ret, struct err *err)
{
	static char sum[SHA256_TEXT];
	uint64_t size;

	if (!sum[0] && sha256_fd_hex(fd, sum, &size, err) < 0)
		return err_wrap(err, "read this program");
	*ret = sum;
	return 0;
}

int api_program(struct api_call *c, struct err *err)
{
	CLEANUP(close_fdp) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *sum;

	if (fd < 0)
		return err_errno(err, errno, "open this program");
	if (own_sum(fd, &sum, err) < 0)
		return -1;
	if (!str_is(c->params[0], sum))
		return err_set(err, ERR_NOT_FOUND, "this master is not the program with that sum");
	return api_reply_part(c, TAKE_FD(fd), err);
}
