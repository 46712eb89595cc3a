#pragma once
/*
 * credentials - who acts: the first of a chain that has something to say, refreshed in time.
 *
 * Explicit ones; the environment (unless a profile was asked for by name); then the profile: role
 * assumption, web identity, SSO, keys of the shared files, credential_process; the container's
 * endpoint; the instance's role (IMDSv2).  A session then may assume a role with what was found.
 * Credentials that expire are renewed five minutes before; while that fails, the old ones are used
 * as long as they last.  Safe on any thread.
 */
struct arena;
struct aws;
struct aws_config;
struct aws_credentials;
struct buf;
struct deadline;
struct err;
struct credentials;

struct credentials *credentials_new(const struct aws_config *c);
/* NULL is allowed.  Returns NULL. */
struct credentials *credentials_free(struct credentials *c);
/* Keys that are good now; their texts are copied to the arena.  ERR_DENIED if nobody has any. */
int credentials_get(struct credentials *c, struct aws *s, struct arena *a, const struct deadline *d,
		    struct aws_credentials *ret, struct err *err);
/* AWS says that these keys have expired: 1 if the next get looks for new ones, 0 if there is no way to
 * get others. */
int credentials_expire(struct credentials *c, const char *stale_access_key);
/* Where they came from; "" before the first get. */
void credentials_source(struct credentials *c, struct buf *out);
