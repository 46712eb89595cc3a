#pragma once
/*
 * reports - report.html and metrics.csv of a run, made in the background.
 *
 * The facts are read at once, the samples in pieces (feed.h); the files are written by the
 * reporter's thread under another name and appear whole, or not at all.
 */
#include <stdint.h>

struct err;
struct http_exchange;
struct live_run;

enum report_want { REPORT_PAGE = 1, REPORT_TABLE = 2, REPORT_BOTH = 3 };

/* With x: it is answered with the file, or with the names of both.  The run is not used after the
 * return. */
int report_start(struct live_run *lr, enum report_want want, struct http_exchange *x,
		 struct err *err);
/* Answers with such a file; takes over fd. */
void report_reply(struct http_exchange *x, enum report_want want, int fd, int64_t size);
