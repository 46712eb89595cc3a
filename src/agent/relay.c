#include "agent/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/spool.h"
#include "agent/shim/supervisor.h"
#include "base/alloc.h"
#include "link/conn.h"

#define TELL_BYTES (1024 * 1024) /* acknowledged bytes between two updates of SUPERVISOR_ACKED */

void relay_open(struct relay *r, int dirfd, int n)
{
	*r = (struct relay){.dirfd = dirfd, .acked_fd = -1};
	relay_widen(r, n);
	relay_refresh(r);
}

void relay_widen(struct relay *r, int n)
{
	if (n <= r->n)
		return;
	r->s = xrealloc(r->s, (size_t)n * sizeof(*r->s));
	for (; r->n < n; r->n++)
		r->s[r->n] = (struct relay_stream){.fd = -1};
}

/* The shim makes a spool when its stream has its first byte. */
static int open_spool(const struct relay *r, enum stream s)
{
	char file[16], fifo[16];

	spool_names(s, file, fifo);
	/* Writable, for punch(). */
	return openat(r->dirfd, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

void relay_close(struct relay *r)
{
	for (int s = 0; s < r->n; s++) {
		if (r->s[s].fd >= 0)
			close(r->s[s].fd);
	}
	free(r->s);
	r->s = NULL;
	r->n = 0;
	if (r->acked_fd >= 0)
		close(r->acked_fd);
	r->acked_fd = -1;
}

void relay_refresh(struct relay *r)
{
	for (int s = 0; s < r->n; s++) {
		struct stat st;

		if (r->s[s].fd < 0)
			r->s[s].fd = open_spool(r, (enum stream)s);
		if (r->s[s].fd < 0 || fstat(r->s[s].fd, &st) < 0)
			continue;
		r->s[s].size = (uint64_t)st.st_size;
	}
}

static void tell_shim(struct relay *r)
{
	uint64_t acked[STREAMS_MAX], sum = 0, size = 0;
	size_t bytes = (size_t)r->n * sizeof(acked[0]);

	for (int s = 0; s < r->n; s++) {
		acked[s] = r->s[s].acked;
		sum += acked[s];
		size += r->s[s].size;
	}
	if (sum == r->told || (sum - r->told < TELL_BYTES && sum < size))
		return;
	/* If the disk is full now, the next acknowledgement tries again. */
	if (r->acked_fd < 0)
		r->acked_fd = openat(r->dirfd, SUPERVISOR_ACKED,
				     O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r->acked_fd >= 0 && pwrite(r->acked_fd, acked, bytes, 0) == (ssize_t)bytes)
		r->told = sum;
}

/* Free the disk space of bytes that are stored and whose metrics are stored. */
static void punch(struct relay_stream *st)
{
	uint64_t done = st->acked < st->scanned ? st->acked : st->scanned;

	if (st->fd < 0 || done < st->punched + RELAY_PUNCH)
		return;
	uint64_t upto = done / RELAY_PUNCH * RELAY_PUNCH;

	if (fallocate(st->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)st->punched,
		      (off_t)(upto - st->punched)) == 0 ||
	    errno == EOPNOTSUPP)
		st->punched = upto;
}

void relay_resume(struct relay *r, const uint64_t acks[static STREAMS_MAX],
		  const uint64_t scanned[static STREAMS_MAX])
{
	for (int s = 0; s < r->n; s++) {
		r->s[s].sent = r->s[s].acked = acks[s];
		r->s[s].scanned = scanned[s];
	}
	tell_shim(r);
}

void relay_ack(struct relay *r, enum stream s, uint64_t acked, uint64_t scanned)
{
	struct relay_stream *st = &r->s[s];

	if (scanned > st->scanned)
		st->scanned = scanned;
	/* An acknowledgement beyond `sent` is wrong: it would skip bytes that the master does not have. */
	if (acked > st->acked && acked <= st->sent) {
		st->acked = acked;
		tell_shim(r);
	}
	punch(st);
}

/* One frame of one stream; 0 when there is nothing to send now. */
static size_t push_one(struct relay_stream *st, enum stream s, struct conn *c, void *scratch)
{
	uint64_t end = st->acked + RELAY_WINDOW;
	uint8_t offset[8];
	ssize_t n;

	if (end > st->size)
		end = st->size;
	if (st->fd < 0 || st->sent >= end)
		return 0;
	size_t want = end - st->sent < RELAY_FRAME ? (size_t)(end - st->sent) : RELAY_FRAME;

	do {
		n = pread(st->fd, scratch, want, (off_t)st->sent);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0; /* tried again when the sizes are next refreshed */
	data_offset_put(offset, st->sent);
	conn_send(c, FRAME_DATA, (uint16_t)s, (struct str){(char *)offset, sizeof(offset)},
		  (struct str){scratch, (size_t)n});
	st->sent += (uint64_t)n;
	return (size_t)n;
}

uint64_t relay_push(struct relay *r, struct conn *c, void *scratch)
{
	uint64_t total = 0, round;

	do {
		round = 0;
		for (int s = 0; s < r->n; s++)
			if (conn_queued(c) < RELAY_QUEUE)
				round += push_one(&r->s[s], (enum stream)s, c, scratch);
		total += round;
	} while (round > 0);
	return total;
}

bool relay_sent_all(const struct relay *r, const uint64_t lengths[static STREAMS_MAX])
{
	for (int s = 0; s < r->n; s++)
		if (r->s[s].sent < lengths[s])
			return false;
	return true;
}

uint64_t relay_waiting(const struct relay *r)
{
	uint64_t sum = 0;

	for (int s = 0; s < r->n; s++)
		if (r->s[s].size > r->s[s].sent)
			sum += r->s[s].size - r->s[s].sent;
	return sum;
}
