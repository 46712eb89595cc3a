#pragma once
/*
 * session - browsers that came in by a one-time link.
 *
 * A code is good once and for two minutes; it becomes a session, which is good for
 * twelve hours, also over restarts of the master.  Of both only the SHA-256 is kept.  The time,
 * of the wall clock, comes in with each call.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "master/api/auth.h"
#include "net/digest.h"

#define SESSION_CODE_MS (2 * 60 * 1000)
#define SESSION_MS (12 * 60 * 60 * 1000)
#define SESSION_MAX 64			  /* of each; the oldest is forgotten for a new one */
#define SESSION_COOKIE "regatta_session_" /* and the port: cookies know none of their own */

/* What is kept of a session. */
struct session {
	uint8_t hash[SHA256_BYTES];
	enum api_auth scope;
	int64_t until_ms;
};

struct sessions;
struct sessions *sessions_new(void);
struct sessions *sessions_free(struct sessions *s);
/* A new code (64 hex digits) for a session of this scope. */
void session_code(struct sessions *s, enum api_auth scope, int64_t now_ms, char code[static 65]);
/* Spends the code; false if it was never given, spent, or is too old.  *ret_forgotten: the serial of
 * the session that had to go for this one, or 0. */
bool session_begin(struct sessions *s, struct str code, int64_t now_ms, char secret[static 65],
		   uint32_t *ret_forgotten);
/* What the holder of the secret may do; 0: nothing.  *ret_serial (may be NULL) tells sessions
 * apart; it is never 0. */
enum api_auth session_scope(const struct sessions *s, struct str secret, int64_t now_ms,
			    uint32_t *ret_serial);
/* The serial of the session that is over now, or 0. */
uint32_t session_end(struct sessions *s, struct str secret);
/* Forgets one whose time is over: its serial, or 0 when there is none left. */
uint32_t session_expire(struct sessions *s, int64_t now_ms);
/* All of them, for whoever writes them down, and one that was written down by an earlier master; it
 * is ignored if its time is over or would be longer than that of a new one. */
void sessions_each(const struct sessions *s, void (*fn)(void *ctx, const struct session *one),
		   void *ctx);
void session_restore(struct sessions *s, const struct session *one, int64_t now_ms);
