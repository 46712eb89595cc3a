/* Download a body to a file, continuing an earlier try. */
#include "net/http_client.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"

#define CHUNK (64 * 1024)

/* Parse "bytes 100-199/200" or, of a 416, "bytes * /200"; false if it is neither. */
static bool read_range(struct str text, uint64_t *ret_from, uint64_t *ret_total)
{
	struct str rest = text, unit = str_cut(&rest, ' '), range = str_cut(&rest, '/');
	struct str to = range, from = str_cut(&to, '-');

	*ret_from = *ret_total = UINT64_MAX;
	if (!str_is(unit, "bytes") || !rest.p)
		return false;
	if (!str_is(rest, "*") && !str_to_u64(rest, ret_total))
		return false;
	return str_is(range, "*") || str_to_u64(from, ret_from);
}

/* Set d->offset to the beginning of the body. */
static int place_body(struct http_client *c, struct http_download *d, int status, struct err *err)
{
	uint64_t from = 0, total;

	if (status == 206 && !read_range(http_client_header(c, "Content-Range"), &from, &total))
		return err_set(err, ERR_PROTOCOL, "a part without a proper Content-Range");
	if (status == 206 && from != d->offset)
		return err_set(err, ERR_PROTOCOL,
			       "asked for bytes from %" PRIu64 " on, got %" PRIu64, d->offset,
			       from);
	d->offset = from;
	return 0;
}

/* 416: the file is complete already, or the server's file is shorter than d->offset. */
static int judge_end(struct http_client *c, const struct http_download *d, struct http_answer *ret,
		     struct err *err)
{
	uint64_t from, total;

	if (!read_range(http_client_header(c, "Content-Range"), &from, &total) ||
	    total != d->offset)
		return err_set(err, ERR_CONFLICT, "there are no bytes from %" PRIu64 " on",
			       d->offset);
	ret->status = 206;
	return 0;
}

static int write_at(const struct http_download *d, const char *p, size_t n, struct err *err)
{
	size_t done = 0;

	while (done < n) {
		ssize_t put = pwrite(d->fd, p + done, n - done, (off_t)(d->offset + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_errno(err, errno, "write what was downloaded");
		done += (size_t)put;
	}
	return 0;
}

static int receive(struct http_client *c, struct http_download *d, const struct deadline *all,
		   struct err *err)
{
	CLEANUP(freep) char *chunk = xmalloc(CHUNK);

	for (;;) {
		struct deadline next = *all;
		size_t n;

		if (d->stall_ms > 0)
			next = deadline_within(all, d->stall_ms);
		int64_t left = deadline_left_ms(&next);

		if (http_stream_read(c, chunk, CHUNK, left > INT32_MAX ? -1 : (int)left, NULL, &n,
				     err) < 0)
			return -1;
		if (n == 0)
			return 0;
		if (n > d->max_bytes || d->offset > d->max_bytes - n)
			return err_set(err, ERR_CAPACITY, "it is larger than %" PRIu64 " bytes",
				       d->max_bytes);
		if (write_at(d, chunk, n, err) < 0)
			return -1;
		d->offset += n;
	}
}

int http_download(struct http_client *c, struct http_download *d, struct http_answer *ret,
		  struct err *err)
{
	struct deadline all =
		deadline_in(d->get.timeout_ms, NULL); /* the client has the stop flag */
	struct http_field fields[HTTP_MAX_FIELDS];
	struct http_outgoing r = d->get;
	char range[48];

	if (r.nfields >= HTTP_MAX_FIELDS)
		return err_set(err, ERR_INVALID, "more than %d headers", HTTP_MAX_FIELDS - 1);
	for (size_t i = 0; i < r.nfields; i++)
		fields[i] = r.fields[i];
	snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", d->offset);
	if (d->offset > 0)
		fields[r.nfields++] = (struct http_field){"Range", range};
	r.fields = fields;
	r.method = "GET";
	r.body = (struct str){0};
	r.from_fd = false;
	if (d->stall_ms > 0 && (r.timeout_ms < 0 || r.timeout_ms > d->stall_ms))
		r.timeout_ms = d->stall_ms; /* http_send_stream() waits so long for the head */
	if (http_send_stream(c, &r, ret, err) < 0)
		return -1;
	int rc = 0;

	if (ret->status == 416 && d->offset > 0)
		rc = judge_end(c, d, ret, err);
	else if (ret->status == 200 || ret->status == 206)
		rc = place_body(c, d, ret->status, err) < 0 ? -1 : receive(c, d, &all, err);
	return rc < 0 ? err_wrap(err, "GET %s", r.path) : 0;
}
