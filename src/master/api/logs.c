/*
 * The route of a node's logs: as bytes, or in pieces that say which log they are from and when
 * they arrived.
 */
#include "master/api/api.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "master/api/watch.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/streams.h"
#include "store/log_times.h"
#include "store/logfile.h"

static int stream_from(struct str name, enum stream *ret, struct err *err)
{
	for (int s = 0; s < STREAMS; s++)
		if (str_is(name, stream_name((enum stream)s))) {
			*ret = (enum stream)s;
			return 0;
		}
	return err_set(err, ERR_INVALID, "'stream' must be out, err, both or metrics");
}

struct log_request {
	bool both;
	enum stream stream;
	int64_t offset, err_offset, limit, tail, follow, attempt, times;
	int64_t since_ms; /* Unix time; -1: from the beginning */
};

/* A time, or how long ago it was by the master's clock, which the times of logs come from. */
static int since_from(const struct api_call *c, int64_t *ret_ms, struct err *err)
{
	struct str text = query_get(&c->req->query, "since", STR(""));
	int64_t ago_ms, now_ms = clock_wall_ms();

	*ret_ms = -1;
	if (!text.n || (clock_parse(text, ret_ms) && *ret_ms >= 0))
		return 0;
	if (!str_to_duration_ms(text, &ago_ms) || ago_ms < 0)
		return err_set(err, ERR_INVALID,
			       "'since' is '%.*s': expected a duration such as 5m or a time such "
			       "as 2026-01-31T12:00:00Z",
			       text.n < 40 ? (int)text.n : 40, text.p);
	*ret_ms = ago_ms < now_ms ? now_ms - ago_ms : 0;
	return 0;
}

static int log_request(struct api_call *c, struct log_request *r, struct err *err)
{
	struct str stream = query_get(&c->req->query, "stream", STR("out"));

	r->both = str_is(stream, "both");
	if ((!r->both && stream_from(stream, &r->stream, err) < 0) ||
	    api_query_int(c, "offset", 0, INT64_MAX, &r->offset, err) < 0 ||
	    api_query_int(c, "err_offset", 0, INT64_MAX, &r->err_offset, err) < 0 ||
	    api_query_int(c, "limit", INT64_MAX, INT64_MAX, &r->limit, err) < 0 ||
	    api_query_int(c, "tail", -1, 1000000000, &r->tail, err) < 0 ||
	    api_query_int(c, "attempt", 0, INT32_MAX, &r->attempt, err) < 0 ||
	    api_query_int(c, "times", 0, 1, &r->times, err) < 0 ||
	    api_query_int(c, "follow", 0, 1, &r->follow, err) < 0 ||
	    since_from(c, &r->since_ms, err) < 0)
		return -1;
	if (r->both && r->limit != INT64_MAX)
		return err_set(err, ERR_INVALID, "'limit' is for one stream, not for both");
	if ((r->times || r->since_ms >= 0) && !r->both && r->stream == STREAM_METRICS)
		return err_set(err, ERR_INVALID,
			       "'times' and 'since' are for the streams out, err and both");
	return 0;
}

/* A log that does not exist yet counts as empty. */
static int open_log(const struct live_run *lr, int rank, int attempt, enum stream s, int *ret_fd,
		    uint64_t *ret_size, struct err *err)
{
	char name[LOG_NAME_MAX];
	struct err why = {0};

	run_log_name(lr, rank, attempt, s, name);
	if (logfile_open_read(lr->logs_dir, name, ret_fd, ret_size, &why) == 0)
		return 0;
	if (why.kind == ERR_NOT_FOUND && !lr->ended) {
		struct logfile *lf;
		if (logfile_open(lr->logs_dir, name, &lf, err) < 0)
			return -1;
		logfile_close(lf);
		return logfile_open_read(lr->logs_dir, name, ret_fd, ret_size, err);
	}
	if (err)
		*err = why;
	return -1;
}

/*
 * The place of an offset.  Offsets count the bytes of all attempts, unless the request names one
 * attempt.  For both logs the place is in the first attempt in which one of them has bytes
 * beyond its offset.
 */
struct log_place {
	struct watch_at at;
	uint64_t base[ORDER_LOGS], from[ORDER_LOGS];
};

