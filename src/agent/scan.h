#pragma once
/*
 * scan - extract metrics from the spool files and report them with the scanned range.
 *
 * Until the stream has ended only whole lines are scanned.  A METRICS frame has the range [from,to)
 * and all samples in it; the master counts a range once.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/message.h"
#include "base/buf.h"
#include "link/frame.h"

struct conn;
struct err;
struct extract;

#define SCAN_MS 50		    /* how long samples are gathered before a frame is sent */
#define SCAN_SAMPLES 512	    /* per frame */
#define SCAN_CHUNK (64 * 1024)	    /* bytes per read */
#define SCAN_TURN (4 * 1024 * 1024) /* bytes per call of scan_stream */
#define SCAN_REPORT (1024 * 1024)   /* a range without samples is reported in steps of this */

struct scan_stream {
	uint64_t pos;	   /* scanned so far */
	uint64_t reported; /* told to the master on this connection */
};

struct scan {
	struct extract *ex; /* NULL until needed, if there are no patterns */
	const char *prefix;
	struct scan_stream s[STREAMS_MAX];
	struct buf items; /* samples of the frame being made, JSON, comma-separated */
	size_t nitems;
	uint64_t bad;
	int64_t time_ms;
};

void scan_init(struct scan *sc);
void scan_release(struct scan *sc);
/* Compile the patterns of `in`, replacing earlier ones.  in->metric_prefix must outlive sc. */
int scan_patterns(struct scan *sc, const struct message_inputs *in, struct err *err);
void scan_resume(struct scan *sc, const uint64_t scanned[static STREAMS_MAX]);
/* Scan [pos, size) of a stream from fd and send frames; `ended`: size is final.  scratch has SCAN_CHUNK bytes.  Stops
 * early when the connection's queue is long or SCAN_TURN bytes were scanned: false, call again. */
bool scan_stream(struct scan *sc, enum stream s, int fd, uint64_t size, bool ended, struct conn *c,
		 void *scratch);
/* Were the streams reported up to these lengths? */
bool scan_done(const struct scan *sc, const uint64_t lengths[static STREAMS_MAX]);
