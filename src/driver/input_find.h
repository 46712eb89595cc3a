#pragma once
/*
 * input_find - what an input of a job consists of that nodes fetch by themselves: https://... is one
 * file, s3://bucket/key an object, or all objects below it.
 *
 * It is asked when the job is submitted or planned.  Calls block until the deadline.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct deadline;
struct doc;
struct err;

struct input_question {
	const char *url;
	/* it goes into a directory under its own name, which is that of its last part; else it is a file at
	 * the place of the input */
	bool in_dir;
	size_t shards; /* into which the objects are dealt out; 0 is 1 */
	const struct doc
		*options; /* of the engine (plan_engine_options()), for its credentials; NULL */
};

struct input_found {
	const char *
		from; /* names of the list are below this, or it is the one object (in the arena) */
	uint64_t objects;
	uint64_t bytes, largest_shard; /* sizes that are not known count as 0 */
	bool sized;		       /* all sizes are known */
};

/* Writes the list (fmt/object_list.h) to fd; -1: nowhere.  ERR_NOT_FOUND if there is no object.  A server
 * of https:// that cannot be reached from here, or does not tell, is no error: nodes will see. */
int input_find(const struct input_question *q, int fd, const struct deadline *d, struct arena *a,
	       struct input_found *ret, struct err *err);
