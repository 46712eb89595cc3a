/* The program itself, or the one for another machine, for machines that boot and have only its sum.  It is no secret, so everybody who
 * knows the sum gets it; nothing else is served. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "driver/own_program.h"
#include "master/api/api.h"

int api_program(struct api_call *c, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	uint64_t size;

	if (own_program_open(arena_str(c->arena, c->params[0]).p, &fd, &size, err) < 0)
		return err_set(err, ERR_NOT_FOUND, "this master is not the program with that sum");
	return api_reply_part(c, TAKE_FD(fd), err);
}
