#include "driver/aws/api/provider.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"
#include "fmt/doc.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

int provider_environment(const struct aws_search *q, struct aws_found *ret, struct err *err)
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

/* Web identity by variables, as in pods of Kubernetes. */
static int environment_web_identity(const struct aws_search *q, struct aws_found *ret,
				    struct err *err)
{
	const struct env_lookup *env = &q->s->places.env;
	const char *file = env_get(env, "AWS_WEB_IDENTITY_TOKEN_FILE");
	struct role_wish w = {.arn = env_get(env, "AWS_ROLE_ARN"),
			      .session_name = env_get(env, "AWS_ROLE_SESSION_NAME")};

	if (q->by_profile || !file || !w.arn)
		return 0;
	return provider_assume_by_token(q, &w, file, ret, err) < 0 ? -1 : 1;
}

static int first_of(const provider_fn *fns, size_t n, const struct aws_search *q,
		    struct aws_found *ret, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = fns[i](q, ret, err);
	return rc;
}

int provider_of_profile(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	static const provider_fn fns[] = {provider_role, provider_web_identity, provider_sso,
					  provider_keys, provider_process};

	return first_of(fns, COUNT(fns), q, ret, err);
}

int provider_chain(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	static const provider_fn fns[] = {provider_environment, environment_web_identity,
					  provider_of_profile, provider_container,
					  provider_instance};
	int rc = first_of(fns, COUNT(fns), q, ret, err);

	if (rc)
		return rc > 0 ? 0 : -1;
	return err_set(
		err, ERR_DENIED,
		"no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (aws configure, aws sso login)");
}

int provider_read(const struct aws_search *q, const struct doc *doc, const char *source,
		  struct aws_found *ret, struct err *err)
{
	struct str key = doc_str(doc, "AccessKeyId", (struct str){0});
	struct str secret = doc_str(doc, "SecretAccessKey", (struct str){0});
	struct str token = doc_str(doc, "Token", doc_str(doc, "SessionToken", (struct str){0}));
	struct str expires = doc_str(doc, "Expiration", (struct str){0});

	if (!key.p || !secret.p)
		return err_set(err, ERR_DENIED, "%s has no credentials (%.60s)", source,
			       doc_str(doc, "Code", STR("no AccessKeyId")).p);
	*ret = (struct aws_found){.access_key = arena_strdup(q->a, key.p),
				  .secret_key = arena_strdup(q->a, secret.p),
				  .session_token = token.n ? arena_strdup(q->a, token.p) : NULL,
				  .renewable = true,
				  .source = source};
	if (expires.n && !clock_parse(expires, &ret->expires_ms))
		return err_set(err, ERR_PROTOCOL, "%s: '%.40s' is no time", source, expires.p);
	return 0;
}

int provider_read_file(const struct aws_search *q, const char *path, const char **ret,
		       struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 64 * 1024);
	if (file_read(profile_path(&q->s->places.env, q->a, path), &text, err) < 0) {
		err->kind = ERR_DENIED; /* not ERR_NOT_FOUND, which would mean a missing resource */
		return -1;
	}
	struct str inside = str_trim(buf_str(&text));

	*ret = arena_strndup(q->a, inside.p, inside.n);
	return 0;
}
