#include "rig.h"

#define XML "Content-Type: text/xml\r\n"
#define EMPTY "<XResponse><requestId>r-1</requestId></XResponse>"

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
	assert_non_null(strstr(
		fake_header(&r->fake.asked[0], "Authorization"),
		"/eu-west-1/sts/aws4_request, SignedHeaders=content-type;host;x-amz-date, "));
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

/* ---- what follows from an answer ---- */

struct script {
	const char *const *answers; /* "STATUS CODE", "hangup", "garbage", "" = 200 */
	size_t n;
	const char *date; /* header, with \r\n */
};

static bool by_script(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	const struct script *s = f->ctx;
	const char *line = (size_t)nth < s->n ? s->answers[nth] : "";
	char body[512], headers[256];
	int status;
	char code[128];

	(void)asked;
	snprintf(headers, sizeof(headers), XML "%s", s->date ? s->date : "");
	if (strcmp(line, "hangup") == 0)
		return false;
	if (strcmp(line, "html") == 0) {
		fake_say(fd, 200, "Content-Type: text/html\r\n", "<html><p>Sign in</html>");
		return true;
	}
	if (strcmp(line, "xhtml") == 0) {
		fake_say(fd, 200, "Content-Type: text/html\r\n", "<html><p>Sign in</p></html>");
		return true;
	}
	if (strncmp(line, "bare ", 5) == 0) {
		fake_say(fd, (int)strtol(line + 5, NULL, 10), "", "");
		return true;
	}
	if (sscanf(line, "%d %127s", &status, code) != 2) {
		fake_say(fd, 200, headers, EMPTY);
		return true;
	}
	snprintf(body, sizeof(body),
		 "<Response><Errors><Error><Code>%s</Code><Message>No.</Message></Error></Errors>"
		 "<RequestID>req-%d</RequestID></Response>",
		 code, nth);
	fake_say(fd, status, headers, body);
	return true;
}

static int scripted(struct rig *r, struct aws_answer *ans, const char *const *answers, size_t n)
{
	static struct script s;

	s = (struct script){answers, n, NULL};
	r->fake.ctx = &s;
	r->fake.answer = by_script;
	if (!r->s)
		rig_open(r);
	return rig_ask(r, "ec2", "DescribeVpcs", ans);
}
#define SCRIPT(r, ans, ...)                                                                        \
	scripted(r, ans, (const char *const[]){__VA_ARGS__},                                       \
		 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void what_may_pass_later_is_tried_again(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	assert_int_equal(SCRIPT(r, &ans, "503 RequestLimitExceeded", "500 InternalError", "hangup"),
			 0);
	assert_int_equal(r->fake.n, 4);
	assert_string_equal(xml_text(ans.root, "requestId"), "r-1");
	aws_answer_release(&ans);
}

static void an_answer_that_is_not_of_aws_is_asked_again(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	assert_int_equal(SCRIPT(r, &ans, "html", "xhtml", "bare 404", "bare 502"), 0);
	assert_int_equal(r->fake.n, 5);
	assert_string_equal(xml_text(ans.root, "requestId"), "r-1");
	aws_answer_release(&ans);
}

static void what_is_refused_is_not_asked_again(void **state)
{
	static const struct {
		const char *line;
		enum err_kind kind;
	} cases[] = {
		{"403 UnauthorizedOperation", ERR_DENIED},
		{"401 AuthFailure", ERR_DENIED},
		{"400 RequestExpired", ERR_DENIED},
		{"500 InsufficientInstanceCapacity", ERR_CAPACITY},
		{"400 VcpuLimitExceeded", ERR_QUOTA},
		{"400 InvalidParameterValue", ERR_INVALID},
		{"400 InvalidGroup.NotFound", ERR_NOT_FOUND},
		{"400 IdempotentParameterMismatch", ERR_CONFLICT},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rig *r = *state;
		struct aws_answer ans = {0};
		int before = r->fake.n;
		const char *lines[FAKE_MAX_ASKED] = {0};

		for (int k = 0; k <= before; k++)
			lines[k] = cases[i].line;
		assert_int_equal(scripted(r, &ans, lines, (size_t)before + 1), -1);
		assert_int_equal(r->fake.n, before + 1);
		assert_int_equal(r->err.kind, cases[i].kind);
		assert_true(ans.refused);
		assert_string_equal(ans.code, strchr(cases[i].line, ' ') + 1);
		assert_non_null(strstr(r->err.msg, ans.code));
		assert_non_null(strstr(r->err.msg, ans.request_id));
		aws_answer_release(&ans);
	}
}

static void the_tries_have_an_end_and_so_has_the_time(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	const char *lines[64];

	for (size_t i = 0; i < COUNT(lines); i++)
		lines[i] = "503 ServiceUnavailable";
	r->d = deadline_in(300, NULL);
	assert_int_equal(scripted(r, &ans, lines, COUNT(lines)), -1);
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE);
	assert_false(ans.refused); /* it may have been done */
	assert_true(r->fake.n < AWS_MAX_TRIES);
	assert_non_null(strstr(r->err.msg, "ServiceUnavailable: No. (request id req-"));
	aws_answer_release(&ans);
}

