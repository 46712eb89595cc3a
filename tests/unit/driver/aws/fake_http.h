#pragma once
/*
 * fake_http - a server on loopback that answers as a test says, on threads of its own, and keeps
 * what it was asked.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FAKE_MAX_ASKED 256

struct fake_asked {
	char *head; /* request line and headers */
	char *body;
	size_t body_n;
};

struct fake_http;
/* One request; `nth` counts them all from 0 on.  Write with fake_say..., false: hang up. */
typedef bool (*fake_fn)(struct fake_http *f, int fd, int nth, const struct fake_asked *asked);

struct fake_http {
	fake_fn answer;
	void *ctx;

	int port;
	char url[64];
	pthread_mutex_t lock;
	struct fake_asked asked[FAKE_MAX_ASKED];
	atomic_int n; /* how many */
	atomic_int quit;
	int fd;
	pthread_t thread, conns[FAKE_MAX_ASKED];
	atomic_int nconns;
};

void fake_start(struct fake_http *f);
void fake_stop(struct fake_http *f);
/* A whole answer; `headers` are lines with \r\n, or "".  It has a request id unless they name one. */
void fake_say(int fd, int status, const char *headers, const char *body);
void fake_say_bytes(int fd, int status, const char *headers, const void *body, size_t n);
void fake_raw(int fd, const char *text);
/* The value of a header of a request, in a static buffer of the thread; NULL if it is not there. */
const char *fake_header(const struct fake_asked *a, const char *name);
/* Is it a request of this beginning ("GET /x")? */
bool fake_is(const struct fake_asked *a, const char *begin);
