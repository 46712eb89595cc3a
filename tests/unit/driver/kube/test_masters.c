/* Which masters a namespace has, and how they are reached by somebody who has only a kubeconfig. */
#include "rig.h"

#include "base/err.h"
#include "driver/engine_tools.h"
#include "driver/kube/kube_masters.h"

#define PODS "GET /prefix/api/v1/namespaces/team/pods?"
#define SECRET(name) "GET /prefix/api/v1/namespaces/team/secrets/" name " "
#define NAMED(run, install, phase, owner)                                                          \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"team\",\"labels\":{\"regatta/run\":\"" run  \
	"\",\"regatta/install\":\"" install "\"}" owner "},\"status\":{\"phase\":\"" phase "\"}}"
#define POD(run, install, phase)                                                                   \
	NAMED(run, install, phase, ",\"ownerReferences\":[{\"name\":\"" run "-regatta\"}]")
#define LIST(items) "{\"items\":[" items "]}"

static int find(struct rig *r, const struct masters_input *in, struct running_masters *ret)
{
	return kube_masters(in, r->a, ret, &r->err);
}

static void a_master_is_found_by_its_pod_and_reached_with_the_token_of_its_secret(void **state)
{
	struct rig *r = *state;
	struct running_masters all;

	rig_expect(r, PODS, 200, LIST(POD("r1", "i1", "Running") "," POD("r2", "i2", "Pending")));
	rig_expect(r, SECRET("r1-regatta"), 200, "{\"data\":{\"token\":\"c2VzYW1l\"}}");
	rig_expect(r, SECRET("r2-regatta"), 404, STATUS("there is none"));
	assert_int_equal(find(r, &(struct masters_input){0}, &all), 0);
	assert_int_equal(all.n, 2);
	assert_non_null(strstr(r->fake.asked[0].head, "labelSelector=regatta%2Frole%3Dregatta"));
	assert_string_equal(all.region, "a/team");
	assert_string_equal(all.v[0].run, "r1");
	assert_string_equal(all.v[0].install, "i1");
	assert_string_equal(all.v[0].region, "a/team");
	assert_string_equal(all.v[0].state, "Running");
	assert_string_equal(all.v[0].url, "kube://team/r1-regatta:5436?context=a");
	assert_string_equal(all.v[0].token, "sesame");
	assert_null(all.v[0].why);
	assert_string_equal(all.v[1].state, "Pending");
	assert_null(all.v[1].url);
	assert_non_null(strstr(all.v[1].why, "there is none"));
	rig_done(r);
}

static void two_pods_of_one_master_are_one_and_ended_or_foreign_ones_are_none(void **state)
{
	struct rig *r = *state;
	struct running_masters all;

	rig_expect(r, PODS, 200,
		   LIST(POD("r1", "i1", "Pending") "," POD("r1", "i1", "Running") "," POD(
			   "r2", "i1",
			   "Failed") "," POD("r3", "i1",
					     "Succeeded") "," POD("r4", "manifests",
								  "Running") "," NAMED("r5", "i1",
										       "Running",
										       "")));
	rig_expect(r, SECRET("r1-regatta"), 200, "{\"data\":{\"token\":\"c2VzYW1l\"}}");
	assert_int_equal(find(r, &(struct masters_input){0}, &all), 0);
	assert_int_equal(all.n, 1);
	assert_string_equal(all.v[0].state, "Running");
	rig_done(r);
}

static void a_secret_without_a_token_is_the_reason(void **state)
{
	struct rig *r = *state;
	struct running_masters all;

	rig_expect(r, PODS, 200, LIST(POD("r1", "i1", "Running")));
	rig_expect(r, SECRET("r1-regatta"), 200, "{\"data\":{}}");
	assert_int_equal(find(r, &(struct masters_input){0}, &all), 0);
	assert_null(all.v[0].url);
	assert_string_equal(all.v[0].why, "Secret r1-regatta has no token");
	rig_done(r);
}

static void context_and_namespace_say_where_to_search(void **state)
{
	struct rig *r = *state;
	const struct masters_input there = {.region = "other"}, nowhere = {.context = "b"};
	struct running_masters all;

	rig_expect(r, "GET /prefix/api/v1/namespaces/other/pods?", 200, LIST(""));
	assert_int_equal(find(r, &there, &all), 0);
	assert_int_equal(all.n, 0);
	assert_string_equal(all.region, "a/other");
	rig_done(r);
	assert_int_equal(find(r, &nowhere, &all), -1);
	assert_non_null(strstr(r->err.msg, "has no context 'b'"));
}

static void who_may_not_list_pods_is_told_so(void **state)
{
	struct rig *r = *state;
	struct running_masters all;

	rig_expect(r, PODS, 403, STATUS("you may not"));
	assert_int_equal(find(r, &(struct masters_input){0}, &all), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_int_equal(all.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_config_test(
			a_master_is_found_by_its_pod_and_reached_with_the_token_of_its_secret),
		rig_config_test(two_pods_of_one_master_are_one_and_ended_or_foreign_ones_are_none),
		rig_config_test(a_secret_without_a_token_is_the_reason),
		rig_config_test(context_and_namespace_say_where_to_search),
		rig_config_test(who_may_not_list_pods_is_told_so),
	};

	return cmocka_run_group_tests_name("kube masters", tests, NULL, NULL);
}
