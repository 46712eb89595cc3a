#pragma once
/*
 * aws_session - the session with AWS in which a row's calls are made.
 *
 * Sessions are kept by region and credentials for the whole process, because they hold connections,
 * the pace of calls and renewed credentials.  Before a session is handed out its account is compared
 * with the one that the run belongs to, so that an answer "not found" comes from the right account.
 * Safe on any thread.
 */
#include "base/arena.h"
#include "base/deadline.h"
#include "driver/driver.h"

struct aws;
struct aws_session;
struct buf;
struct doc;
struct err;

/* What a call of a driver works with. */
struct aws_work {
	struct aws *s;
	struct arena *a; /* of this call */
	const struct driver_row *row;
	const struct doc *spec, *choice; /* choice: NULL if the resource has none */
	struct deadline d;
	struct aws_session *kept;
};

/* Only reads spec and choice: there is no session. */
int aws_work_read(const struct driver_row *row, struct aws_work *ret, struct err *err);
/* ERR_DENIED if the credentials are of another account than spec.account. */
int aws_work_open(const struct driver_row *row, struct aws_work *ret, struct err *err);
void aws_work_close(struct aws_work *w);

/* A URL of an object that whoever has it can read.  Only with keys that came with the row, because
 * nothing is asked; -1 without them.  `w` may be of aws_work_read(). */
int aws_work_presign(const struct aws_work *w, const char *bucket, const char *key, int64_t seconds,
		     struct buf *out);

/* Text of the spec or of the choice; NULL if it has none, or an empty one. */
const char *aws_spec(const struct aws_work *w, const char *key);
const char *aws_choice(const struct aws_work *w, const char *key);

/* The session of these credentials (JSON; NULL or "": those that this process finds) in a region (NULL: that of
 * the credentials).  To be given back. */
int aws_session_take(const char *region, const char *credentials, const struct deadline *d,
		     struct aws_session **ret, struct err *err);
void aws_session_give(struct aws_session *k);
struct aws *aws_session_of(struct aws_session *k);
/* ret has room for AWS_ACCOUNT bytes; asked once, however many ask at a time. */
int aws_session_account(struct aws_session *k, const struct deadline *d, char *ret,
			struct err *err);

/* In credentials: certificates of CAs (PEM) that came with them, in place of a file of this machine. */
#define AWS_CA_PEM "ca_pem"
/* The variables that a master needs to reach the same services as the caller; ends with NULL. */
extern const char *const aws_session_variables[];
/* Closes all sessions that are not in use; for tests. */
void aws_sessions_drop(void);
