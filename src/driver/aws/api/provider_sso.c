/* SSO: the token that `aws sso login` left in its cache buys credentials of a role. */
#include "driver/aws/api/provider.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "net/digest.h"

struct sso {
	const char *session, *start_url, *region, *account, *role;
};

static bool read_settings(const struct aws_search *q, struct sso *ret)
{
	const struct profiles *p = q->s->places.profiles;
	const char *session = profile_get(p, q->profile, "sso_session");

	*ret = (struct sso){
		.session = session,
		.start_url = session ? profiles_get(p, "sso-session", session, "sso_start_url")
				     : profile_get(p, q->profile, "sso_start_url"),
		.region = session ? profiles_get(p, "sso-session", session, "sso_region")
				  : profile_get(p, q->profile, "sso_region"),
		.account = profile_get(p, q->profile, "sso_account_id"),
		.role = profile_get(p, q->profile, "sso_role_name"),
	};
	return session || ret->start_url;
}

static int again(struct err *err, const struct aws_search *q, const char *why)
{
	return err_set(err, ERR_DENIED, "profile '%s': %s: run `aws sso login --profile %s`",
		       q->profile, why, q->profile);
}

/* The file is named by the SHA-1 of the session's name, or of the start URL. */
static int read_token(const struct aws_search *q, const struct sso *o, const char **ret_token,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	const char *name = o->session ? o->session : o->start_url;
	uint8_t digest[SHA1_BYTES];
	char hex[2 * SHA1_BYTES + 1];
	struct doc *doc;
	int64_t expires;

	sha1_of(name, strlen(name), digest);
	hex_encode(digest, sizeof(digest), hex);
	buf_init(&text, 256 * 1024);
	const char *path = profile_path(&q->s->places.env, q->a,
					arena_printf(q->a, "~/.aws/sso/cache/%s.json", hex));

	if (file_read(path, &text, NULL) < 0 || json_parse(buf_str(&text), q->a, &doc, NULL) < 0)
		return again(err, q, "nobody has signed in");
	struct str token = doc_str(doc, "accessToken", (struct str){0});

	if (!token.p || !clock_parse(doc_str(doc, "expiresAt", STR("")), &expires) ||
	    expires <= aws_clock_ms(q->s))
		return again(err, q, "the sign-in has expired");
	*ret_token = token.p;
	return 0;
}

static int buy(const struct aws_search *q, const struct sso *o, const char *token,
	       struct aws_answer *ans, struct err *err)
{
	CLEANUP(buf_release) struct buf query = {0};
	struct aws_call c = {.service = "portal.sso",
			     .action = "GetRoleCredentials",
			     .method = "GET",
			     .path = "/federation/credentials",
			     .region = o->region,
			     .anonymous = true,
			     .shape = AWS_JSON};

	buf_init(&query, 4096);
	buf_addz(&query, "role_name=");
	url_encode(&query, str_from(o->role));
	buf_addz(&query, "&account_id=");
	url_encode(&query, str_from(o->account));
	c.query = buf_str(&query).p;
	aws_call_header(&c, "x-amz-sso_bearer_token", token);
	return aws_call_run(q->s, &c, q->d, ans, err);
}

static int read_answer(const struct aws_search *q, const struct doc *doc, struct aws_found *ret,
		       struct err *err)
{
	const struct doc *c = doc_get(doc, "roleCredentials");
	struct str key = doc_str(c, "accessKeyId", (struct str){0});
	struct str secret = doc_str(c, "secretAccessKey", (struct str){0});
	struct str token = doc_str(c, "sessionToken", (struct str){0});
	int64_t expires = doc_int(c, "expiration", 0);

	if (!key.p || !secret.p || !token.p || !expires)
		return err_set(err, ERR_PROTOCOL, "SSO gave no credentials");
	*ret = (struct aws_found){
		.access_key = arena_strdup(q->a, key.p),
		.secret_key = arena_strdup(q->a, secret.p),
		.session_token = arena_strdup(q->a, token.p),
		.expires_ms = expires,
		.renewable = true,
		.source = arena_printf(q->a, "SSO of the profile '%s'", q->profile)};
	return 0;
}

int provider_sso(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	struct aws_answer ans = {0};
	const char *token;
	struct sso o;
	int rc;

	if (!read_settings(q, &o))
		return 0;
	if (!o.start_url || !o.region || !o.account || !o.role)
		return err_set(
			err, ERR_INVALID,
			"profile '%s': sso_start_url, sso_region, sso_account_id and sso_role_name belong together",
			q->profile);
	if (read_token(q, &o, &token, err) < 0)
		return -1;
	rc = buy(q, &o, token, &ans, err);
	if (rc == 0)
		rc = read_answer(q, ans.doc, ret, err);
	aws_answer_release(&ans);
	return rc < 0 ? err_wrap(err, "SSO of the profile '%s'", q->profile) : 1;
}
