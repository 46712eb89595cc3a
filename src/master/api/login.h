#pragma once
/*
 * login - browsers: one-time links, the cookie that they become, and its end.
 *
 * What a session is, and how long it is good, is session.h's business.
 */
#include <stdint.h>
#include "base/str.h"
#include "master/api/auth.h"

struct logins;

struct logins *logins_new(struct master *m);
struct logins *logins_free(struct logins *l); /* NULL is allowed */
/* Cuts the streams of sessions whose time is over. */
void logins_tick(struct logins *l);
/* The value of our cookie in the request; empty if there is none. */
struct str login_cookie(const struct api_call *c);
/* What the holder of this cookie may do; 0: nothing. */
enum api_auth logins_scope(const struct logins *l, struct str cookie, uint32_t *ret_holder);

int api_login_code(struct api_call *c, struct err *err);
int api_login(struct api_call *c, struct err *err);
int api_logout(struct api_call *c, struct err *err);
