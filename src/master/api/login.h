#pragma once
/*
 * login - access for browsers: one-time links, the session cookies that they give, logout.
 *
 * session.h has the sessions themselves and their time limits.
 */
#include <stdint.h>
#include "base/str.h"
#include "master/api/auth.h"

struct logins;

struct logins *logins_new(struct master *m);
struct logins *logins_free(struct logins *l);
/* Closes the streams of sessions that have expired. */
void logins_tick(struct logins *l);
/* The value of the session cookie in the request; empty if there is none. */
struct str login_cookie(const struct api_call *c);
/* The scope of the session with this cookie; 0: no such session. */
enum api_auth logins_scope(const struct logins *l, struct str cookie, uint32_t *ret_holder);

int api_login_code(struct api_call *c, struct err *err);
int api_login(struct api_call *c, struct err *err);
int api_logout(struct api_call *c, struct err *err);
