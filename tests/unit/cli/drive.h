#pragma once
/* drive - run the command line in a child process against a fake master, and look at what it
 * said. */
#include "unit.h"

#include <sys/types.h>

#include "base/buf.h"

struct ran {
	int code; /* exit code, or 128 + signal */
	struct buf out, err;
};
void ran_release(struct ran *r);

/* Setup and teardown: *state is a home directory; the teardown ends its master. */
int drive_setup(void **state);
int drive_teardown(void **state);

void home_put(void **state, const char *name, const char *text);
/* The whole file, or "".  Owned. */
char *home_get(void **state, const char *name);
/* How often a text occurs in a file of the home directory. */
int home_count(void **state, const char *name, const char *text);
/* Wait until the text occurs so often in the file; the test fails after 10 s. */
void home_await(void **state, const char *name, const char *text, int times);

/* argv without the program, NULL-terminated. */
struct ran drive(void **state, const char *const *argv);
#define DRIVE(state, ...) drive((state), (const char *const[]){__VA_ARGS__, NULL})
/* The same in two steps, so that the test can act while the command runs. */
struct driven {
	pid_t pid;
	int out, err; /* descriptors of the files that its output goes to; tty: the master side */
};
struct driven drive_begin(void **state, const char *const *argv);
#define DRIVE_BEGIN(state, ...) drive_begin((state), (const char *const[]){__VA_ARGS__, NULL})
/* Wait until the command has written this text to stderr; the test fails after a while. */
void drive_await(struct driven d, const char *text);
struct ran drive_end(struct driven d);

/* Somebody who reads one byte of stdout and goes away, for the next command that begins. */
void drive_short_reader(void **state);

/* With stdout and stderr on a terminal of this size.  Returns everything that was written to it. */
struct ran drive_tty(void **state, int columns, int rows, const char *const *argv);
#define DRIVE_TTY(state, columns, rows, ...)                                                       \
	drive_tty((state), (columns), (rows), (const char *const[]){__VA_ARGS__, NULL})

void assert_has(const struct buf *b, const char *text);
void assert_has_not(const struct buf *b, const char *text);
/* The command ends with this code, this message on stderr and nothing on stdout. */
void assert_refused(void **state, int code, const char *message, const char *const *argv);
#define REFUSED(state, code, message, ...)                                                         \
	assert_refused((state), (code), (message), (const char *const[]){__VA_ARGS__, NULL})
