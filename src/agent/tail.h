#pragma once
/* tail - the last bytes that a failed job has written, for the report of its end. */
#include <stdbool.h>
#include "base/buf.h"

struct exit_report;
struct relay;

struct tail {
	bool wanted;
	struct buf text;
};

/* A job starts.  tail.text is the caller's to release. */
void tail_begin(struct tail *t, bool wanted);
/* Adds it to the report of a job that failed, if it is wanted; the text stays here. */
void tail_take(struct tail *t, struct relay *r, struct exit_report *e);
