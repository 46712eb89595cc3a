#pragma once
/*
 * target - the master that a command talks to: the user's own on its socket, or one that a context
 * or a URL names.
 *
 * The order: --master, REGATTA_MASTER, the current context, the own one.  A URL given directly
 * takes its pin and token from REGATTA_PIN and REGATTA_TOKEN, or from the context that has the URL.  http:// is for this machine only.
 */
#include <stdbool.h>
#include "fmt/http_url.h"

struct err;
struct http_client;

struct target {
	char *home; /* the user's own state directory, for any master */
	char *name; /* of another master, for messages: the name of a context or a URL */
	char *pin;  /* NULL: checked by a trusted CA */
	char *token;
	char *way; /* NULL, or its URL, if its provider passes requests on to it (driver/master_way.h) */
	struct http_url url; /* only host, port and tls are set; of no use with a way */
	bool remote;
};

/* wanted: the value of --master, or NULL.  Owned: target_free(). */
int target_find(const char *wanted, struct target **ret, struct err *err);
/* The user's own master, whatever the environment and contexts say. */
int target_find_own(struct target **ret, struct err *err);
/* Another master by its parts; pin may be NULL.  Nothing is dialled. */
int target_new(const char *name, const char *url, const char *pin, const char *token,
	       struct target **ret, struct err *err);
/* NULL allowed.  Returns NULL. */
struct target *target_free(struct target *t);

/* Dial another master.  ERR_UNAVAILABLE: not reached in time; ERR_DENIED: not trusted.  Both name
 * the master. */
int target_dial(const struct target *t, int timeout_ms, const volatile int *stop,
		struct http_client **ret, struct err *err);
