/* Which GPUs of the machine are a node's. */
#include "unit.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu_claims.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/machine.h"

#define GPUS 4

/* Claims are names of a network namespace: in one of its own this test meets no other run. */
static int setup(void **state)
{
	static const char smi[] =
		"#!/bin/sh\nfor i in 0 1 2 3; do echo \"GPU $i: NVIDIA A100 (UUID: GPU-$i)\"; done\n";

	if (unit_make_dir(state) < 0 || mkdir(unit_path(state, "a"), 0700) < 0 ||
	    mkdir(unit_path(state, "b"), 0700) < 0 || mkdir(unit_path(state, "c"), 0700) < 0 ||
	    mkdir(unit_path(state, "d"), 0700) < 0 ||
	    file_write_atomic(unit_path(state, "nvidia-smi"), STR(smi), 0700, false, NULL) < 0)
		return -1;
	setenv("PATH", *state, 1);
	return 0;
}

static void be_alone(void)
{
	if ((unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) ||
	    machine_gpus() != GPUS)
		skip();
}

static void takes(void **state, struct gpu_claims *g, const char *node, int64_t want,
		  const char *list)
{
	struct err err = {0};

	if (gpu_claims_take(g, unit_path(state, node), want, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(g->list, list);
}

static void no_gpu_is_given_out_twice(void **state)
{
	struct gpu_claims a = {0}, b = {0}, c = {0}, d = {0};
	struct err err = {0};

	be_alone();
	takes(state, &a, "a", 2, "0,1");
	takes(state, &b, "b", 1, "2");
	takes(state, &a, "a", 2, "0,1"); /* it has them */
	assert_int_equal(gpu_claims_take(&c, unit_path(state, "c"), 2, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_string_equal(err.msg, "resources.gpus = 2: this machine has 4, of which 1 are free");
	takes(state, &d, "d", 1, "3"); /* who was refused has kept nothing */
	gpu_claims_release(&b);
	takes(state, &c, "c", 1, "2");
	gpu_claims_release(&a);
	gpu_claims_release(&c);
	gpu_claims_release(&d);
}

static void the_next_agent_of_a_node_has_the_same_ones(void **state)
{
	struct gpu_claims a = {0}, b = {0}, other = {0};

	be_alone();
	takes(state, &a, "a", 1, "0");
	takes(state, &b, "b", 2, "1,2");
	gpu_claims_release(&a);
	gpu_claims_release(&b); /* it was killed */
	gpu_claims_resume(&b, unit_path(state, "b"));
	takes(state, &b, "b", 2, "1,2");
	takes(state, &other, "c", 2, "0,3");
	gpu_claims_release(&b);
	gpu_claims_release(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_gpu_is_given_out_twice, setup, unit_remove_dir),
		cmocka_unit_test_setup_teardown(the_next_agent_of_a_node_has_the_same_ones, setup,
						unit_remove_dir),
	};

	return cmocka_run_group_tests_name("agent: gpu claims", tests, NULL, NULL);
}
