#include "unit.h"

#include <pthread.h>

#include "driver/aws/api/governor.h"

static int taken(struct governor *g, const char *service, const char *action, int64_t resources,
		 int64_t now, int most)
{
	int n = 0;

	while (n < most && governor_take(g, service, action, resources, now) == 0)
		n++;
	return n;
}

static void each_action_has_ec2s_own_figures(void **state)
{
	static const struct {
		const char *service, *action;
		int burst, per_second;
	} cases[] = {
		{"ec2", "RunInstances", 5, 2},	       {"ec2", "DescribeInstances", 100, 20},
		{"ec2", "CreateSecurityGroup", 50, 5}, {"ec2", "TerminateInstances", 100, 5},
		{"ec2", "DeleteSecurityGroup", 50, 5}, {"iam", "CreateRole", 20, 5},
		{"iam", "GetRole", 100, 20},	       {"sts", "GetCallerIdentity", 50, 10},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct governor *g = governor_new();

		assert_int_equal(taken(g, cases[i].service, cases[i].action, 0, 1000, 10000),
				 cases[i].burst);
		assert_int_equal(taken(g, cases[i].service, cases[i].action, 0, 2000, 10000),
				 cases[i].per_second);
		assert_int_equal(taken(g, cases[i].service, cases[i].action, 0, 1002000, 10000),
				 cases[i].burst);
		governor_free(g);
	}
}

static void creates_do_not_hold_up_deletes(void **state)
{
	struct governor *g = governor_new();

	(void)state;
	taken(g, "ec2", "CreateSecurityGroup", 0, 0, 1000);
	taken(g, "ec2", "RunInstances", 1, 0, 1000);
	assert_int_equal(taken(g, "ec2", "DeleteSecurityGroup", 0, 0, 1000), 50);
	assert_int_equal(taken(g, "ec2", "TerminateInstances", 1, 0, 1000), 100);
	governor_free(g);
}

static void instances_count_one_by_one(void **state)
{
	struct governor *g = governor_new();

	(void)state;
	assert_int_equal(governor_take(g, "ec2", "RunInstances", 900, 0), 0);
	/* 200 want 100 more than there are, at two a second. */
	int64_t wait = governor_take(g, "ec2", "RunInstances", 200, 0);

	assert_in_range(wait, 50000, 50001);
	assert_int_equal(governor_take(g, "ec2", "RunInstances", 100, 0), 0);
	assert_int_equal(governor_take(g, "ec2", "RunInstances", 200, 100001), 0);
	/* More than the bucket holds can be had when it is full. */
	assert_int_equal(governor_take(g, "ec2", "RunInstances", 3000, 10000000), 0);
	assert_true(governor_take(g, "ec2", "RunInstances", 1, 10001000) > 0);
	governor_free(g);
}

static void too_fast_empties_the_bucket(void **state)
{
	struct governor *g = governor_new();

	(void)state;
	assert_int_equal(governor_take(g, "ec2", "DescribeInstances", 0, 0), 0);
	governor_throttled(g, "ec2", "DescribeInstances", 0);
	assert_in_range(governor_take(g, "ec2", "DescribeInstances", 0, 0), 50, 51);
	assert_int_equal(governor_take(g, "ec2", "DescribeVpcs", 0, 0), 0);
	governor_free(g);
}

static void *take_many(void *ctx)
{
	intptr_t n = 0;

	for (int i = 0; i < 1000; i++)
		n += governor_take(ctx, "ec2", "DescribeInstances", 0, 5) == 0;
	return (void *)n;
}

static void threads_share_it(void **state)
{
	struct governor *g = governor_new();
	pthread_t threads[4];
	intptr_t sum = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, take_many, g);
	for (size_t i = 0; i < COUNT(threads); i++) {
		void *n;

		pthread_join(threads[i], &n);
		sum += (intptr_t)n;
	}
	assert_int_equal(sum, 100);
	governor_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_action_has_ec2s_own_figures),
		cmocka_unit_test(creates_do_not_hold_up_deletes),
		cmocka_unit_test(instances_count_one_by_one),
		cmocka_unit_test(too_fast_empties_the_bucket),
		cmocka_unit_test(threads_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
