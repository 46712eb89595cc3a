/* Credentials that the place gives: the container's endpoint, the role of the instance. */
#include "driver/aws/api/provider.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "driver/aws/api/imds.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"
#include "fmt/doc.h"

#define CONTAINER_HOST "http://169.254.170.2"
#define TRIES 3

/* ---- container ---- */

/* Plain HTTP only to this machine and to the two agents of AWS: the answer is a secret. */
static bool may_be_plain(const char *host)
{
	static const char *const known[] = {"localhost", "169.254.170.2", "169.254.170.23",
					    "fd00:ec2::23", "::1"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i], host) == 0)
			return true;
	return strncmp(host, "127.", 4) == 0;
}

static int container_url(const struct aws_search *q, const char **ret, struct err *err)
{
	const struct env_lookup *env = &q->s->places.env;
	const char *relative = env_get(env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = env_get(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
	struct http_url u;

	if (!relative && !full)
		return 0;
	*ret = relative ? arena_printf(q->a, CONTAINER_HOST "%s", relative) : full;
	if (http_url_parse(&u, str_from(*ret), false, err) < 0)
		return -1;
	if (!u.tls && !may_be_plain(u.host))
		return err_set(
			err, ERR_DENIED,
			"container credentials: '%.80s' is neither https nor on this machine",
			u.host);
	return 1;
}

/* The file is read each time: its content changes. */
static int container_token(const struct aws_search *q, const char **ret, struct err *err)
{
	const struct env_lookup *env = &q->s->places.env;
	const char *file = env_get(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");

	*ret = env_get(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
	return file ? provider_read_file(q, file, ret, err) : 0;
}

static int fetch_document(const struct aws_search *q, const char *url, const char *token,
			  struct doc **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct http_field field = {"Authorization", token};
	int status = 0, rc = -1;

	buf_init(&text, 256 * 1024);
	for (int i = 0; i < TRIES && rc < 0; i++) {
		if (i > 0 && aws_nap(q->d, 100 * i, err) < 0)
			return -1;
		rc = aws_fetch(q->s, "GET", url, &field, token ? 1 : 0, q->d, &text, &status, err);
		if (rc == 0 && status >= 500)
			rc = err_set(err, ERR_UNAVAILABLE, "it says %d", status);
	}
	if (rc < 0)
		return -1;
	if (status != 200)
		return err_set(err, ERR_DENIED, "it says %d", status);
	return json_parse(buf_str(&text), q->a, ret, err);
}

int provider_container(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	const char *url = NULL, *token = NULL;
	struct doc *doc;
	int rc = container_url(q, &url, err);

	if (rc <= 0)
		return rc;
	if (container_token(q, &token, err) < 0 || fetch_document(q, url, token, &doc, err) < 0)
		return err_wrap(err, "container credentials");
	return provider_read(q, doc, "the container", ret, err) < 0 ? -1 : 1;
}

/* ---- instance ---- */

static int read_role(const struct aws_search *q, struct buf *role, struct err *err)
{
	CLEANUP(buf_release) struct buf names = {0};

	buf_init(&names, 64 * 1024);
	if (imds_read(q->s, "iam/security-credentials/", q->d, &names, err) < 0)
		return -1;
	struct str rest = str_trim(buf_str(&names)), first = str_trim(str_cut(&rest, '\n'));

	buf_printf(role, "iam/security-credentials/%.*s", STR_ARG(first));
	return 0;
}

/* The machine of a master has a role, but EC2 may show it some seconds after the machine has booted, and a busy
 * machine may hear the answer too late: such a master asks again. */
static int role_to_come(const struct aws_search *q, const struct err *why, struct err *err)
{
	if (why->kind == ERR_CANCELLED)
		return err_set(err, why->kind, "%s", why->msg);
	if (!env_get(&q->s->places.env, "REGATTA_OWN_MACHINE"))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "this instance has no credentials of its role yet: %s",
		       why->msg);
}

/* A machine that is no instance, or has no role, is not an error: there is nothing here. */
int provider_instance(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf role = {0}, text = {0};
	struct err own = {0};
	struct doc *doc;

	buf_init(&role, 1024);
	buf_init(&text, 64 * 1024);
	if (read_role(q, &role, &own) < 0)
		return role_to_come(q, &own, err);
	if (imds_read(q->s, buf_str(&role).p, q->d, &text, &own) < 0)
		return role_to_come(q, &own, err) < 0 ? -1 : err_set(err, own.kind, "%s", own.msg);
	if (json_parse(buf_str(&text), q->a, &doc, err) < 0)
		return err_wrap(err, "instance metadata");
	return provider_read(q, doc, "the role of the instance", ret, err) < 0 ? -1 : 1;
}
