#pragma once
/*
 * records - writes files of ended runs that a crash has prevented.
 *
 * The end of a run is committed first and its files are written afterwards, and a master may be
 * killed in between.  After the start the newest runs are checked, and the files of one run are
 * written per turn of the loop, so that a start takes little time however many are missing.
 */
struct master;
struct records;

struct records *records_new(struct master *m);
/* NULL is allowed.  Call it after the loop has stopped. */
struct records *records_free(struct records *r);
/* Begins with the next turn of the loop. */
void records_check(struct records *r);
