#pragma once
/*
 * nest_child - one process of a nest: what it is called with, again and again.
 *
 * A child that has done its work and left nothing behind waits to be used again:
 * that costs a tenth of a new fork and its end.  All that wait share one end of a
 * socket, so whoever is awake takes what the nest puts in; the nest learns who it
 * was from the answer.
 */
#include <stddef.h>
#include <stdint.h>
#include "sys/nest.h"

/* What a child says to its nest. */
struct nest_word {
	int64_t pid;
	int64_t answer; /* to a request: its pid, or minus an errno; 0: it has nothing to do */
};

#define NEST_REQUEST_MAX (16 * 1024)
#define NEST_LEAVE "" /* instead of a request: whoever takes it ends */

struct nest_home {
	const struct nest_role *role;
	const char *name; /* what ps shows of a child that waits */
	char *mark;	  /* in our environment */
	int yard;	  /* where children wait */
};

/* "mark\0arg\0log\0" */
bool nest_request_parse(char *text, size_t n, struct nest_child *ret);
/* Standard output and error of the next child; -1 and errno. */
int nest_open_log(const char *path);
/* The life of a forked process. */
void nest_child_main(const struct nest_home *home, const struct nest_child *first, int log)
	__attribute__((noreturn));