static void a_stop_flag_ends_the_waiting(void **state)
{
	static volatile int stop = 1;
	struct rig *r = *state;
	struct aws_answer ans = {0};

	rig_open(r);
	r->d = deadline_in(20000, &stop);
	assert_int_equal(SCRIPT(r, &ans, "503 ServiceUnavailable"), -1);
	assert_int_equal(r->err.kind, ERR_CANCELLED);
	aws_answer_release(&ans);
}

static void a_lost_answer_leaves_the_outcome_open(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	/* The first try may have been applied, whatever the second says. */
	assert_int_equal(SCRIPT(r, &ans, "hangup", "400 InvalidGroup.Duplicate"), -1);
	assert_int_equal(r->err.kind, ERR_CONFLICT);
	assert_false(ans.refused);
	aws_answer_release(&ans);
}

static void a_call_that_is_made_once_is_not_repeated_when_its_outcome_is_open(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	struct aws_request q;
	struct script s = {(const char *const[]){"503 RequestLimitExceeded", "hangup"}, 2, NULL};

	r->fake.ctx = &s;
	r->fake.answer = by_script;
	rig_open(r);
	aws_request_init(&q, "ec2", "CreateSubnet");
	q.once = true;
	assert_int_equal(aws_query(r->s, &q, &r->d, &ans, &r->err), -1);
	assert_int_equal(r->fake.n, 2); /* throttled: again; lost: not again */
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE);
	assert_false(ans.refused);
	aws_request_release(&q);
	aws_answer_release(&ans);
}

static void nobody_there_is_unavailable_and_nothing_was_done(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	rig_set(r, "AWS_ENDPOINT_URL", "http://127.0.0.1:1");
	rig_open(r);
	r->d = deadline_in(300, NULL);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), -1);
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE);
	assert_true(ans.refused);
	aws_answer_release(&ans);
}

static void an_answer_that_is_not_from_aws_is_no_answer(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	const char *lines[] = {"html", "html", "html", "html", "html",
			       "html", "html", "html", "html"};

	r->d = deadline_in(500, NULL);
	assert_int_equal(scripted(r, &ans, lines, COUNT(lines)), -1);
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE);
	assert_false(ans.refused);
	assert_non_null(strstr(r->err.msg, "is not from AWS"));
	aws_answer_release(&ans);
}

static bool endless(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	char *much = xmalloc(XML_MAX_BYTES + 1);

	(void)f;
	(void)nth;
	(void)asked;
	memset(much, ' ', XML_MAX_BYTES + 1);
	fake_say_bytes(fd, 200, "", much, XML_MAX_BYTES + 1);
	free(much);
	return false;
}

