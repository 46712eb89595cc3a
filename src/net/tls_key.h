#pragma once
/*
 * tls_key - the key of a server that somebody else starts: made from a secret, so that its pin is known
 * before the server is there.
 */
#include <stddef.h>
#include "base/str.h"
#include "net/tls.h"

struct buf;
struct err;

/* Appends a P-256 key as PEM, to be the server's tls.key, and gives its pin.  The same secret gives the
 * same key; it must have at least 32 unpredictable bytes. */
int tls_key_of_secret(struct str secret, struct buf *out, char pin[static TLS_PIN_SIZE],
		      struct err *err);
