#include "driver/aws/api/credentials.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/provider.h"

#define RENEW_MS (INT64_C(5) * 60000) /* before they expire */
#define RETRY_MS (INT64_C(30) * 1000) /* after a renewal that failed */
#define LOOK_MS 30000		      /* for the whole chain */

struct credentials {
	pthread_mutex_t lock;
	struct arena *settings;
	struct aws_found explicit_; /* access_key NULL: none */
	const char *assume_role;    /* NULL: none */
	bool by_profile;	    /* a profile was asked for by name */

	struct arena *arena;  /* of `now` */
	struct aws_found now; /* access_key NULL: not looked for yet */
	int64_t renew_at_ms;  /* wall clock; INT64_MAX: never */
};

static const char *copy(struct arena *a, const char *text)
{
	return text && *text ? arena_strdup(a, text) : NULL;
}

struct credentials *credentials_new(const struct aws_config *c)
{
	struct credentials *cr = xcalloc(1, sizeof(*cr));

	pthread_mutex_init(&cr->lock, NULL);
	cr->settings = arena_new();
	cr->explicit_ = (struct aws_found){
		.access_key = copy(cr->settings, c->access_key),
		.secret_key = copy(cr->settings, c->secret_key),
		.session_token = copy(cr->settings, c->session_token),
		.source = "those given",
	};
	cr->assume_role = copy(cr->settings, c->assume_role);
	cr->by_profile = c->profile && *c->profile;
	return cr;
}

struct credentials *credentials_free(struct credentials *c)
{
	if (!c)
		return NULL;
	arena_free(c->settings);
	arena_free(c->arena);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

static int look(struct credentials *c, struct aws *s, struct arena *a, const struct deadline *d,
		struct aws_found *ret, struct err *err)
{
	struct deadline own = deadline_within(d, LOOK_MS);
	struct aws_search q = {.s = s,
			       .a = a,
			       .d = &own,
			       .profile = s->places.profile,
			       .by_profile = c->by_profile};

	if (c->explicit_.access_key) {
		if (!c->explicit_.secret_key)
			return err_set(err, ERR_INVALID, "an access key without its secret key");
		*ret = c->explicit_;
	} else if (provider_chain(&q, ret, err) < 0) {
		return -1;
	}
	struct role_wish w = {.arn = c->assume_role};

	return w.arn ? provider_assume(&q, &w, ret, err) : 0;
}

/* Looks for credentials again; those that we have stay in use until new ones are found. */
static int renew(struct credentials *c, struct aws *s, const struct deadline *d, struct err *err)
{
	struct arena *a = arena_new();
	struct aws_found f = {0};

	if (look(c, s, a, d, &f, err) < 0) {
		arena_free(a);
		return -1;
	}
	arena_free(c->arena);
	c->arena = a;
	c->now = f;
	c->now.access_key = arena_strdup(a, f.access_key);
	c->now.secret_key = arena_strdup(a, f.secret_key);
	c->now.session_token = copy(a, f.session_token);
	c->now.source = arena_strdup(a, f.source);
	c->renew_at_ms = f.expires_ms ? f.expires_ms - RENEW_MS : INT64_MAX;
	return 0;
}

static int be_fresh(struct credentials *c, struct aws *s, const struct deadline *d, struct err *err)
{
	int64_t now = aws_clock_ms(s);
	struct err own;

	if (c->now.access_key && now < c->renew_at_ms)
		return 0;
	if (!c->now.access_key || c->now.expires_ms <= now)
		return renew(c, s, d, err);
	if (renew(c, s, d, &own) < 0)
		c->renew_at_ms = now + RETRY_MS; /* the old ones have not expired yet */
	return 0;
}

int credentials_get(struct credentials *c, struct aws *s, struct arena *a, const struct deadline *d,
		    struct aws_credentials *ret, struct err *err)
{
	pthread_mutex_lock(&c->lock);
	int rc = be_fresh(c, s, d, err);

	if (rc == 0)
		*ret = (struct aws_credentials){arena_strdup(a, c->now.access_key),
						arena_strdup(a, c->now.secret_key),
						copy(a, c->now.session_token), c->now.expires_ms};
	pthread_mutex_unlock(&c->lock);
	return rc;
}

int credentials_expire(struct credentials *c, const char *stale_access_key)
{
	int again = 0;

	pthread_mutex_lock(&c->lock);
	if (c->now.access_key && strcmp(c->now.access_key, stale_access_key) != 0) {
		again = 1; /* somebody has renewed them already */
	} else if (c->now.access_key && c->now.renewable) {
		c->now = (struct aws_found){0};
		again = 1;
	}
	pthread_mutex_unlock(&c->lock);
	return again;
}

void credentials_source(struct credentials *c, struct buf *out)
{
	pthread_mutex_lock(&c->lock);
	buf_addz(out, c->now.source ? c->now.source : "");
	pthread_mutex_unlock(&c->lock);
}
