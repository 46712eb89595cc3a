/* Metrics on their way to CloudWatch. */
#include "unit.h"

#include <string.h>

#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/aws_session.h"
#include "driver/metric_sink.h"
#include "fake_http.h"

struct rig {
	struct fake_http fake;
	char credentials[400];
	struct err err;
	void *dir;
	int status; /* of the first answer */
};

static bool answer(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	const struct rig *r = f->ctx;

	(void)asked;
	if (nth || r->status == 200)
		fake_say(fd, 200, "", "<PutMetricDataResponse/>");
	else
		fake_say(
			fd, r->status, "",
			r->status == 403
				? "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></"
				  "Error></ErrorResponse>"
				: "<ErrorResponse><Error><Code>Throttling</Code><Message>slow</Message>"
				  "</Error></ErrorResponse>");
	return true;
}

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	if (unit_make_dir(&r->dir) < 0)
		return -1;
	r->status = 200;
	r->fake.answer = answer;
	r->fake.ctx = r;
	fake_start(&r->fake);
	setenv("HOME", r->dir, 1);
	snprintf(
		r->credentials, sizeof(r->credentials),
		"{\"access_key\":\"AK\",\"secret_key\":\"s\",\"env\":{\"AWS_ENDPOINT_URL\":\"%s\"}}",
		r->fake.url);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	aws_sessions_drop();
	fake_stop(&r->fake);
	int rc = unit_remove_dir(&r->dir);

	free(r);
	return rc;
}

static int put(struct rig *r, const char *url)
{
	static const struct metric_point points[] = {
		{.name = "loss",
		 .node = "worker-0",
		 .at_ms = 1700000040000,
		 .count = 3,
		 .sum = 1.5,
		 .min = 0.25,
		 .max = 1},
		{.name = "acc", .node = "worker-1", .at_ms = 1700000040000, .count = 1},
	};
	const struct metric_batch b = {
		.url = url,
		.credentials = r->credentials,
		.job = "mnist",
		.run = "mnist-abcd",
		.v = points,
		.n = 2,
	};
	struct deadline d = deadline_in(20000, NULL);

	return metric_sink_put(&b, &d, &r->err);
}

static void a_batch_is_one_call_with_the_statistics_of_each_point(void **state)
{
	struct rig *r = *state;

	if (put(r, "cloudwatch://eu-west-1/Team/Regatta") < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(r->fake.n, 1);
	assert_non_null(strstr(fake_header(&r->fake.asked[0], "Authorization"),
			       "/eu-west-1/monitoring/aws4_request"));
	const char *body = r->fake.asked[0].body;

	assert_non_null(
		strstr(body, "Action=PutMetricData&Version=2010-08-01&Namespace=Team%2FRegatta&"));
	assert_non_null(strstr(body, "MetricData.member.1.MetricName=loss&"
				     "MetricData.member.1.Dimensions.member.1.Name=Job&"
				     "MetricData.member.1.Dimensions.member.1.Value=mnist&"
				     "MetricData.member.1.Dimensions.member.2.Name=Run&"
				     "MetricData.member.1.Dimensions.member.2.Value=mnist-abcd&"
				     "MetricData.member.1.Dimensions.member.3.Name=Node&"
				     "MetricData.member.1.Dimensions.member.3.Value=worker-0&"
				     "MetricData.member.1.Timestamp=2023-11-14T22%3A14%3A00.000Z&"
				     "MetricData.member.1.StatisticValues.SampleCount=3&"
				     "MetricData.member.1.StatisticValues.Sum=1.5&"
				     "MetricData.member.1.StatisticValues.Minimum=0.25&"
				     "MetricData.member.1.StatisticValues.Maximum=1&"
				     "MetricData.member.2.MetricName=acc&"));
}

static void a_call_that_is_throttled_is_made_again(void **state)
{
	struct rig *r = *state;

	r->status = 400;
	assert_int_equal(put(r, "cloudwatch://eu-west-1/n"), 0);
	assert_int_equal(r->fake.n, 2);
}

static void one_that_is_denied_is_not(void **state)
{
	struct rig *r = *state;

	r->status = 403;
	assert_int_equal(put(r, "cloudwatch://eu-west-1/n"), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_int_equal(r->fake.n, 1);
}

static void another_place_is_no_place_for_metrics(void **state)
{
	struct rig *r = *state;
	static const char *const bad[] = {"cloudwatch:/x",  "cloudwatc://r/n", "cloudwatch2://r/n",
					  "cloudwatch://r", "cloudwatch:///n", "cloudwatch://r/"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		r->err = (struct err){0};
		assert_int_equal(put(r, bad[i]), -1);
		assert_int_equal(r->err.kind, ERR_INVALID);
	}
	assert_int_equal(r->fake.n, 0);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(a_batch_is_one_call_with_the_statistics_of_each_point),
		CASE(a_call_that_is_throttled_is_made_again),
		CASE(one_that_is_denied_is_not),
		CASE(another_place_is_no_place_for_metrics),
	};

	return cmocka_run_group_tests_name("driver aws: cloudwatch", tests, NULL, NULL);
}
