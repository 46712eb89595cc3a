/* Credentials of a profile: its own keys, or a role that it takes on with those of another. */
#include "driver/aws/api/provider.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"

#define MAX_HOPS 8 /* of source_profile */

static const char *setting(const struct aws_search *q, const char *key)
{
	return profile_get(q->s->places.profiles, q->profile, key);
}

int provider_keys(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	const char *key = setting(q, "aws_access_key_id");
	const char *secret = setting(q, "aws_secret_access_key");

	if (!key)
		return 0;
	if (!secret)
		return err_set(err, ERR_DENIED, "the profile '%s' has no aws_secret_access_key",
			       q->profile);
	*ret = (struct aws_found){.access_key = key,
				  .secret_key = secret,
				  .session_token = setting(q, "aws_session_token"),
				  .source = arena_printf(q->a, "the profile '%s'", q->profile)};
	return 1;
}

/* "Environment", "Ec2InstanceMetadata", "EcsContainer": where the source of a role is. */
static int from_named_source(const struct aws_search *q, const char *name, struct aws_found *ret,
			     struct err *err)
{
	static const struct {
		const char *name;
		provider_fn fn;
	} sources[] = {{"Environment", provider_environment},
		       {"Ec2InstanceMetadata", provider_instance},
		       {"EcsContainer", provider_container}};
	struct aws_search anew = *q;

	anew.by_profile = false;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (strcmp(sources[i].name, name) != 0)
			continue;
		int rc = sources[i].fn(&anew, ret, err);

		return rc ? rc
			  : err_set(err, ERR_DENIED, "profile '%s': no credentials from %s",
				    q->profile, name);
	}
	return err_set(err, ERR_INVALID, "profile '%s': credential_source '%.40s' is not known",
		       q->profile, name);
}

/* A profile that names itself as its source uses its own keys. */
static int from_source_profile(const struct aws_search *q, const char *name, struct aws_found *ret,
			       struct err *err)
{
	struct aws_search other = *q;

	if (strcmp(name, q->profile) == 0) {
		int rc = provider_keys(q, ret, err);

		return rc ? rc
			  : err_set(err, ERR_INVALID,
				    "the profile '%s' is its own source and has no keys", name);
	}
	if (!profile_exists(q->s->places.profiles, name))
		return err_set(err, ERR_INVALID,
			       "profile '%s': source_profile '%.60s' does not exist", q->profile,
			       name);
	if (++other.hops > MAX_HOPS)
		return err_set(err, ERR_INVALID, "profile '%s': source_profile leads in a circle",
			       q->profile);
	other.profile = name;
	other.by_profile = true;
	int rc = provider_of_profile(&other, ret, err);

	return rc ? rc
		  : err_set(err, ERR_DENIED, "profile '%s': source_profile '%s' has no credentials",
			    q->profile, name);
}

int provider_role(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	struct role_wish w = {.arn = setting(q, "role_arn"),
			      .session_name = setting(q, "role_session_name"),
			      .external_id = setting(q, "external_id"),
			      .duration = setting(q, "duration_seconds")};
	const char *profile = setting(q, "source_profile"),
		   *named = setting(q, "credential_source");
	int rc;

	if (!w.arn || (!profile && !named))
		return 0;
	if (setting(q, "mfa_serial"))
		return err_set(
			err, ERR_DENIED,
			"profile '%s': its role wants a code (mfa_serial), which nobody can type here",
			q->profile);
	rc = profile ? from_source_profile(q, profile, ret, err)
		     : from_named_source(q, named, ret, err);
	if (rc < 0)
		return -1;
	return provider_assume(q, &w, ret, err) < 0 ? -1 : 1;
}

int provider_web_identity(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	struct role_wish w = {.arn = setting(q, "role_arn"),
			      .session_name = setting(q, "role_session_name")};
	const char *file = setting(q, "web_identity_token_file");

	if (!w.arn || !file)
		return 0;
	return provider_assume_by_token(q, &w, file, ret, err) < 0 ? -1 : 1;
}
