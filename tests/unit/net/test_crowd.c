/* How many peers may be here that have not said who they are. */
#include "unit.h"

#include "base/clock.h"
#include "net/crowd.h"
#include "sys/loop.h"

#define ENOUGH 3
#define MOST 5
#define PATIENCE_MS 60
#define WAIT_MS 5000

struct rig {
	struct loop *loop;
	struct crowd crowd;
	struct crowd_member v[8];
	bool full;
	int turns; /* of `full` */
	int dropped[8], ndropped;
};

static void on_full(void *ctx, bool full)
{
	struct rig *r = ctx;

	r->full = full;
	r->turns++;
}

static void drop(void *ctx, struct crowd_member *m)
{
	struct rig *r = ctx;

	r->dropped[r->ndropped++] = (int)(m - r->v);
	crowd_leave(&r->crowd, m);
}

static int make(void **state)
{
	static const struct crowd_limits limits = {ENOUGH, MOST, PATIENCE_MS};
	static const struct crowd_events events = {on_full, drop};
	struct rig *r = xcalloc(1, sizeof(*r));

	r->loop = loop_new();
	crowd_init(&r->crowd, r->loop, &limits, &events, r);
	*state = r;
	return 0;
}

static int release(void **state)
{
	struct rig *r = *state;

	crowd_release(&r->crowd);
	loop_free(r->loop);
	free(r);
	return 0;
}

static void enter(struct rig *r, int first, int n)
{
	for (int i = first; i < first + n; i++)
		crowd_enter(&r->crowd, &r->v[i]);
}

static void pass_ms(struct rig *r, int64_t ms)
{
	for (int64_t until = clock_boot_ms() + ms; clock_boot_ms() < until;)
		loop_round(r->loop, 5);
}

/* Rule: enough is told once, and once more when there is room. */
static void enough_is_told_and_so_is_room(void **state)
{
	struct rig *r = *state;

	enter(r, 0, ENOUGH - 1);
	assert_false(r->full);
	enter(r, ENOUGH - 1, 2);
	assert_true(r->full);
	crowd_leave(&r->crowd, &r->v[0]);
	assert_true(r->full);
	crowd_leave(&r->crowd, &r->v[2]);
	assert_false(r->full);
	assert_int_equal(r->turns, 2);
	assert_int_equal(r->ndropped, 0);
}

/* Rule: nobody is dropped while there is room for others. */
static void those_who_are_in_nobodys_way_may_stay(void **state)
{
	struct rig *r = *state;

	enter(r, 0, ENOUGH - 1);
	pass_ms(r, 2 * PATIENCE_MS);
	assert_int_equal(r->ndropped, 0);
}

/* Rule: in a full crowd the old ones go after a while, and those who have just come stay. */
static void in_a_full_crowd_the_old_ones_go(void **state)
{
	struct rig *r = *state;

	enter(r, 0, ENOUGH - 1);
	pass_ms(r, 2 * PATIENCE_MS);
	enter(r, ENOUGH - 1, 1);
	assert_int_equal(r->ndropped, 0); /* never inside a call */
	for (int64_t until = clock_boot_ms() + WAIT_MS; r->full && clock_boot_ms() < until;)
		loop_round(r->loop, 5);
	assert_int_equal(r->ndropped, ENOUGH - 1);
	assert_int_equal(r->dropped[0], 0);
	assert_false(r->full);
	assert_int_equal(r->crowd.n, 1);
}

/* Rule: nobody of those who come at the same time is dropped before the patience is over. */
static void those_who_come_together_have_their_time(void **state)
{
	struct rig *r = *state;
	int64_t start = clock_boot_ms();

	enter(r, 0, MOST);
	for (int64_t until = start + WAIT_MS; r->full && clock_boot_ms() < until;)
		loop_round(r->loop, 5);
	assert_true(clock_boot_ms() - start >= PATIENCE_MS);
	assert_false(r->full);
}

/* Rule: of those who cannot be held back the oldest makes room at once. */
static void there_are_never_more_than_most(void **state)
{
	struct rig *r = *state;

	enter(r, 0, MOST + 2);
	assert_int_equal(r->crowd.n, MOST);
	assert_int_equal(r->ndropped, 2);
	assert_int_equal(r->dropped[0], 0);
	assert_int_equal(r->dropped[1], 1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make, release)
	static const struct CMUnitTest tests[] = {
		CASE(enough_is_told_and_so_is_room),
		CASE(those_who_are_in_nobodys_way_may_stay),
		CASE(in_a_full_crowd_the_old_ones_go),
		CASE(those_who_come_together_have_their_time),
		CASE(there_are_never_more_than_most),
	};

	return cmocka_run_group_tests_name("net: crowd", tests, NULL, NULL);
}
