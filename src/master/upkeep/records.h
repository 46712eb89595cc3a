#pragma once
/*
 * records - the files of ended runs that a crash kept from being written.
 *
 * The end of a run is committed first, its files are written afterwards, and a master may be
 * killed in between.  After the start the newest runs are checked, and one is written in each
 * turn of the loop, so that a start costs little whatever is missing.
 */
struct master;
struct records;

struct records *records_new(struct master *m);
struct records *records_free(
	struct records *r); /* NULL is allowed; not before the loop has stopped */
/* Begins with the next turn of the loop. */
void records_check(struct records *r);
