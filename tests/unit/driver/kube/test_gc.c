/* What a collection in a cluster finds, what of it is in its scope, and how it goes. */
#include "rig.h"

#include "base/err.h"
#include "driver/kube/kube_gc.h"

#define AT(resource) "GET /prefix/api/v1/namespaces/team/" resource "?"
#define JOBS "GET /prefix/apis/batch/v1/namespaces/team/jobs?"
#define RBAC(resource) "GET /prefix/apis/rbac.authorization.k8s.io/v1/namespaces/team/" resource "?"
#define NONE "{\"items\":[]}"
#define LIST(items) "{\"items\":[" items "]}"
#define AND ","
#define META(name, install, run)                                                                   \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"team\",\"uid\":\"u-" name            \
	"\",\"labels\":{\"regatta/install\":\"" install "\",\"regatta/run\":\"" run "\"}"
#define ITEM(name, install, run) META(name, install, run) "}}"
#define OWNED(name, run, owner)                                                                    \
	META(name, "i1", run) ",\"ownerReferences\":[{\"uid\":\"u-" owner "\"}]}}"
#define ENDING(name, run)                                                                          \
	META(name, "i1", run)                                                                      \
	",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"x/y\"]}}"

static bool live_is_r1(void *ctx, const char *run)
{
	(void)ctx;
	return !*run || strcmp(run, "r1") == 0;
}

static int refresh(void *ctx, struct err *err)
{
	int *n = ctx;

	if (n && ++*n > 1)
		return err_set(err, ERR_UNAVAILABLE, "no master answers");
	return 0;
}

static const struct collect_input own = {
	.install = "i1", .has_ledger = true, .is_live = live_is_r1, .refresh = refresh};

/* What only a master in the cluster has. */
static void expect_no_master(struct rig *r, int status)
{
	const char *body = status == 200 ? NONE : STATUS("you may not");

	rig_expect(r, AT("serviceaccounts"), status, body);
	rig_expect(r, AT("persistentvolumeclaims"), status, body);
	rig_expect(r, RBAC("roles"), status, body);
	rig_expect(r, RBAC("rolebindings"), status, body);
}

/* The answers of one look; NULL: an empty list. */
static void expect_lists(struct rig *r, const char *maps, const char *jobs, const char *pods,
			 const char *services, const char *secrets)
{
	rig_expect(r, AT("configmaps"), 200, maps ? maps : NONE);
	rig_expect(r, JOBS, 200, jobs ? jobs : NONE);
	rig_expect(r, AT("pods"), 200, pods ? pods : NONE);
	rig_expect(r, AT("services"), 200, services ? services : NONE);
	rig_expect(r, AT("secrets"), 200, secrets ? secrets : NONE);
	expect_no_master(r, 200);
}

static int collect(struct rig *r, const struct collect_input *like, struct collection *ret)
{
	struct collect_input in = *like;

	in.credentials = r->credentials;
	return kube_gc(&in, r->a, ret, &r->err);
}

static const struct leftover *the(const struct collection *all, const char *id)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].id, id) == 0)
			return &all->v[i];
	fail_msg("%s was not found", id);
	return NULL;
}

static void what_belongs_to_no_live_run_is_removed_with_its_owner(void **state)
{
	struct rig *r = *state;
	struct collection all;

	expect_lists(
		r,
		LIST(ITEM("r1", "i1", "r1") AND ITEM("r2", "i1", "r2") AND ITEM("o", "i2", "r3")),
		LIST(OWNED("r2-w", "r2", "r2")), LIST(OWNED("r2-w-0", "r2", "r2-w")), NULL, NULL);
	rig_expect(r, "DELETE /prefix/api/v1/namespaces/team/configmaps/r2 ", 200, "{}");
	/* the owner is gone before what it owns: that is then removed by itself */
	expect_lists(r, LIST(ITEM("r1", "i1", "r1") AND ITEM("o", "i2", "r3")),
		     LIST(OWNED("r2-w", "r2", "r2")), LIST(OWNED("r2-w-0", "r2", "r2-w")), NULL,
		     NULL);
	rig_expect(r, "DELETE /prefix/apis/batch/v1/namespaces/team/jobs/r2-w ", 200, "{}");
	expect_lists(r, LIST(ITEM("r1", "i1", "r1") AND ITEM("o", "i2", "r3")), NULL, NULL, NULL,
		     NULL);
	assert_int_equal(collect(r, &own, &all), 0);
	assert_int_equal(all.n, 5);
	assert_int_equal(the(&all, "r1")->state, LEFTOVER_LIVE);
	assert_int_equal(the(&all, "o")->state, LEFTOVER_OTHER);
	assert_int_equal(the(&all, "r2")->state, LEFTOVER_REMOVED);
	assert_int_equal(the(&all, "r2-w")->state, LEFTOVER_REMOVED);
	assert_int_equal(the(&all, "r2-w-0")->state, LEFTOVER_REMOVED);
	assert_string_equal(the(&all, "r2-w-0")->kind, "Pod");
	assert_string_equal(the(&all, "r2-w-0")->region, "team");
	assert_non_null(strstr(r->fake.asked[9].body, "\"preconditions\":{\"uid\":\"u-r2\"}"));
	rig_done(r);
}

