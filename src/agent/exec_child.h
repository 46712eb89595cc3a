#pragma once
/*
 * exec_child - the process of a command that runs beside the job: on the node, or in the job's container.
 */
#include <sys/types.h>

struct agent;
struct arena;
struct err;
struct message_exec;

enum { EXEC_IN, EXEC_OUT, EXEC_ERR, EXEC_PIPES };

struct exec_child {
	pid_t pid;	    /* 0: it was reaped */
	int fd[EXEC_PIPES]; /* -1: closed.  With a terminal IN and OUT are two descriptors of it. */
	/* Of a command in a container: the FIFO that ends it there (inside.h). */
	int line; /* -1: it runs on the node itself */
	char *line_path;
};
#define EXEC_NO_CHILD                                                                              \
	(struct exec_child)                                                                        \
	{                                                                                          \
		.fd = {-1, -1, -1}, .line = -1                                                     \
	}

/* ERR_UNAVAILABLE: the node runs no job. */
int exec_child_start(struct agent *a, const struct message_exec *m, struct arena *mem,
		     struct exec_child *ret, struct err *err);
/* To its process group. */
void exec_child_signal(const struct exec_child *c, int signo);
void exec_child_kill(struct exec_child *c);
/* Closes what is open; a command in a container that still runs is killed. */
void exec_child_release(struct exec_child *c);
