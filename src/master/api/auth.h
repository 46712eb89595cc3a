#pragma once
/*
 * auth - who calls, and what they may do.
 *
 * Over the unix socket the caller is the user who owns the master: admin.  Over TCP
 * a caller shows a token (of the user, in $REGATTA_HOME/token, or one made for a
 * purpose, with a scope and perhaps an end) or the cookie of a session.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct api_call;
struct err;
struct master;

/* Who may call a route, and what a caller may do: each includes those before it.  There is no
 * default: a route without a class does not compile. */
enum api_auth {
	API_OPEN = 1, /* anybody who can connect */
	API_READ,
	API_SUBMIT,
	API_ADMIN,
};
const char *scope_name(enum api_auth scope);
bool scope_from(struct str name, enum api_auth *ret);

#define AUTH_MAX_TOKENS 1000
#define AUTH_MAX_NAME 64

/* Reads the tokens; makes the user's own if there is none. */
int auth_open(struct master *m, struct err *err);
void auth_close(struct master *m);
/* From the loop, every second or so: ends what is over, writes down when tokens were used. */
void auth_tick(struct master *m);
/* What the caller may do, of a route that needs `need`.  0: refused; err and *ret_status say
 * why.  c->holder tells which token or session it was. */
enum api_auth auth_check(struct api_call *c, enum api_auth need, int *ret_status, struct err *err);

/* Both in one pointer, kept with the exchange. */
void *auth_user(enum api_auth scope, uint32_t holder);
enum api_auth auth_user_scope(const void *user);

/* Handlers. */
int api_me(struct api_call *c, struct err *err);
int api_login_code(struct api_call *c, struct err *err);
int api_login(struct api_call *c, struct err *err);
int api_logout(struct api_call *c, struct err *err);
int api_tokens_list(struct api_call *c, struct err *err);
int api_token_new(struct api_call *c, struct err *err);
int api_token_revoke(struct api_call *c, struct err *err);
