#pragma once
/*
 * tokens - the user's own token ($REGATTA_HOME/token) and those made for a purpose.
 *
 * There are few: they are kept in memory and in the store, and a given token is compared with
 * all of them in constant time.  The texts of two tokens are in files that only the user can
 * read: the user's own, and the one with which hosts join ($REGATTA_HOME/join), which a master
 * prints when it starts.
 */
#include <stdint.h>
#include "base/str.h"
#include "master/api/auth.h"

#define TOKENS_MAX_TOKENS 1000
#define TOKENS_MAX_NAME 64

struct tokens;

/* Loads the tokens; makes the user's own token if there is none. */
struct tokens *tokens_new(struct master *m, struct err *err);
/* Stores when the tokens were last used.  NULL is allowed. */
struct tokens *tokens_free(struct tokens *t);
/* The scope of this token; 0: no such token.  *ret_holder stays 0 for the user's own. */
enum api_auth tokens_scope(struct tokens *t, struct str text, uint32_t *ret_holder);
/* The token with which hosts join; no route of the API takes it.  It is made at the first call,
 * and again after it was revoked or has expired. */
#define TOKENS_TEXT 65
int tokens_join(struct tokens *t, char out[static TOKENS_TEXT], struct err *err);
/* Closes the streams of tokens that have ended; stores when tokens were last used. */
void tokens_tick(struct tokens *t);

int api_tokens_list(struct api_call *c, struct err *err);
int api_token_new(struct api_call *c, struct err *err);
int api_token_revoke(struct api_call *c, struct err *err);