static void who_may_not_list_what_only_masters_have_collects_the_rest(void **state)
{
	struct rig *r = *state;
	const struct collect_input all_of = {.install = "i1", .dry_run = true};
	struct collection all;

	rig_expect(r, AT("configmaps"), 200, LIST(ITEM("r1", "i1", "r1")));
	rig_expect(r, JOBS, 200, NONE);
	rig_expect(r, AT("pods"), 200, NONE);
	rig_expect(r, AT("services"), 200, NONE);
	rig_expect(r, AT("secrets"), 200, NONE);
	expect_no_master(r, 403);
	assert_int_equal(collect(r, &all_of, &all), 0);
	assert_int_equal(all.n, 1);
	rig_done(r);
}

static void who_may_list_only_some_of_what_masters_have_is_told(void **state)
{
	struct rig *r = *state;
	const struct collect_input all_of = {.install = "i1", .dry_run = true};
	struct collection all;

	expect_lists(r, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < r->n; i++)
		if (strcmp(r->steps[i].call, AT("serviceaccounts")) == 0) {
			r->steps[i].status = 403;
			r->steps[i].body = STATUS("x is forbidden: User \\\"u\\\" cannot list it");
		}
	assert_int_equal(collect(r, &all_of, &all), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_non_null(strstr(r->err.msg, "list ServiceAccounts: User \"u\" cannot list it"));
	rig_done(r);
}

static void a_dry_run_removes_nothing(void **state)
{
	struct rig *r = *state;
	struct collect_input in = own;
	struct collection all;

	in.dry_run = true;
	expect_lists(r, LIST(ITEM("r2", "i1", "r2")), NULL, NULL, NULL, NULL);
	assert_int_equal(collect(r, &in, &all), 0);
	assert_int_equal(the(&all, "r2")->state, LEFTOVER_FOUND);
	rig_done(r);
}

static void without_an_install_everything_is_listed_and_nothing_touched(void **state)
{
	struct rig *r = *state;
	struct collection all;

	expect_lists(r, LIST(ITEM("r2", "i1", "r2")), NULL, NULL, LIST(ITEM("s", "i2", "r3")),
		     NULL);
	assert_int_equal(collect(r, &(struct collect_input){0}, &all), 0);
	assert_int_equal(all.n, 2);
	assert_int_equal(the(&all, "r2")->state, LEFTOVER_OTHER);
	assert_int_equal(the(&all, "s")->state, LEFTOVER_OTHER);
	rig_done(r);
}

static void a_named_install_is_removed_whole_or_one_run_of_it(void **state)
{
	struct rig *r = *state;
	struct collection all;

	expect_lists(r, LIST(ITEM("r1", "i2", "r1")), NULL, NULL, NULL,
		     LIST(ITEM("r9", "i2", "r9")));
	rig_expect(r, "DELETE /prefix/api/v1/namespaces/team/secrets/r9 ", 404, STATUS("gone"));
	expect_lists(r, LIST(ITEM("r1", "i2", "r1")), NULL, NULL, NULL, NULL);
	assert_int_equal(collect(r, &(struct collect_input){.install = "i2", .run = "r9"}, &all),
			 0);
	assert_int_equal(the(&all, "r1")->state, LEFTOVER_LIVE);
	assert_int_equal(the(&all, "r9")->state, LEFTOVER_REMOVED);
	expect_lists(r, LIST(ITEM("r1", "i2", "r1")), NULL, NULL, NULL, NULL);
	rig_expect(r, "DELETE /prefix/api/v1/namespaces/team/configmaps/r1 ", 200, "{}");
	expect_lists(r, NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(collect(r, &(struct collect_input){.install = "i2"}, &all), 0);
	assert_int_equal(the(&all, "r1")->state, LEFTOVER_REMOVED);
	rig_done(r);
}

static void what_manifests_made_is_nobodys_leftover(void **state)
{
	struct rig *r = *state;
	struct collection all;

	expect_lists(r, NULL, LIST(ITEM("ctr", "manifests", "ctr") AND ITEM("none", "", "x")), NULL,
		     NULL, NULL);
	assert_int_equal(collect(r, &(struct collect_input){.install = "manifests"}, &all), 0);
	assert_int_equal(all.n, 0);
	rig_done(r);
	assert_non_null(strstr(r->fake.asked[0].head, "regatta%2Finstall%21%3Dmanifests"));
}

static void what_is_refused_is_named_and_its_dependents_are_tried(void **state)
{
	struct rig *r = *state;
	struct collect_input in = own;
	struct collection all;
	int looks = 0;

	in.ctx = &looks;
	expect_lists(r, LIST(ITEM("r2", "i1", "r2")), LIST(OWNED("r2-w", "r2", "r2")), NULL, NULL,
		     LIST(ENDING("r2-s", "r2")));
	rig_expect(r, "DELETE /prefix/api/v1/namespaces/team/configmaps/r2 ", 403,
		   STATUS("forbidden"));
	rig_expect(r, "DELETE /prefix/apis/batch/v1/namespaces/team/jobs/r2-w ", 409,
		   STATUS("uid"));
	expect_lists(r, LIST(ITEM("r2", "i1", "r2")), NULL, NULL, NULL, LIST(ENDING("r2-s", "r2")));
	/* the second look is judged by nobody: the runs are not known */
	assert_int_equal(collect(r, &in, &all), -1);
	assert_string_equal(r->err.msg, "no master answers");
	assert_int_equal(the(&all, "r2")->state, LEFTOVER_FOUND);
	assert_string_equal(the(&all, "r2")->why, "delete a ConfigMap: forbidden");
	assert_string_equal(the(&all, "r2-s")->why,
			    "it is being deleted, and waits for finalizer x/y");
	rig_done(r);
}

static void what_stays_refused_is_left_and_the_collection_ends(void **state)
{
	struct rig *r = *state;
	struct collection all;

	for (int i = 0; i < 6; i++) {
		expect_lists(r, NULL, NULL, NULL, LIST(ITEM("s", "i1", "r2")), NULL);
		rig_expect(r, "DELETE /prefix/api/v1/namespaces/team/services/s ", 403,
			   STATUS("forbidden"));
	}
	assert_int_equal(collect(r, &own, &all), 0);
	assert_int_equal(the(&all, "s")->state, LEFTOVER_FOUND);
	assert_string_equal(the(&all, "s")->why, "delete a Service: forbidden");
}

static void all_namespaces_are_asked_at_once(void **state)
{
	struct rig *r = *state;
	struct collect_input in = own;
	struct collection all;

	in.all_regions = true;
	rig_expect(r, "GET /prefix/api/v1/configmaps?", 403, STATUS("not at the cluster scope"));
	assert_int_equal(collect(r, &in, &all), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_string_equal(r->err.msg, "list ConfigMaps: not at the cluster scope");
	rig_done(r);
}

static void without_a_cluster_it_says_so(void **state)
{
	struct rig *r = *state;
	struct collection all;

	setenv("KUBECONFIG", "/nowhere", 1);
	assert_int_equal(kube_gc(&own, r->a, &all, &r->err), -1);
	unsetenv("KUBECONFIG");
	assert_int_equal(r->err.kind, ERR_INVALID);
	assert_int_equal(all.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(what_belongs_to_no_live_run_is_removed_with_its_owner),
		rig_test(who_may_not_list_what_only_masters_have_collects_the_rest),
		rig_test(who_may_list_only_some_of_what_masters_have_is_told),
		rig_test(a_dry_run_removes_nothing),
		rig_test(without_an_install_everything_is_listed_and_nothing_touched),
		rig_test(a_named_install_is_removed_whole_or_one_run_of_it),
		rig_test(what_manifests_made_is_nobodys_leftover),
		rig_test(what_is_refused_is_named_and_its_dependents_are_tried),
		rig_test(what_stays_refused_is_left_and_the_collection_ends),
		rig_test(all_namespaces_are_asked_at_once),
		rig_test(without_a_cluster_it_says_so),
	};

	return cmocka_run_group_tests_name("gc", tests, NULL, NULL);
}
