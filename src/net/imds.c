#include "net/imds.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/env.h"
#include "base/err.h"
#include "net/http_client.h"
#include "fmt/http_url.h"

#define ADDRESS "http://169.254.169.254"
#define ANSWER_MS 1000
#define MAX_ANSWER (256 * 1024)
#define MAX_TOKEN 1024

/* Where it is, and how long it may take. */
struct imds {
	struct http_url url;
	struct deadline d;
};

static int find(const struct env_lookup *env, const struct deadline *d, struct imds *ret,
		struct err *err)
{
	const char *off = env_get(env, "AWS_EC2_METADATA_DISABLED");
	const char *url = env_get(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT");

	if (off && strcasecmp(off, "true") == 0)
		return err_set(err, ERR_UNAVAILABLE, "switched off by AWS_EC2_METADATA_DISABLED");
	ret->d = *d;
	return http_url_parse(&ret->url, str_from(url ? url : ADDRESS), false, err);
}

/* The path of the service's own URL, without the slashes at its end. */
static int put_path(char *out, size_t size, const struct imds *m, const char *what)
{
	size_t n = m->url.path.n;

	while (n > 0 && m->url.path.p[n - 1] == '/')
		n--;
	return snprintf(out, size, "%.*s/latest/%s", (int)n, n ? m->url.path.p : "", what);
}

static int send_to(const struct imds *m, const struct http_outgoing *r, struct http_answer *ret,
		   struct err *err)
{
	struct http_target t = {
		.host = m->url.host,
		.port = m->url.port,
		.tls = {.mode = m->url.tls ? TLS_CA : TLS_OFF},
		.stop = m->d.stop,
	};
	struct http_client *c;
	int rc;

	if (http_client_open(&t, r->timeout_ms, &c, err) < 0)
		return -1;
	rc = http_send(c, r, ret, err);
	http_client_free(c);
	return rc;
}

static int ask(const struct imds *m, const char *method, const char *what,
	       const struct http_field *field, struct buf *out, struct err *err)
{
	struct deadline soon = deadline_within(&m->d, ANSWER_MS);
	struct http_answer ans;
	char path[768];
	int rc;

	if (put_path(path, sizeof(path), m, what) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "the path is too long");
	http_answer_init(&ans, MAX_ANSWER);
	rc = send_to(m,
		     &(struct http_outgoing){.method = method,
					     .path = path,
					     .fields = field,
					     .nfields = 1,
					     .timeout_ms = (int)deadline_left_ms(&soon)},
		     &ans, err);
	if (rc == 0 && ans.status != 200)
		rc = err_set(err, ans.status == 404 ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s: %d",
			     what, ans.status);
	if (rc == 0) {
		buf_reset(out);
		buf_addstr(out, buf_str(&ans.body));
	}
	http_answer_release(&ans);
	return rc;
}

int imds_get(const struct env_lookup *env, const char *path, const struct deadline *d,
	     struct buf *out, struct err *err)
{
	CLEANUP(buf_release) struct buf token = {0};
	struct http_field life = {"X-aws-ec2-metadata-token-ttl-seconds", "300"};
	char full[400];
	struct imds m;

	buf_init(&token, MAX_TOKEN);
	snprintf(full, sizeof(full), "meta-data/%s", path);
	if (find(env, d, &m, err) < 0 || ask(&m, "PUT", "api/token", &life, &token, err) < 0)
		return err_wrap(err, "instance metadata");
	struct http_field shown = {"X-aws-ec2-metadata-token", token.n ? token.p : ""};

	if (ask(&m, "GET", full, &shown, out, err) < 0)
		return err_wrap(err, "instance metadata");
	return 0;
}
