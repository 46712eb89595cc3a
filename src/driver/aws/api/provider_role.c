/* Roles that are taken on: with other credentials, or with a token of an identity provider. */
#include "driver/aws/api/provider.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/rand.h"
#include "driver/aws/api/internal.h"

/* The "Credentials" of an STS answer. */
static int read_sts(const struct aws_search *q, const struct xml *result, const char *role_arn,
		    struct aws_found *ret, struct err *err)
{
	const char *key = xml_text(result, "Credentials/AccessKeyId");
	const char *secret = xml_text(result, "Credentials/SecretAccessKey");
	int64_t expires;

	if (!*key || !*secret ||
	    !clock_parse(str_from(xml_text(result, "Credentials/Expiration")), &expires))
		return err_set(err, ERR_PROTOCOL, "STS gave no credentials for '%.80s'", role_arn);
	*ret = (struct aws_found){
		.access_key = arena_strdup(q->a, key),
		.secret_key = arena_strdup(q->a, secret),
		.session_token = arena_strdup(q->a, xml_text(result, "Credentials/SessionToken")),
		.expires_ms = expires,
		.renewable = true,
		.source = arena_printf(q->a, "the role %s", role_arn),
	};
	return 0;
}

static int ask_sts(const struct aws_search *q, const struct aws_request *r,
		   const struct sigv4_keys *keys, const char *role_arn, struct aws_found *ret,
		   struct err *err)
{
	struct aws_answer ans = {0};
	char result[96];
	struct aws_call c = {
		.service = "sts",
		.action = r->action,
		.method = "POST",
		.path = "/",
		.query = "",
		.type = AWS_FORM,
		.body = buf_str(&r->body),
		.keys = keys,
		.anonymous = !keys,
		.shape = AWS_XML,
	};
	int rc = aws_call_run(q->s, &c, q->d, &ans, err);

	snprintf(result, sizeof(result), "%sResult", r->action);
	if (rc == 0)
		rc = read_sts(q, xml_at(ans.root, result), role_arn, ret, err);
	aws_answer_release(&ans);
	return rc < 0 ? err_wrap(err, "role %.80s", role_arn) : 0;
}

static void add_role(struct aws_request *r, const struct role_wish *w)
{
	char name[64];

	snprintf(name, sizeof(name), "regatta-%08x", (unsigned)rand_u64());
	aws_param(r, w->arn, "RoleArn");
	aws_param(r, w->session_name ? w->session_name : name, "RoleSessionName");
	aws_param(r, w->external_id, "ExternalId");
	aws_param(r, w->duration, "DurationSeconds");
}

int provider_assume(const struct aws_search *q, const struct role_wish *w, struct aws_found *found,
		    struct err *err)
{
	struct sigv4_keys keys = {found->access_key, found->secret_key, found->session_token};
	struct aws_request r;
	int rc;

	aws_request_init(&r, "sts", "AssumeRole");
	add_role(&r, w);
	rc = ask_sts(q, &r, &keys, w->arn, found, err);
	aws_request_release(&r);
	return rc;
}

int provider_assume_by_token(const struct aws_search *q, const struct role_wish *w,
			     const char *token_file, struct aws_found *ret, struct err *err)
{
	struct aws_request r;
	const char *token;
	int rc;

	if (provider_read_file(q, token_file, &token, err) < 0)
		return err_wrap(err, "web identity");
	aws_request_init(&r, "sts", "AssumeRoleWithWebIdentity");
	add_role(&r, w);
	aws_param(&r, token, "WebIdentityToken");
	rc = ask_sts(q, &r, NULL, w->arn, ret, err);
	aws_request_release(&r);
	return rc;
}
