#include "driver/aws/api/provider.h"

#include "base/err.h"
#include "driver/aws/api/internal.h"

static int from_environment(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	const struct env_lookup *env = &q->s->places.env;
	const char *key = env_get(env, "AWS_ACCESS_KEY_ID");
	const char *secret = env_get(env, "AWS_SECRET_ACCESS_KEY");

	if (q->by_profile || !key)
		return 0;
	if (!secret)
		return err_set(err, ERR_DENIED,
			       "AWS_ACCESS_KEY_ID is set, but not AWS_SECRET_ACCESS_KEY");
	*ret = (struct aws_found){.access_key = key,
				  .secret_key = secret,
				  .session_token = env_get(env, "AWS_SESSION_TOKEN"),
				  .source = "the environment"};
	return 1;
}

static const provider_fn providers[] = {from_environment};

int provider_chain(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
		int rc = providers[i](q, ret, err);

		if (rc)
			return rc > 0 ? 0 : -1;
	}
	return err_set(
		err, ERR_DENIED,
		"no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (aws configure)");
}