static void an_answer_without_end_says_nothing_about_capacity(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	struct aws_request q;

	r->fake.answer = endless;
	rig_open(r);
	aws_request_init(&q, "ec2", "RunInstances");
	q.once = true;
	assert_int_equal(aws_query(r->s, &q, &r->d, &ans, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE);
	assert_false(ans.refused);
	aws_request_release(&q);
	aws_answer_release(&ans);
}

static void a_dry_run_that_would_pass_is_a_success(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	assert_int_equal(SCRIPT(r, &ans, "412 DryRunOperation"), 0);
	assert_string_equal(ans.code, "DryRunOperation");
	aws_answer_release(&ans);
}

static void a_session_token_is_sent_and_signed(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	rig_set(r, "AWS_SESSION_TOKEN", "tok+/=");
	assert_int_equal(SCRIPT(r, &ans, ""), 0);
	assert_string_equal(fake_header(&r->fake.asked[0], "X-Amz-Security-Token"), "tok+/=");
	assert_non_null(strstr(fake_header(&r->fake.asked[0], "Authorization"),
			       "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,"));
	aws_answer_release(&ans);
}

/* ---- the clock ---- */

static void a_wrong_clock_is_corrected_once(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	struct script s = {(const char *const[]){"403 RequestTimeTooSkewed"}, 1,
			   "Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n"};
	int64_t there;

	r->fake.ctx = &s;
	r->fake.answer = by_script;
	rig_open(r);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), 0);
	assert_int_equal(r->fake.n, 2);
	assert_int_equal(strncmp(fake_header(&r->fake.asked[1], "X-Amz-Date"), "20300101T0000", 13),
			 0);
	assert_true(clock_parse(STR("2030-01-01T00:00:00Z"), &there));
	assert_in_range(aws_clock_ms(r->s) - there + 5000, 0, 25000);
	aws_answer_release(&ans);

	/* A second refusal is not the clock's fault. */
	s.answers = (const char *const[]){"", "", "403 RequestTimeTooSkewed",
					  "403 RequestTimeTooSkewed"};
	s.n = 4;
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_int_equal(r->fake.n, 3);
	aws_answer_release(&ans);
}

static void a_right_clock_is_left_alone(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	assert_int_equal(SCRIPT(r, &ans, "403 SignatureDoesNotMatch"), -1);
	assert_int_equal(r->fake.n, 1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	aws_answer_release(&ans);
}

/* ---- pages ---- */

static bool pages(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	static const char *const tokens[] = {"a b", "c&d", ""};
	char body[256];

	(void)asked;
	snprintf(body, sizeof(body),
		 "<XResponse><set><item/><item/></set><nextToken>%s</nextToken></XResponse>",
		 f->ctx	    ? "same"
		 : nth == 1 ? "c&amp;d"
			    : tokens[nth]);
	fake_say(fd, 200, XML, body);
	return true;
}

static int count_items(void *ctx, const struct xml *root, struct err *err)
{
	size_t *n = ctx;

	(void)err;
	*n += xml_count(root, "set/item");
	return 0;
}

static void every_page_is_read(void **state)
{
	struct rig *r = *state;
	struct aws_request q;
	size_t n = 0;

	r->fake.answer = pages;
	rig_open(r);
	aws_request_init(&q, "ec2", "DescribeInstances");
	aws_param_int(&q, 5, "MaxResults");
	if (aws_query_pages(r->s, &q, &r->d, count_items, &n, NULL, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(n, 6);
	assert_int_equal(r->fake.n, 3);
	assert_string_equal(r->fake.asked[1].body, "Action=DescribeInstances&Version=2016-11-15"
						   "&MaxResults=5&NextToken=a%20b");
	assert_string_equal(r->fake.asked[2].body, "Action=DescribeInstances&Version=2016-11-15"
						   "&MaxResults=5&NextToken=c%26d");
	aws_request_release(&q);
}

static void pages_that_lead_to_themselves_end(void **state)
{
	struct rig *r = *state;
	struct aws_request q;
	size_t n = 0;

	r->fake.answer = pages;
	r->fake.ctx = r;
	rig_open(r);
	aws_request_init(&q, "ec2", "DescribeInstances");
	assert_int_equal(aws_query_pages(r->s, &q, &r->d, count_items, &n, NULL, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_PROTOCOL);
	assert_int_equal(r->fake.n, 2);
	aws_request_release(&q);
}

/* ---- JSON ---- */

static bool parameter(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)asked;
	if (nth == 0)
		fake_say(fd, 200, "", "{\"Parameter\":{\"Name\":\"n\",\"Value\":\"ami-1\"}}");
	else if (nth == 1)
		fake_say(
			fd, 400, "x-amzn-RequestId: q-7\r\n",
			"{\"__type\":\"com.amazonaws.ssm#ParameterNotFound\",\"message\":\"gone\"}");
	else
		fake_say(fd, 200, "", "{}");
	return true;
}

static void json_services_answer_and_refuse(void **state)
{
	struct rig *r = *state;
	struct buf out;

	buf_init(&out, 1000);
	r->fake.answer = parameter;
	rig_open(r);
	assert_int_equal(aws_ssm_parameter(r->s, "/a\"b", &r->d, &out, &r->err), 0);
	assert_true(str_is(buf_str(&out), "ami-1"));
	assert_string_equal(r->fake.asked[0].body, "{\"Name\":\"/a\\\"b\"}");
	assert_string_equal(fake_header(&r->fake.asked[0], "X-Amz-Target"),
			    "AmazonSSM.GetParameter");
	assert_int_equal(aws_ssm_parameter(r->s, "n", &r->d, &out, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_NOT_FOUND);
	assert_string_equal(r->err.msg, "parameter 'n': ParameterNotFound: gone (request id q-7)");
	assert_int_equal(aws_ssm_parameter(r->s, "n", &r->d, &out, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_PROTOCOL);
	buf_release(&out);
}

/* ---- ways ---- */

static void a_proxy_is_used_unless_the_host_is_exempt(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};

	r->fake.answer = always_empty;
	rig_set(r, "AWS_ENDPOINT_URL", "http://ec2.test:81");
	rig_set(r, "HTTP_PROXY", r->fake.url);
	rig_open(r);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), 0);
	assert_true(fake_is(&r->fake.asked[0],
			    "POST http://ec2.test:81/ HTTP/1.1\r\nHost: ec2.test:81\r\n"));
	rig_set(r, "no_proxy", "ec2.test");
	rig_open(r);
	r->d = deadline_in(200, NULL);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), -1);
	assert_int_equal(r->fake.n, 1);
	aws_answer_release(&ans);
}

