/* Requests of the query protocol, and the calls that are made of them. */
#include "driver/aws/api/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/hex.h"
#include "fmt/url.h"

void aws_request_init(struct aws_request *r, const char *service, const char *action)
{
	const struct aws_service *known = aws_service_named(service);

	*r = (struct aws_request){.service = service};
	snprintf(r->action, sizeof(r->action), "%s", action);
	buf_init(&r->body, AWS_MAX_REQUEST);
	buf_printf(&r->body, "Action=%s&Version=%s", r->action,
		   known && known->version ? known->version : "");
}

int aws_request_from_bytes(struct aws_request *r, const char *service, struct str bytes,
			   struct err *err)
{
	static const struct str prefix = {"Action=", 7};
	struct str rest = {bytes.p + prefix.n, bytes.n - prefix.n};

	if (!str_starts(bytes, prefix))
		return err_set(err, ERR_INVALID, "not a stored request: %.*s",
			       bytes.n < 40 ? (int)bytes.n : 40, bytes.p);
	struct str action = str_cut(&rest, '&');

	*r = (struct aws_request){.service = service};
	snprintf(r->action, sizeof(r->action), "%.*s", STR_ARG(action));
	buf_init(&r->body, AWS_MAX_REQUEST);
	buf_addstr(&r->body, bytes);
	return r->body.overflow ? err_set(err, ERR_INVALID, "a stored request is too long") : 0;
}

void aws_request_release(struct aws_request *r)
{
	buf_release(&r->body);
}

struct str aws_request_bytes(const struct aws_request *r)
{
	return buf_str(&r->body);
}

__attribute__((format(printf, 2, 0))) static void add_name(struct aws_request *r, const char *name,
							   va_list args)
{
	char text[256];

	vsnprintf(text, sizeof(text), name, args);
	buf_addc(&r->body, '&');
	url_encode(&r->body, str_from(text));
	buf_addc(&r->body, '=');
}

void aws_param(struct aws_request *r, const char *value, const char *name, ...)
{
	va_list args;

	if (!value)
		return;
	va_start(args, name);
	add_name(r, name, args);
	va_end(args);
	url_encode(&r->body, str_from(value));
}

void aws_param_int(struct aws_request *r, int64_t value, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	add_name(r, name, args);
	va_end(args);
	buf_printf(&r->body, "%" PRId64, value);
}

void aws_param_bool(struct aws_request *r, bool value, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	add_name(r, name, args);
	va_end(args);
	buf_addz(&r->body, value ? "true" : "false");
}

void aws_param_base64(struct aws_request *r, struct str value, const char *name, ...)
{
	CLEANUP(buf_release) struct buf text = {0};
	va_list args;

	buf_init(&text, AWS_MAX_REQUEST);
	b64_encode(&text, value.p, value.n);
	va_start(args, name);
	add_name(r, name, args);
	va_end(args);
	url_encode(&r->body, buf_str(&text));
}

/* The value of a parameter in the bytes of a request, as a number; `fallback` without it. */
static int64_t number_in(struct str body, const char *name, int64_t fallback)
{
	while (body.p) {
		struct str value = str_cut(&body, '&');
		struct str key = str_cut(&value, '=');
		int64_t n;

		if (str_is(key, name) && value.p && str_to_i64(value, &n))
			return n;
	}
	return fallback;
}

static int64_t count_of(struct str body, struct str prefix)
{
	int64_t n = 0;

	while (body.p)
		n += str_starts(str_cut(&body, '&'), prefix);
	return n;
}

/* The number of instances that the request names or creates. */
static int64_t resources_of(const struct aws_request *r)
{
	if (strcmp(r->action, "RunInstances") == 0)
		return number_in(buf_str(&r->body), "MaxCount", 1);
	return count_of(buf_str(&r->body), STR("InstanceId."));
}

static int run_query(struct aws *s, const struct aws_request *r, struct str body,
		     const struct deadline *d, struct aws_answer *ret, struct err *err)
{
	struct aws_call c = {
		.service = r->service,
		.action = r->action,
		.method = "POST",
		.path = "/",
		.query = "",
		.type = AWS_FORM,
		.body = body,
		.resources = resources_of(r),
		.once = r->once,
		.shape = AWS_XML,
	};

	return aws_call_run(s, &c, d, ret, err);
}

int aws_query(struct aws *s, const struct aws_request *r, const struct deadline *d,
	      struct aws_answer *ret, struct err *err)
{
	if (r->body.overflow)
		return err_set(err, ERR_INVALID, "%s: the request is larger than %zu bytes",
			       r->action, AWS_MAX_REQUEST);
	return run_query(s, r, buf_str(&r->body), d, ret, err);
}

/* ---- pages ---- */

struct page_mark {
	const char *at;	   /* in the answer, below the element that holds the result */
	const char *param; /* in the next request */
};
static const struct page_mark page_marks[] = {
	{"nextToken", "NextToken"}, /* EC2 */
	{"NextToken", "NextToken"}, /* Auto Scaling, CloudWatch */
	{"Marker", "Marker"},	    /* IAM */
};

/* EC2 has it below the root, the others below "<Action>Result". */
static const char *next_page(const struct xml *root, const char *action, const char **ret_param)
{
	char result[96];

	snprintf(result, sizeof(result), "%sResult", action);
	const struct xml *inner = xml_at(root, result);

	for (size_t i = 0; i < sizeof(page_marks) / sizeof(page_marks[0]); i++) {
		const char *token = xml_text(inner ? inner : root, page_marks[i].at);

		*ret_param = page_marks[i].param;
		if (*token)
			return token;
	}
	return NULL;
}

int aws_query_pages(struct aws *s, const struct aws_request *r, const struct deadline *d,
		    aws_page_fn fn, void *ctx, struct aws_answer *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0}, last = {0};
	struct aws_answer own = {0};
	struct aws_answer *ans = ret ? ret : &own;
	int rc = -1;

	buf_init(&body, 2 * AWS_MAX_REQUEST);
	buf_init(&last, AWS_MAX_REQUEST);
	buf_addstr(&body, buf_str(&r->body));
	for (int page = 0; page < AWS_MAX_PAGES; page++) {
		const char *param, *token;

		if (run_query(s, r, buf_str(&body), d, ans, err) < 0 || fn(ctx, ans->root, err) < 0)
			goto out;
		token = next_page(ans->root, r->action, &param);
		if (!token) {
			rc = 0;
			goto out;
		}
		if (str_is(buf_str(&last), token))
			break;
		buf_reset(&last);
		buf_addz(&last, token);
		body.n = r->body.n;
		buf_printf(&body, "&%s=", param);
		url_encode(&body, str_from(token));
	}
	err_set(err, ERR_PROTOCOL, "%s: the list does not end: its pages lead to themselves",
		r->action);
out:
	if (!ret)
		aws_answer_release(&own);
	return rc;
}
