#include "driver/aws/api/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "fmt/doc.h"

#define JSON_MAX_NODES 500000

static void put(char *out, size_t size, struct str text)
{
	snprintf(out, size, "%.*s", text.n < size ? (int)text.n : (int)size - 1,
		 text.p ? text.p : "");
}

static void read_headers(struct aws_answer *ret, const struct http_client *client)
{
	static const char *const ids[] = {"x-amzn-RequestId", "x-amz-request-id",
					  "x-amzn-requestid"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]) && !*ret->request_id; i++)
		put(ret->request_id, sizeof(ret->request_id), http_client_header(client, ids[i]));
	put(ret->etag, sizeof(ret->etag), http_client_header(client, "ETag"));
	put(ret->version, sizeof(ret->version), http_client_header(client, "x-amz-version-id"));
	put(ret->region, sizeof(ret->region), http_client_header(client, "x-amz-bucket-region"));
	str_to_u64(http_client_header(client, "Content-Length"), &ret->length);
}

/* Of EC2 "Response/Errors/Error", of the other query services "ErrorResponse/Error", of S3 "Error". */
static const struct xml *error_element(const struct xml *root)
{
	if (strcmp(root->name, "Error") == 0)
		return root;
	const struct xml *e = xml_at(root, "Errors/Error");

	return e ? e : xml_at(root, "Error");
}

static void read_request_id(struct aws_answer *ret, const struct xml *root)
{
	static const char *const places[] = {"requestId", "RequestId", "RequestID",
					     "ResponseMetadata/RequestId"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (*xml_text(root, places[i]))
			put(ret->request_id, sizeof(ret->request_id),
			    str_from(xml_text(root, places[i])));
}

static bool read_xml_error(struct aws_answer *ret, const struct xml *root)
{
	const struct xml *e = error_element(root);

	read_request_id(ret, root);
	if (!e)
		return false;
	put(ret->code, sizeof(ret->code), str_from(xml_text(e, "Code")));
	put(ret->message, sizeof(ret->message), str_from(xml_text(e, "Message")));
	return true;
}

/* {"__type": "com.amazonaws.ssm#ParameterNotFound", "message": "..."} */
static void read_json_error(struct aws_answer *ret, const struct doc *doc)
{
	struct str type = doc_str(doc, "__type", doc_str(doc, "code", STR("")));
	const char *hash = type.n ? memrchr(type.p, '#', type.n) : NULL;

	if (hash)
		type = (struct str){hash + 1, type.n - (size_t)(hash + 1 - type.p)};
	put(ret->code, sizeof(ret->code), type);
	put(ret->message, sizeof(ret->message),
	    doc_str(doc, "message", doc_str(doc, "Message", STR(""))));
}

/* An answer whose body cannot be understood says nothing about what was done. */
static int garbage(const struct aws_call *c, const struct http_answer *got,
		   struct aws_fault *ret_fault, struct err *err)
{
	*ret_fault = (struct aws_fault){.kind = ERR_UNAVAILABLE, .again = true};
	err->kind = ERR_UNAVAILABLE;
	return err_wrap(err, "%s: the answer (%d, %.40s) is not from AWS", c->action, got->status,
			*got->type ? got->type : "no type");
}

static int tell(struct aws_answer *ret, const struct aws_call *c, struct aws_fault *ret_fault,
		struct err *err)
{
	char action[128];

	snprintf(action, sizeof(action), "%s:%s", c->service, c->action);
	*ret_fault = aws_fault_of(ret->status, ret->code, ret->message);
	return aws_fault_err(err, ret_fault, ret->code, ret->message, ret->request_id, action);
}

/* The words of an error of which only the status is known: HEAD has no body. */
static void code_by_status(struct aws_answer *ret)
{
	static const struct {
		int status;
		const char *code;
	} codes[] = {{301, "PermanentRedirect"}, {400, "BadRequest"}, {403, "AccessDenied"},
		     {404, "NotFound"},		 {409, "Conflict"},   {412, "PreconditionFailed"},
		     {503, "ServiceUnavailable"}};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]) && !*ret->code; i++)
		if (codes[i].status == ret->status)
			put(ret->code, sizeof(ret->code), str_from(codes[i].code));
	if (!*ret->code)
		snprintf(ret->code, sizeof(ret->code), "HTTP %d", ret->status);
}

