#pragma once
/* run_filter - which runs a list is asked for. */
#include <stdbool.h>
#include <stdint.h>
#include "fmt/schema.h"

struct err;
struct run_row;
struct url_query;

struct run_filter {
	unsigned states;	   /* a bit for each enum run_phase; 0: all */
	bool active;		   /* all of them are before the end */
	const char *name, *engine; /* globs; NULL: any */
	struct strs tags;	   /* all of them */
	int64_t since_ms;	   /* created then or later */
	bool any;		   /* does it leave out any but ended runs? */
};

/* Reads state, name, engine, tag and since of a query.  The texts must live as long as the filter. */
int run_filter_read(const struct url_query *q, struct arena *a, struct run_filter *ret,
		    struct err *err);
bool run_filter_fits(const struct run_filter *f, const struct run_row *row);
