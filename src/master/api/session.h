#pragma once
/*
 * session - sessions of browsers, begun with a one-time link.
 *
 * A code is valid once and for two minutes; it becomes a session, which is valid for twelve
 * hours, also over restarts of the master.  Only the SHA-256 of codes and sessions is kept.
 * Callers pass in the time of the wall clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "master/api/auth.h"
#include "net/digest.h"

#define SESSION_CODE_MS (2 * 60 * 1000)
#define SESSION_MS (12 * 60 * 60 * 1000)
/* limit of codes and of sessions; the one that expires first is replaced */
#define SESSION_MAX 64
/* followed by the port: cookies do not tell ports apart */
#define SESSION_COOKIE "regatta_session_"

/* What is stored of a session. */
struct session {
	uint8_t hash[SHA256_BYTES];
	enum api_auth scope;
	int64_t until_ms;
};

struct sessions;
struct sessions *sessions_new(void);
struct sessions *sessions_free(struct sessions *s);
/* Makes a code (64 hex digits) for a session of this scope. */
void session_code(struct sessions *s, enum api_auth scope, int64_t now_ms, char code[static 65]);
/* Uses up the code; false if it is unknown, used or expired.  *ret_forgotten: serial of the
 * session that was overwritten by the new one, or 0. */
bool session_begin(struct sessions *s, struct str code, int64_t now_ms, char secret[static 65],
		   uint32_t *ret_forgotten);
/* The scope of the session with this secret; 0: no such session.  *ret_serial (may be NULL)
 * identifies the session; it is never 0. */
enum api_auth session_scope(const struct sessions *s, struct str secret, int64_t now_ms,
			    uint32_t *ret_serial);
/* Ends the session.  Returns its serial, or 0 if there is none. */
uint32_t session_end(struct sessions *s, struct str secret);
/* Removes one expired session.  Returns its serial, or 0 if none is left. */
uint32_t session_expire(struct sessions *s, int64_t now_ms);
/* sessions_each() gives all sessions, to be stored; session_restore() adds one that an earlier
 * master stored.  It is ignored if it has expired, or would last longer than a new one. */
void sessions_each(const struct sessions *s, void (*fn)(void *ctx, const struct session *one),
		   void *ctx);
void session_restore(struct sessions *s, const struct session *one, int64_t now_ms);
