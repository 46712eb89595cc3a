#include "rig.h"

#define XML "Content-Type: text/xml\r\n"
#define EMPTY "<R><requestId>r-1</requestId></R>"

static bool identity(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	(void)asked;
	fake_say(fd, 200, XML,
		 "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012"
		 "</Account></GetCallerIdentityResult></GetCallerIdentityResponse>");
	return true;
}

static void the_account_is_asked_once(void **state)
{
	struct rig *r = *state;
	char account[AWS_ACCOUNT];

	r->fake.answer = identity;
	rig_open(r);
	for (int i = 0; i < 3; i++) {
		if (aws_account(r->s, &r->d, account, &r->err) < 0)
			fail_msg("%s", r->err.msg);
		assert_string_equal(account, "123456789012");
	}
	assert_int_equal(r->fake.n, 1);
	assert_string_equal(r->fake.asked[0].body, "Action=GetCallerIdentity&Version=2011-06-15");
	assert_non_null(strstr(fake_header(&r->fake.asked[0], "Authorization"),
			       "AWS4-HMAC-SHA256 Credential=AKIDTEST/"));
	assert_non_null(strstr(fake_header(&r->fake.asked[0], "Authorization"),
			       "/eu-west-1/sts/aws4_request, SignedHeaders=host;x-amz-date, "));
}

static bool always_empty(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	(void)asked;
	fake_say(fd, 200, XML, EMPTY);
	return true;
}

static void what_is_rendered_is_what_is_sent(void **state)
{
	struct rig *r = *state;
	struct aws_request q, again;
	struct aws_answer ans = {0};

	r->fake.answer = always_empty;
	rig_open(r);
	aws_request_init(&q, "ec2", "RunInstances");
	aws_param_int(&q, 3, "MinCount");
	aws_param(&q, "a b&c=d/\xc3\xa4", "TagSpecification.%d.Tag.%d.Value", 1, 2);
	aws_param(&q, NULL, "KeyName");
	aws_param_bool(&q, true, "EbsOptimized");
	aws_param_base64(&q, STR("#!/bin/sh\n"), "UserData");
	struct str bytes = aws_request_bytes(&q);
	const char *wanted = "Action=RunInstances&Version=2016-11-15&MinCount=3"
			     "&TagSpecification.1.Tag.2.Value=a%20b%26c%3Dd%2F%C3%A4"
			     "&EbsOptimized=true&UserData=IyEvYmluL3NoCg%3D%3D";

	assert_true(str_is(bytes, wanted));
	assert_int_equal(aws_request_from_bytes(&again, "ec2", bytes, &r->err), 0);
	assert_string_equal(again.action, "RunInstances");
	assert_int_equal(aws_query(r->s, &again, &r->d, &ans, &r->err), 0);
	assert_string_equal(r->fake.asked[0].body, wanted);
	assert_string_equal(ans.request_id, "r-1");
	assert_int_equal(aws_request_from_bytes(&again, "ec2", STR("{}"), &r->err), -1);
	aws_answer_release(&ans);
	aws_request_release(&again);
	aws_request_release(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(the_account_is_asked_once),
		rig_test(what_is_rendered_is_what_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
