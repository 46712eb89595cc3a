#pragma once
/*
 * loop - the one thread that owns the state: descriptors, timers, signals.
 *
 * libevent is hidden here.  Callbacks run on the loop thread only.  A hook set with
 * loop_after_round() runs after each round of callbacks, before the loop sleeps; group commits use it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct loop_timer;
struct loop_io;

#define LOOP_READ 1
#define LOOP_WRITE 2

typedef void (*loop_fn)(void *ctx);
typedef void (*loop_io_fn)(void *ctx, int fd, int events);
typedef void (*loop_signal_fn)(void *ctx, int signo);

struct loop *loop_new(void);
struct loop *loop_free(struct loop *l);
void loop_run(struct loop *l); /* until loop_stop */
void loop_stop(struct loop *l);
/* One round: wait at most max_wait_ms (-1: no limit). */
void loop_round(struct loop *l, int max_wait_ms);
void loop_after_round(struct loop *l, loop_fn fn, void *ctx);
/* Run fn soon, from the loop, never from inside this call.  Loop thread only. */
void loop_soon(struct loop *l, loop_fn fn, void *ctx);

struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *ctx);
void loop_timer_set(struct loop_timer *t,
		    int64_t delay_ms); /* one shot; replaces an earlier setting */
void loop_timer_cancel(struct loop_timer *t);
struct loop_timer *loop_timer_free(
	struct loop_timer *t); /* NULL allowed; safe inside its own callback */

/* Level-triggered.  The descriptor stays the caller's. */
struct loop_io *loop_io_new(struct loop *l, int fd, int events, loop_io_fn fn, void *ctx);
void loop_io_set(struct loop_io *io, int events); /* 0 = pause */
struct loop_io *loop_io_free(struct loop_io *io); /* safe inside its own callback */

void loop_on_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx);

/*
 * For expensive steps that many peers can ask for at once, such as TLS handshakes: true LOOP_COSTLY
 * times per round.  On false the callback returns without reading; being level-triggered, its
 * descriptor comes again in the next round, after those who wait longer.
 */
#define LOOP_COSTLY 32
bool loop_take_costly(struct loop *l);

/* A read buffer of LOOP_SCRATCH bytes shared by everything on this loop, so that idle connections need
 * none.  Its content is valid inside one callback only. */
#define LOOP_SCRATCH (256 * 1024)
void *loop_scratch(struct loop *l);

/* The libevent base, for net/ and link/ only. */
struct event_base *loop_event_base(struct loop *l);
