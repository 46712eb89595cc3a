#pragma once
/*
 * browser_gateway - a port of this machine for browsers, to a master that only commands reach (driver/master_way.h).
 *
 * The page is that of this program.  Requests below /api/ go on to the master with its token, and their answers come
 * back as they arrive, streams too.  A browser logs in as it does at a master: with a one-time link, whose session is a
 * cookie; Host and Origin are checked in the same way.
 */
#include "base/str.h"

struct buf;
struct err;
struct target;
struct browser_gateway;

/* Listens on a free port of the loopback address.  `to` must outlive it; run: what the browser shows first. */
int browser_gateway_open(const struct target *to, const char *run, struct browser_gateway **ret,
			 struct err *err);
/* Appends a link that works once, within two minutes. */
void browser_gateway_link(struct browser_gateway *g, struct buf *out);
/* Serves until SIGINT, SIGTERM or SIGHUP. */
void browser_gateway_run(struct browser_gateway *g);
/* NULL is allowed.  Returns NULL. */
struct browser_gateway *browser_gateway_free(struct browser_gateway *g);
