#pragma once
/*
 * auth - identifies the caller of the API and what it may do.
 *
 * Over the unix socket the caller is the user who owns the master, with the scope admin.  Over
 * TCP a caller sends a token (the user's own, in $REGATTA_HOME/token, or one made for a purpose,
 * with a scope and perhaps an end: tokens.h) or the cookie of a session (login.h).  Wrong tokens
 * are limited per address (limiter.h).
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct api_call;
struct doc;
struct err;
struct http_exchange;
struct limiter;
struct logins;
struct master;
struct tokens;

/* Who may call a route, and what a caller may do.  Each scope includes those before it.  There
 * is no default: a route without a scope does not compile. */
enum api_auth {
	API_OPEN = 1, /* anybody who can connect */
	API_JOIN,     /* a host that joins: no route needs this scope */
	API_READ,
	API_SUBMIT,
	API_ADMIN,
	API_NODE, /* the node that the path names, with its own token; includes no other scope */
};
const char *scope_name(enum api_auth scope);
/* Parses read, submit or admin: the scopes for people. */
bool scope_from(struct str name, enum api_auth *ret);

struct auth {
	struct tokens *tokens;
	struct logins *logins;
	struct limiter *failures;
};

struct auth *auth_new(struct master *m, struct err *err);
struct auth *auth_free(struct auth *a);
/* The loop calls this about every second. */
void auth_tick(struct auth *a);
/* The scope of the caller of a route that needs `need`; c->holder is set.  0: refused; err and
 * *ret_status are set. */
enum api_auth auth_check(struct api_call *c, enum api_auth need, int *ret_status, struct err *err);
/* What a caller without a token has to do.  On another machine the files of this one are no help. */
const char *auth_token_advice(struct str peer);
/* Counts a wrong token from the caller's address; false: there were too many. */
bool auth_failed(const struct api_call *c);

/* A holder is a token or a session: 0 is the user's own token, other tokens have even numbers,
 * sessions odd ones.  All callers over the unix socket are one holder. */
#define AUTH_LOCAL 1 /* free, because no session has the serial 0 */
#define AUTH_NODE UINT32_MAX
uint32_t auth_token_holder(uint32_t number);
uint32_t auth_session_holder(uint32_t serial);
/* Closes the streams that were opened with a token or session that has ended. */
void auth_cut_streams(struct master *m, uint32_t holder);
/* Scope and holder packed into one pointer, which is kept with the exchange. */
void *auth_user(enum api_auth scope, uint32_t holder);
enum api_auth auth_user_scope(const void *user);
/* The holder that sent the request of this exchange. */
uint32_t auth_client(const struct http_exchange *x);
/* Number of open streams of this holder. */
int auth_count_streams(const struct master *m, uint32_t holder);

/* Reads the member "scope" of a request body; refuses more than the caller has. */
int auth_read_scope(const struct api_call *c, const struct doc *body, struct str fallback,
		    enum api_auth *ret, struct err *err);
int api_me(struct api_call *c, struct err *err);