static uint64_t log_bytes(const struct live_run *lr, int rank, int attempt, enum stream s)
{
	char name[LOG_NAME_MAX];
	uint64_t size;

	run_log_name(lr, rank, attempt, s, name);
	return logfile_exists(lr->logs_dir, name, &size) ? size : 0;
}

/* Where the output since the asked time begins, with the whole of a line that was not complete
 * then.  With open_line, a line that may still go on belongs to it. */
static uint64_t since_offset(const struct live_run *lr, int rank, int attempt, enum stream s,
			     int64_t since_ms, bool open_line)
{
	CLEANUP(close_fdp) int fd = -1;
	char name[LOG_NAME_MAX];
	uint64_t size;

	run_log_name(lr, rank, attempt, s, name);
	if (since_ms < 0 || logfile_open_read(lr->logs_dir, name, &fd, &size, NULL) < 0)
		return 0;
	uint64_t from = log_times_find(lr->logs_dir, name, size, since_ms);
	return from < size || open_line ? logfile_line_start(fd, from) : from;
}

static void find_place(const struct live_run *lr, int rank, int process,
		       const struct log_request *r, struct log_place *ret)
{
	const uint64_t wanted[ORDER_LOGS] = {(uint64_t)r->offset, (uint64_t)r->err_offset};
	int last = run_attempts(lr, rank);

	*ret = (struct log_place){.at = {.rank = rank,
					 .process = process,
					 .attempt = r->attempt ? (int)r->attempt : 1,
					 .all = !r->attempt,
					 .follow = r->follow,
					 .left = (uint64_t)r->limit}};
	for (; !r->attempt && ret->at.attempt < last; ret->at.attempt++) {
		uint64_t size[ORDER_LOGS];
		bool here = false;

		for (int log = 0; log < ORDER_LOGS; log++) {
			enum stream s = r->both ? stream_of(process, (enum stream)log) : r->stream;

			size[log] = log_bytes(lr, rank, ret->at.attempt, s);
			here |= wanted[log] < ret->base[log] + size[log] &&
				since_offset(lr, rank, ret->at.attempt, s, r->since_ms, false) <
					size[log] &&
				(r->both || log == 0);
		}
		/* `tail` counts lines of the last attempt only. */
		if (here && r->tail < 0)
			break;
		for (int log = 0; log < ORDER_LOGS; log++)
			ret->base[log] += size[log];
	}
	for (int log = 0; log < ORDER_LOGS; log++) {
		enum stream s = r->both ? stream_of(process, (enum stream)log) : r->stream;
		uint64_t since = since_offset(lr, rank, ret->at.attempt, s, r->since_ms, r->follow);

		ret->from[log] = wanted[log] > ret->base[log] ? wanted[log] - ret->base[log] : 0;
		ret->from[log] = since > ret->from[log] ? since : ret->from[log];
	}
}

static void put_offset(struct api_call *c, const char *header, uint64_t offset)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)offset);
	http_add_header(c->x, header, text);
}

/* Moves the place on to the last lines that were asked for. */
static int move_to_tail(const struct live_run *lr, const struct log_request *r,
			const int fds[static ORDER_LOGS], const uint64_t sizes[static ORDER_LOGS],
			struct log_place *p, struct err *err)
{
	uint64_t tail[ORDER_LOGS] = {0};
	char base[LOG_NAME_MAX];

	if (r->tail < 0)
		return 0;
	process_log_base(lr, p->at.rank, p->at.process, p->at.attempt, base);
	if (log_order_tail(lr->logs_dir, base, fds, sizes, (uint64_t)r->tail, tail, err) < 0)
		return -1;
	for (int log = 0; log < ORDER_LOGS; log++)
		p->from[log] = tail[log] > p->from[log] ? tail[log] : p->from[log];
	return 0;
}

/* Replies with standard output and standard error in the order of arrival, or with one of them,
 * in pieces. */
static int reply_pieces(struct api_call *c, struct live_run *lr, const struct log_request *r,
			struct log_place *p, struct err *err)
{
	uint64_t sizes[ORDER_LOGS] = {0};
	int fds[ORDER_LOGS] = {-1, -1};
	int rc = 0;

