#pragma once
/*
 * tokens - the user's own token ($REGATTA_HOME/token) and those made for a purpose.
 *
 * They are few and live in memory beside the store; all are compared, in constant time.  Secrets are
 * written to two files that only the user can read: the user's own token, and the one with which
 * hosts join ($REGATTA_HOME/join), because a master shows it whenever it starts.
 */
#include <stdint.h>
#include "base/str.h"
#include "master/api/auth.h"

#define TOKENS_MAX_TOKENS 1000
#define TOKENS_MAX_NAME 64

struct tokens;

/* Reads the tokens; makes the user's own if there is none. */
struct tokens *tokens_new(struct master *m, struct err *err);
/* Writes down when they were used last.  NULL is allowed. */
struct tokens *tokens_free(struct tokens *t);
/* What the holder of this token may do; 0: nothing.  *ret_holder stays 0 for the user's own. */
enum api_auth tokens_scope(struct tokens *t, struct str text, uint32_t *ret_holder);
/* The token with which hosts join, which no route of the API takes.  Made at the first call, and anew
 * when it was revoked or is over. */
#define TOKENS_TEXT 65
int tokens_join(struct tokens *t, char out[static TOKENS_TEXT], struct err *err);
/* Cuts the streams of tokens that are over; writes down when tokens were used. */
void tokens_tick(struct tokens *t);

int api_tokens_list(struct api_call *c, struct err *err);
int api_token_new(struct api_call *c, struct err *err);
int api_token_revoke(struct api_call *c, struct err *err);