/* True if an error may come without a code: 429, 5xx, and all of S3, whose HEAD has no body. */
static bool may_be_bare(const struct aws_answer *ret, const struct aws_call *c)
{
	if (ret->status == 429 || ret->status >= 500)
		return true;
	return *ret->request_id && strcmp(c->service, "s3") == 0;
}

static int read_error(struct aws_answer *ret, const struct aws_call *c,
		      const struct http_answer *got, struct aws_fault *ret_fault, struct err *err)
{
	struct str body = buf_str(&got->body);
	struct xml *root;
	struct doc *doc;

	if (xml_parse(body, ret->arena, &root, NULL) == 0) {
		ret->root = root;
		read_xml_error(ret, root);
	} else if (json_parse(body, ret->arena, &doc, NULL) == 0) {
		read_json_error(ret, doc);
	}
	if (!*ret->code && !may_be_bare(ret, c)) {
		err_set(err, ERR_UNAVAILABLE, "it has no error code");
		return garbage(c, got, ret_fault, err);
	}
	if (!*ret->code)
		code_by_status(ret);
	if (strcmp(ret->code, "DryRunOperation") == 0)
		return 0;
	return tell(ret, c, ret_fault, err);
}

static int read_xml(struct aws_answer *ret, const struct aws_call *c, const struct http_answer *got,
		    struct aws_fault *ret_fault, struct err *err)
{
	struct xml *root;

	if (xml_parse(buf_str(&got->body), ret->arena, &root, err) < 0)
		return garbage(c, got, ret_fault, err);
	ret->root = root;
	/* The page of a proxy may be valid XML: the root element of a real answer has its name. */
	if (aws_service_named(c->service)->version && !error_element(root) &&
	    !str_ends(str_from(root->name), STR("Response"))) {
		err_set(err, ERR_UNAVAILABLE, "<%.40s>", root->name);
		return garbage(c, got, ret_fault, err);
	}
	/* S3 may send status 200 before the work is done, and an error in the body. */
	if (read_xml_error(ret, root))
		return tell(ret, c, ret_fault, err);
	return 0;
}

static int read_json(struct aws_answer *ret, const struct aws_call *c,
		     const struct http_answer *got, struct aws_fault *ret_fault, struct err *err)
{
	struct doc *doc;

	if (json_parse_limited(buf_str(&got->body), XML_MAX_BYTES, JSON_MAX_NODES, ret->arena, &doc,
			       err) < 0)
		return garbage(c, got, ret_fault, err);
	ret->doc = doc;
	return 0;
}

int aws_answer_read(struct aws_answer *ret, const struct aws_call *c, const struct http_answer *got,
		    const struct http_client *client, struct aws_fault *ret_fault, struct err *err)
{
	ret->arena = arena_new();
	ret->status = got->status;
	read_headers(ret, client);
	if (got->status / 100 != 2)
		return read_error(ret, c, got, ret_fault, err);
	/* The bytes of an object may be anything, so that a proxy's page could pass for one. */
	if (!*ret->request_id && strcmp(c->service, "s3") == 0) {
		err_set(err, ERR_UNAVAILABLE, "it has no request id");
		return garbage(c, got, ret_fault, err);
	}
	switch (c->shape) {
	case AWS_XML:
		return read_xml(ret, c, got, ret_fault, err);
	case AWS_JSON:
		return read_json(ret, c, got, ret_fault, err);
	case AWS_BYTES:
		break;
	}
	if (c->sink)
		buf_addstr(c->sink, buf_str(&got->body));
	return 0;
}
