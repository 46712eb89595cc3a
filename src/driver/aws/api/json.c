/* Services that speak JSON: the action is a header, and the body a document. */
#include "driver/aws/api/internal.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

int aws_json(struct aws *s, const char *service, const char *action, struct str body,
	     const struct deadline *d, struct aws_answer *ret, struct err *err)
{
	const struct aws_service *known = aws_service_named(service);
	char target[128];
	struct aws_call c = {
		.service = service,
		.action = action,
		.method = "POST",
		.path = "/",
		.query = "",
		.type = "application/x-amz-json-1.1",
		.body = body,
		.shape = AWS_JSON,
	};

	if (!known || !known->target)
		return err_set(err, ERR_INVALID, "'%s' is no service that speaks JSON", service);
	snprintf(target, sizeof(target), "%s.%s", known->target, action);
	aws_call_header(&c, "X-Amz-Target", target);
	return aws_call_run(s, &c, d, ret, err);
}

int aws_ssm_parameter(struct aws *s, const char *name, const struct deadline *d, struct buf *out,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct aws_answer ans = {0};
	struct jsonw w;
	int rc;

	buf_init(&body, 8192);
	jsonw_init(&w, &body);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "Name", name);
	jsonw_close(&w);
	rc = aws_json(s, "ssm", "GetParameter", buf_str(&body), d, &ans, err);
	if (rc == 0) {
		struct str value = doc_str(doc_get(ans.doc, "Parameter"), "Value", (struct str){0});

		if (value.p)
			buf_addstr(out, value);
		else
			rc = err_set(err, ERR_PROTOCOL, "ssm:GetParameter: no value");
	}
	aws_answer_release(&ans);
	return rc < 0 ? err_wrap(err, "parameter '%.80s'", name) : 0;
}
