#pragma once
/*
 * auth - who calls, and what they may do.
 *
 * Over the unix socket the caller is the user who owns the master: admin.  Over TCP
 * a caller shows a token (of the user, in $REGATTA_HOME/token, or one made for a
 * purpose, with a scope and perhaps an end: tokens.h) or the cookie of a session (login.h).  A
 * wrong one costs its address one of a few tries a second.
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

/* Who may call a route, and what a caller may do: each includes those before it.  There is no
 * default: a route without a class does not compile. */
enum api_auth {
	API_OPEN = 1, /* anybody who can connect */
	API_JOIN,     /* a host that joins: no route is for it */
	API_READ,
	API_SUBMIT,
	API_ADMIN,
	API_NODE, /* the node that the path names, by its own token: nobody else, and nothing else */
};
const char *scope_name(enum api_auth scope);
/* read, submit or admin: what a person may be given. */
bool scope_from(struct str name, enum api_auth *ret);

struct auth {
	struct tokens *tokens;
	struct logins *logins;
	struct limiter *failures;
};

struct auth *auth_new(struct master *m, struct err *err);
struct auth *auth_free(struct auth *a); /* NULL is allowed */
/* From the loop, every second or so. */
void auth_tick(struct auth *a);
/* What the caller may do, of a route that needs `need`.  0: refused; err and *ret_status say
 * why.  c->holder tells which token or session it was. */
enum api_auth auth_check(struct api_call *c, enum api_auth need, int *ret_status, struct err *err);
/* A wrong secret came from the caller's address; false: too many did. */
bool auth_failed(const struct api_call *c);

/* Holders: the user's own token is 0, other tokens have even numbers, sessions odd ones.  All who
 * come over the unix socket are one. */
#define AUTH_LOCAL 1 /* no session has the serial 0 */
#define AUTH_NODE UINT32_MAX
uint32_t auth_token_holder(uint32_t number);
uint32_t auth_session_holder(uint32_t serial);
/* A stream is not to outlive what it was opened with. */
void auth_cut_streams(struct master *m, uint32_t holder);
/* Scope and holder in one pointer, kept with the exchange. */
void *auth_user(enum api_auth scope, uint32_t holder);
enum api_auth auth_user_scope(const void *user);
/* The holder that an exchange was allowed for. */
uint32_t auth_client(const struct http_exchange *x);
/* Streams that this holder has open. */
int auth_count_streams(const struct master *m, uint32_t holder);

/* The member "scope" of a request: at most what the caller has. */
int auth_read_scope(const struct api_call *c, const struct doc *body, struct str fallback,
		    enum api_auth *ret, struct err *err);
int api_me(struct api_call *c, struct err *err);
