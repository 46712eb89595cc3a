#include "driver/aws/api/imds.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"

#define ANSWER_MS 1000
#define MAX_TOKEN 1024

static const char *address(const struct aws *s)
{
	const char *url = env_get(&s->places.env, "AWS_EC2_METADATA_SERVICE_ENDPOINT");

	return url ? url : "http://169.254.169.254";
}

static bool is_off(const struct aws *s)
{
	const char *word = env_get(&s->places.env, "AWS_EC2_METADATA_DISABLED");

	return word && strcasecmp(word, "true") == 0;
}

static int ask(struct aws *s, const char *method, const char *path, const struct http_field *field,
	       const struct deadline *d, struct buf *out, struct err *err)
{
	struct deadline soon = deadline_within(d, ANSWER_MS);
	const char *base = address(s);
	size_t n = strlen(base);
	char url[512];
	int status;

	while (n > 0 && base[n - 1] == '/')
		n--;
	snprintf(url, sizeof(url), "%.*s/latest/%s", (int)n, base, path);
	if (aws_fetch(s, method, url, field, 1, &soon, out, &status, err) < 0)
		return err_wrap(err, "instance metadata");
	if (status != 200)
		return err_set(err, status == 404 ? ERR_NOT_FOUND : ERR_UNAVAILABLE,
			       "instance metadata: %s: %d", path, status);
	return 0;
}

int imds_read(struct aws *s, const char *path, const struct deadline *d, struct buf *out,
	      struct err *err)
{
	CLEANUP(buf_release) struct buf token = {0};
	struct http_field life = {"X-aws-ec2-metadata-token-ttl-seconds", "300"};
	char full[400];

	if (is_off(s))
		return err_set(err, ERR_UNAVAILABLE,
			       "instance metadata: switched off by AWS_EC2_METADATA_DISABLED");
	buf_init(&token, MAX_TOKEN);
	if (ask(s, "PUT", "api/token", &life, d, &token, err) < 0)
		return -1;
	struct http_field shown = {"X-aws-ec2-metadata-token", buf_str(&token).p};

	snprintf(full, sizeof(full), "meta-data/%s", path);
	return ask(s, "GET", full, &shown, d, out, err);
}

int imds_region(struct aws *s, const struct deadline *d, char out[static 32], struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 4096);
	if (imds_read(s, "placement/region", d, &text, err) < 0)
		return -1;
	struct str region = str_trim(buf_str(&text));

	snprintf(out, 32, "%.*s", region.n < 31 ? (int)region.n : 31, region.p);
	if (!aws_region_is_proper(out))
		return err_set(err, ERR_PROTOCOL, "instance metadata: no region");
	return 0;
}
