#pragma once
/*
 * wire - how a trainer and a parameter server talk: one request at a time over TCP.
 *
 *	u32 op, u32 count, then `count` floats for OP_PUSH (gradients, already scaled)
 *	answer: `count` floats, the weights after the operation
 */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define FEATURES 256
#define MAX_SERVERS 64
enum { OP_PULL = 1, OP_PUSH = 2 };

struct request {
	uint32_t op, count;
};

/* The part of the weights that server `i` of `n` holds. */
static inline void shard(int i, int n, int *from, int *count)
{
	*from = FEATURES * i / n;
	*count = FEATURES * (i + 1) / n - *from;
}

static inline int read_all(int fd, void *p, size_t n)
{
	for (char *at = p; n > 0;) {
		ssize_t got = read(fd, at, n);
		if (got <= 0)
			return -1;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static inline int write_all(int fd, const void *p, size_t n)
{
	for (const char *at = p; n > 0;) {
		ssize_t put = write(fd, at, n);
		if (put <= 0)
			return -1;
		at += put;
		n -= (size_t)put;
	}
	return 0;
}
