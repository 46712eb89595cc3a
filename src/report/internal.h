#pragma once
/* Shared by the files of the report. */
#include "base/buf.h"
#include "base/err.h"
#include "report/chart.h"
#include "report/report.h"
#include "report/text.h"

#define OUT_BYTES (256u << 10) /* buffered before a write */
#define OUT_MAX (16u << 20)    /* most bytes of one piece between two flushes */

/* A file that is written in pieces; the first failure is kept. */
struct out {
	int fd;
	struct buf text;
	struct err err;
};
void out_init(struct out *o, int fd);
void out_flush(struct out *o);
static inline void out_room(struct out *o)
{
	if (o->text.n >= OUT_BYTES)
		out_flush(o);
}

struct report {
	const struct report_run *run;
	struct out html, csv;
	struct chart_line *lines; /* of each series; buckets == NULL: not drawn */
	struct time_text time;
	/* The CSV columns between the time and the step, encoded once per series. */
	struct buf before;
	size_t at; /* the series of `before` */
};

/* page.c */
void report_page(struct report *r);
/* The beginning of a page: title, and state as a badge, up to the text of the line below. */
void page_open(struct buf *b, const char *id, const char *state);
/* page_metrics.c: charts and tables of the job's metrics, or of the machines. */
void page_metrics(struct report *r, bool host);
/* page_style.c */
extern const char report_style[];
#define PAGE_MAX_CHARTS 200
#define PAGE_MAX_LINES 16 /* nodes drawn in one chart */
#define PAGE_MAX_NODES 1000
#define PAGE_MAX_ROWS 32   /* nodes in the table of one metric */
#define CHART_POINTS 60000 /* buckets of the whole report */
#define CHART_BUCKETS 350  /* of one line: two points in each, about a pixel apart */
