#pragma once
/*
 * paddle - the flags of Paddle's AWS benchmark tool, turned into the document tree of a native job.
 *
 * docs/paddle.md has the table of flags.  Pure: the flags in, a tree out.
 */

struct arena;
struct doc;
struct problems;

/* flags: a table of strings, the names without dashes; a flag that was not given is missing. */
struct doc *paddle_job(struct doc *flags, struct arena *a, struct problems *ps);
