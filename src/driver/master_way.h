#pragma once
/*
 * master_way - the ways to a master on a machine of a provider, by its URL.
 *
 * https:// is dialled, and the key of the master is known by its pin.  Other schemes are of providers that pass requests
 * on to their machines; they are a table (master_way.c), and nobody else knows one.  The token of the master goes beside
 * what the provider asks for.
 */
#include <stdbool.h>

struct deadline;
struct driver_master;
struct err;
struct http_client;

/* Is it the URL of a master that its provider passes requests on to? */
bool master_way_is(const char *url);
/* credentials: JSON, as in driver_row; NULL: what this process finds for itself.  Dials within the deadline. */
int master_way_dial(const struct driver_master *at, const char *credentials,
		    const struct deadline *d, struct http_client **ret, struct err *err);

/* ---- for the files that know a scheme ---- */

struct master_way {
	const char *scheme; /* "kube://" */
	int (*dial)(const struct driver_master *at, const char *credentials,
		    const struct deadline *d, struct http_client **ret, struct err *err);
};

extern const struct master_way kube_way;