	for (int log = 0; log < ORDER_LOGS && rc == 0; log++)
		if (!p->at.skip[log] &&
		    open_log(lr, p->at.rank, p->at.attempt,
			     stream_of(p->at.process, (enum stream)log), &fds[log], &sizes[log],
			     err) < 0 &&
		    err->kind != ERR_NOT_FOUND)
			rc = -1;
	if (rc == 0)
		rc = move_to_tail(lr, r, fds, sizes, p, err);
	if (rc == 0) {
		int first = p->at.skip[ORDER_OUT] ? ORDER_ERR : ORDER_OUT;
		put_offset(c, "Regatta-Offset", p->base[first] + p->from[first]);
		if (r->both)
			put_offset(c, "Regatta-Err-Offset",
				   p->base[ORDER_ERR] + p->from[ORDER_ERR]);
		watch_pieces(c->m->watch, lr, c->x, &p->at, fds, p->from);
		return 0;
	}
	for (int log = 0; log < ORDER_LOGS; log++)
		if (fds[log] >= 0)
			close(fds[log]);
	live_run_done(lr);
	return -1;
}

/* One stream is the first log of its place; as pieces it has the place that its kind has. */
static void place_in_pieces(const struct log_request *r, struct log_place *p)
{
	int log = (int)stream_kind(r->stream);

	p->at.times = r->times;
	if (r->both)
		return;
	p->at.skip[ORDER_LOGS - 1 - log] = true;
	if (log == ORDER_ERR) {
		p->base[ORDER_ERR] = p->base[ORDER_OUT];
		p->from[ORDER_ERR] = p->from[ORDER_OUT];
	}
	p->from[ORDER_LOGS - 1 - log] = 0;
}

static int reply_log(struct api_call *c, struct live_run *lr, const struct log_request *r,
		     struct log_place *p, struct err *err)
{
	uint64_t size = 0, from = p->from[0];
	int fd = -1;

	if (open_log(lr, p->at.rank, p->at.attempt, r->stream, &fd, &size, err) < 0) {
		if (err->kind != ERR_NOT_FOUND) {
			live_run_done(lr);
			return -1;
		}
		http_add_header(c->x, "Regatta-Offset", "0");
		http_reply(c->x, 200, "application/octet-stream", STR(""));
		live_run_done(lr);
		return 0;
	}
	from = from < size ? from : size;
	uint64_t tail = 0;
	if (r->tail >= 0 && logfile_tail_offset(fd, (uint64_t)r->tail, &tail, err) < 0) {
		close(fd);
		live_run_done(lr);
		return -1;
	}
	from = tail > from ? tail : from;
	put_offset(c, "Regatta-Offset", p->base[0] + from);
	bool more = p->at.all && p->at.attempt < run_attempts(lr, p->at.rank);
	if (r->follow || (more && r->limit == INT64_MAX)) {
		watch_log(c->m->watch, lr, c->x, &p->at, r->stream, fd, from);
		return 0;
	}
	int64_t len = (int64_t)(size - from);
	http_reply_file(c->x, 200, "application/octet-stream", fd, (int64_t)from,
			len < r->limit ? len : r->limit);
	live_run_done(lr);
	return 0;
}

int api_run_log(struct api_call *c, struct err *err)
{
	struct log_request r = {0};
	struct log_place place;
	struct live_run *lr;

	if (log_request(c, &r, err) < 0 || (r.follow && api_stream_allowed(c, err) < 0) ||
	    !(lr = api_run(c, err)))
		return -1;
	int process, rank = run_find_process(lr, c->params[1], &process);
	if (rank < 0 || r.attempt > run_attempts(lr, rank)) {
		if (rank < 0)
			err_set(err, ERR_NOT_FOUND, "run '%s' has no node '%.*s'", lr->row.id,
				STR_ARG(c->params[1]));
		else
			err_set(err, ERR_NOT_FOUND, "%.*s has had %d attempt%s, not %lld",
				STR_ARG(c->params[1]), run_attempts(lr, rank),
				run_attempts(lr, rank) == 1 ? "" : "s", (long long)r.attempt);
		live_run_done(lr);
		return -1;
	}
	r.stream = stream_of(process, r.stream);
	find_place(lr, rank, process, &r, &place);
	if (!r.both && !r.times)
		return reply_log(c, lr, &r, &place, err);
	place_in_pieces(&r, &place);
	return reply_pieces(c, lr, &r, &place, err);
}
