#include "driver/aws/api/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/imds.h"
#include "driver/aws/api/profile.h"

static const char *copy(struct arena *a, const char *text)
{
	return text && *text ? arena_strdup(a, text) : NULL;
}

static const char *either(const struct env_lookup *env, const char *name, const char *other)
{
	const char *value = env_get(env, name);

	return value ? value : env_get(env, other);
}

/* Sets the profile: from the settings, else from a variable.  A profile that is named must exist. */
static int choose_profile(struct aws *s, const struct aws_config *c, struct err *err)
{
	const char *name = c->profile && *c->profile
				   ? c->profile
				   : either(&c->env, "AWS_PROFILE", "AWS_DEFAULT_PROFILE");

	if (name && !profile_exists(s->places.profiles, name))
		return err_set(
			err, ERR_INVALID,
			"the profile '%.60s' is in neither ~/.aws/config nor ~/.aws/credentials",
			name);
	s->places.profile = copy(s->arena, name ? name : "default");
	return 0;
}

static int choose_region(struct aws *s, const struct aws_config *c, const struct deadline *d,
			 struct err *err)
{
	const char *region = c->region && *c->region
				     ? c->region
				     : either(&c->env, "AWS_REGION", "AWS_DEFAULT_REGION");
	char found[32];

	if (!region)
		region = profile_get(s->places.profiles, s->places.profile, "region");
	if (!region && imds_region(s, d, found, err) == 0)
		region = found;
	if (!region)
		return err_set(
			err, ERR_INVALID,
			"no AWS region: set `region` in [aws], AWS_REGION, or `region` of the profile '%s'",
			s->places.profile);
	if (!aws_region_is_proper(region))
		return err_set(err, ERR_INVALID, "'%.40s' is not the name of a region", region);
	s->places.region = copy(s->arena, region);
	s->partition = aws_partition_of(region);
	return 0;
}

static void choose_ways(struct aws *s, const struct aws_config *c)
{
	const char *ca = either(&c->env, "AWS_CA_BUNDLE", "SSL_CERT_FILE");
	const char *of_profile = profile_get(s->places.profiles, s->places.profile, "ca_bundle");

	if (!env_get(&c->env, "AWS_CA_BUNDLE") && of_profile)
		ca = of_profile;
	s->ca_file = copy(s->arena, ca);
	s->ca_pem = c->ca_pem.n ? arena_str(s->arena, c->ca_pem) : (struct str){0};
	s->places.endpoint_url = copy(s->arena, c->endpoint_url);
	s->proxy = (struct proxy_settings){
		.http_proxy = copy(s->arena, either(&c->env, "http_proxy", "HTTP_PROXY")),
		.https_proxy = copy(s->arena, either(&c->env, "https_proxy", "HTTPS_PROXY")),
		.no_proxy = copy(s->arena, either(&c->env, "no_proxy", "NO_PROXY")),
	};
}

int aws_open(const struct aws_config *c, const struct deadline *d, struct aws **ret,
	     struct err *err)
{
	struct aws *s = xcalloc(1, sizeof(*s));
	struct profiles *profiles;

	pthread_mutex_init(&s->lock, NULL);
	s->arena = arena_new();
	s->governor = governor_new();
	s->credentials = credentials_new(c);
	s->places.env = c->env;
	if (profiles_read(&c->env, s->arena, &profiles, err) < 0)
		goto bad;
	s->places.profiles = profiles;
	if (choose_profile(s, c, err) < 0)
		goto bad;
	choose_ways(s, c);
	if (choose_region(s, c, d, err) < 0)
		goto bad;
	*ret = s;
	return 0;
bad:
	aws_free(s);
	return -1;
}

struct aws *aws_free(struct aws *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < AWS_IDLE; i++)
		http_client_free(s->idle[i].client);
	credentials_free(s->credentials);
	governor_free(s->governor);
	arena_free(s->arena);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

const char *aws_region(const struct aws *s)
{
	return s->places.region;
}

const char *aws_ca_file(const struct aws *s)
{
	return s->ca_file;
}

const char *aws_partition(const struct aws *s)
{
	return s->partition->name;
}

const char *aws_dns_suffix(const struct aws *s)
{
	return s->partition->suffix;
}

int64_t aws_clock_ms(const struct aws *s)
{
	return clock_wall_ms() + atomic_load(&s->skew_ms);
}

int aws_keys(struct aws *s, struct arena *a, const struct deadline *d, struct sigv4_keys *ret,
	     struct err *err)
{
	struct aws_credentials c;

	if (credentials_get(s->credentials, s, a, d, &c, err) < 0)
		return -1;
	*ret = (struct sigv4_keys){c.access_key, c.secret_key, c.session_token};
	return 0;
}

int aws_credentials_get(struct aws *s, struct arena *a, const struct deadline *d,
			struct aws_credentials *ret, struct err *err)
{
	return credentials_get(s->credentials, s, a, d, ret, err);
}

int aws_credentials_source(struct aws *s, const struct deadline *d, struct buf *out,
			   struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct sigv4_keys keys;

	if (aws_keys(s, a, d, &keys, err) < 0)
		return -1;
	credentials_source(s->credentials, out);
	return 0;
}

/* ---- the account ---- */

static bool is_account(const char *text)
{
	return strlen(text) == AWS_ACCOUNT - 1 && strspn(text, "0123456789") == AWS_ACCOUNT - 1;
}

static int ask_account(struct aws *s, const struct deadline *d, char out[static AWS_ACCOUNT],
		       struct err *err)
{
	struct aws_request r;
	struct aws_answer ans = {0};
	int rc;

	aws_request_init(&r, "sts", "GetCallerIdentity");
	rc = aws_query(s, &r, d, &ans, err);
	if (rc == 0) {
		const char *id = xml_text(ans.root, "GetCallerIdentityResult/Account");

		if (is_account(id))
			memcpy(out, id, AWS_ACCOUNT);
		else
			rc = err_set(err, ERR_PROTOCOL, "GetCallerIdentity: '%.40s' is no account",
				     id);
	}
	aws_answer_release(&ans);
	aws_request_release(&r);
	return rc;
}

int aws_account(struct aws *s, const struct deadline *d, char out[static AWS_ACCOUNT],
		struct err *err)
{
	char known[AWS_ACCOUNT];

	pthread_mutex_lock(&s->lock);
	memcpy(known, s->account, sizeof(known));
	pthread_mutex_unlock(&s->lock);
	if (!*known) {
		if (ask_account(s, d, known, err) < 0)
			return -1;
		pthread_mutex_lock(&s->lock);
		memcpy(s->account, known, sizeof(known));
		pthread_mutex_unlock(&s->lock);
	}
	memcpy(out, known, sizeof(known));
	return 0;
}
