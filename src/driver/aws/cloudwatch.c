/*
 * CloudWatch: "cloudwatch://REGION/NAMESPACE".  Each point is a set of statistics with the dimensions Job, Run and Node.
 * A call whose answer was lost is repeated: average, minimum and maximum stay what they are, only the count grows.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "driver/aws/api/aws.h"
#include "driver/aws/aws_session.h"
#include "driver/metric_sink.h"

#define DATUM "MetricData.member.%zu."

static void add_number(struct aws_request *r, size_t i, double value, const char *what)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", value);
	aws_param(r, text, DATUM "StatisticValues.%s", i, what);
}

static void add_point(struct aws_request *r, size_t i, const struct metric_batch *b,
		      const struct metric_point *p)
{
	const char *const dimensions[][2] = {{"Job", b->job}, {"Run", b->run}, {"Node", p->node}};
	char at[32];

	clock_format(p->at_ms, at);
	aws_param(r, p->name, DATUM "MetricName", i);
	for (size_t k = 0; k < sizeof(dimensions) / sizeof(dimensions[0]); k++) {
		aws_param(r, dimensions[k][0], DATUM "Dimensions.member.%zu.Name", i, k + 1);
		aws_param(r, dimensions[k][1], DATUM "Dimensions.member.%zu.Value", i, k + 1);
	}
	aws_param(r, at, DATUM "Timestamp", i);
	add_number(r, i, (double)p->count, "SampleCount");
	add_number(r, i, p->sum, "Sum");
	add_number(r, i, p->min, "Minimum");
	add_number(r, i, p->max, "Maximum");
}

static int put(const char *place, const struct metric_batch *b, const struct deadline *d,
	       struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct str namespace = str_from(place), region = str_cut(&namespace, '/');
	struct aws_answer ans = {0};
	struct aws_session *kept;
	struct aws_request r;

	if (!namespace.p || !namespace.n || !region.n)
		return err_set(err, ERR_INVALID, "'cloudwatch://%.80s' is not REGION/NAMESPACE",
			       place);
	if (aws_session_take(arena_strndup(a, region.p, region.n), b->credentials, d, &kept, err) <
	    0)
		return -1;
	aws_request_init(&r, "monitoring", "PutMetricData");
	aws_param(&r, namespace.p, "Namespace");
	for (size_t i = 0; i < b->n; i++)
		add_point(&r, i + 1, b, &b->v[i]);
	int rc = aws_query(aws_session_of(kept), &r, d, &ans, err);

	aws_answer_release(&ans);
	aws_request_release(&r);
	aws_session_give(kept);
	return rc;
}

const struct metric_scheme cloudwatch_metrics = {.name = "cloudwatch", .put = put};
