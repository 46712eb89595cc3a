/*
 * Amazon ECR: a password for 12 hours, which may do what the credentials may.  The region is that of the registry:
 * "123456789012.dkr.ecr.eu-west-1.amazonaws.com/name:tag".
 */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/str.h"
#include "driver/aws/api/aws.h"
#include "driver/aws/aws_session.h"
#include "driver/registry_login.h"
#include "fmt/doc.h"

#define PASSWORD_MAX (16 * 1024)

/* NULL: it is no image of a registry of ECR. */
static const char *region_of(const char *image, struct arena *a)
{
	struct str rest = str_from(image), host = str_cut(&rest, '/');
	struct str account = str_cut(&host, '.'), dkr = str_cut(&host, '.'),
		   ecr = str_cut(&host, '.');
	struct str region = str_cut(&host, '.');

	if (!rest.p || account.n == 0 || !str_is(dkr, "dkr") ||
	    !(str_is(ecr, "ecr") || str_is(ecr, "ecr-fips")) || region.n == 0 || !host.n)
		return NULL;
	return arena_strndup(a, region.p, region.n);
}

/* "AWS:password", as base64. */
static int take_token(struct str token, struct arena *a, struct registry_login *ret,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, PASSWORD_MAX);
	b64_decode(&text, token);
	struct str rest = arena_str(a, buf_str(&text)), user = str_cut(&rest, ':');

	if (text.overflow || user.n == 0 || !rest.p || rest.n == 0)
		return err_set(err, ERR_PROTOCOL, "ecr:GetAuthorizationToken: no token");
	ret->user = arena_strndup(a, user.p, user.n);
	ret->password = arena_strndup(a, rest.p, rest.n);
	return 0;
}

static int ask(const struct registry_question *q, const struct deadline *d, struct arena *a,
	       struct registry_login *ret, struct err *err)
{
	const char *region = region_of(q->image, a);
	struct aws_session *kept;
	struct aws_answer ans = {0};

	if (!region)
		return err_set(err, ERR_INVALID,
			       "registry \"ecr\": image '%.80s' is not of a registry of ECR "
			       "(ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME)",
			       q->image);
	if (aws_session_take(region, q->credentials, d, &kept, err) < 0)
		return -1;
	int rc = aws_json(aws_session_of(kept), "api.ecr", "GetAuthorizationToken", STR("{}"), d,
			  &ans, err);

	if (rc == 0) {
		const struct doc *all = doc_array(ans.doc, "authorizationData");
		const struct doc *one = all && all->array.n ? all->array.v[0] : NULL;

		rc = take_token(doc_str(one, "authorizationToken", STR("")), a, ret, err);
	}
	aws_answer_release(&ans);
	aws_session_give(kept);
	return rc;
}

static int credentials(struct arena *a, struct doc **ret, struct err *err)
{
	return aws_ec2_resolver.credentials(&(struct resolve_input){0}, a, ret, err);
}

const struct registry_source ecr_registry = {
	.login = "ecr",
	.ask = ask,
	.credentials = credentials,
};
