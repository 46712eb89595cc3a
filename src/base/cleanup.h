#pragma once
/* cleanup - release at the end of scope, and hand ownership on. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) p_ = (p);                                                            \
		(p) = NULL;                                                                        \
		p_;                                                                                \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int fd_ = (fd);                                                                    \
		(fd) = -1;                                                                         \
		fd_;                                                                               \
	})

static inline void freep(void *p)
{
	free(*(void **)p);
}
static inline void close_fdp(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}
