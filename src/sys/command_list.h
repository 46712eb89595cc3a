#pragma once
/* command_list - shell commands that run one after the other, as on_exit of a suite does.  It blocks: call it
 * from a thread that may. */
#include <stdbool.h>
#include <stddef.h>

struct deadline;

struct command_list {
	const char *dir;	     /* in which they run */
	const char *log;	     /* file to which their output is appended */
	const char *const *commands; /* for /bin/sh */
	size_t n;
	const char *const *env; /* NULL-terminated */
	int each_ms;		/* how long one may take */
	/* Set by command_list_run(): */
	bool done;	  /* all have run, to whatever end; false: it was stopped before */
	char failed[200]; /* the first that failed, and how, and how many more; "": none */
};

/* All of them run, also after one that failed. */
void command_list_run(struct command_list *c, const struct deadline *d);
