#pragma once
/*
 * prices - a list of prices in place of the one in the program: CSV with a first line that names the
 * columns, "type" and "usd_per_hour" among them.  Rows without a price are left out.
 */
struct arena;
struct doc;
struct err;

/* *ret: {"prices": {type: millionths of a US dollar per hour}, "prices_as_of": FILE}, as facts of a plan. */
int prices_read(const char *path, struct arena *a, struct doc **ret, struct err *err);
