#include "driver/aws/iam.h"

#include <string.h>

void iam_tags(struct aws_request *r, const struct aws_work *w)
{
	struct aws_tag tags[AWS_MAX_TAGS];
	size_t n = aws_tags(w, false, tags);

	for (size_t i = 0; i < n; i++) {
		aws_param(r, tags[i].key, "Tags.member.%zu.Key", i + 1);
		aws_param(r, tags[i].value, "Tags.member.%zu.Value", i + 1);
	}
}

bool iam_is_ours(const struct xml *x, const struct driver_row *row)
{
	for (const struct xml *t = xml_at(x, "Tags/member"); t; t = xml_next(t))
		if (strcmp(xml_text(t, "Key"), "regatta:install") == 0)
			return strcmp(xml_text(t, "Value"), row->install) == 0;
	return false;
}

int iam_call(const struct aws_work *w, const char *action, const char *const *params,
	     struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "iam", action);
	for (; params[0]; params += 2)
		aws_param(&r, params[1], "%s", params[0]);
	return aws_kind_call(w, &r, ans, err);
}