#define THREADS 8
#define CALLS 12

static void *call_often(void *ctx)
{
	struct rig *r = ctx;
	intptr_t good = 0;

	for (int i = 0; i < CALLS; i++) {
		struct aws_answer ans = {0};
		struct aws_request q;
		char account[AWS_ACCOUNT];
		struct err err;

		aws_request_init(&q, "ec2", i % 2 ? "DescribeVpcs" : "DescribeSubnets");
		good += aws_query(r->s, &q, &r->d, &ans, &err) == 0;
		aws_account(r->s, &r->d, account, &err);
		aws_request_release(&q);
		aws_answer_release(&ans);
	}
	return (void *)good;
}

static void threads_share_a_session(void **state)
{
	struct rig *r = *state;
	pthread_t threads[THREADS];
	intptr_t sum = 0;

	r->fake.answer = identity;
	rig_open(r);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call_often, r);
	for (int i = 0; i < THREADS; i++) {
		void *good;

		pthread_join(threads[i], &good);
		sum += (intptr_t)good;
	}
	assert_int_equal(sum, THREADS * CALLS);
	assert_true(r->fake.nconns <= THREADS); /* connections are used again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(the_account_is_asked_once),
		rig_test(what_is_rendered_is_what_is_sent),
		rig_test(what_may_pass_later_is_tried_again),
		rig_test(an_answer_that_is_not_of_aws_is_asked_again),
		rig_test(what_is_refused_is_not_asked_again),
		rig_test(the_tries_have_an_end_and_so_has_the_time),
		rig_test(a_stop_flag_ends_the_waiting),
		rig_test(a_lost_answer_leaves_the_outcome_open),
		rig_test(a_call_that_is_made_once_is_not_repeated_when_its_outcome_is_open),
		rig_test(nobody_there_is_unavailable_and_nothing_was_done),
		rig_test(an_answer_that_is_not_from_aws_is_no_answer),
		rig_test(an_answer_without_end_says_nothing_about_capacity),
		rig_test(a_dry_run_that_would_pass_is_a_success),
		rig_test(a_session_token_is_sent_and_signed),
		rig_test(a_wrong_clock_is_corrected_once),
		rig_test(a_right_clock_is_left_alone),
		rig_test(every_page_is_read),
		rig_test(pages_that_lead_to_themselves_end),
		rig_test(json_services_answer_and_refuse),
		rig_test(a_proxy_is_used_unless_the_host_is_exempt),
		rig_test(threads_share_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
