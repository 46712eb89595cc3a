/* Long answers in pieces: a share per client, and a bound on each turn of the loop. */
#include "unit.h"

#include "base/clock.h"
#include "master/api/slices.h"
#include "sys/loop.h"

#define MAX_ROUNDS 100000

struct piece_job {
	struct slice_job job;
	int left, done, dropped;
	int64_t cost_us;
	int *order, *at; /* which job did its pieces, in order */
	int id;
};

static bool do_piece(void *ctx)
{
	struct piece_job *p = ctx;
	int64_t end = clock_boot_us() + p->cost_us;

	while (clock_boot_us() < end)
		;
	p->done++;
	if (p->order)
		p->order[(*p->at)++] = p->id;
	return --p->left > 0;
}

static void drop(void *ctx)
{
	((struct piece_job *)ctx)->dropped++;
}

static struct piece_job job(int id, int pieces)
{
	return (struct piece_job){.id = id, .left = pieces};
}

static void add(struct slices *s, uint32_t client, struct piece_job *p)
{
	slice_job_init(&p->job, do_piece, drop, p);
	slices_add(s, client, &p->job);
}

static void one_turn_of_the_loop_does_a_bounded_part(void **state)
{
	struct loop *l = loop_new();
	struct slices *s = slices_new(l);
	struct piece_job p = job(0, 1000);

	(void)state;
	p.cost_us = 1000; /* a second in all */
	add(s, 1, &p);
	loop_round(l, 0);
	loop_round(l, 0);
	assert_true(p.done > 0);
	assert_true(p.done <= 2 * (SLICES_TURN_MS + 1));
	slices_free(s);
	loop_free(l);
}

static void a_client_with_many_jobs_has_one_share(void **state)
{
	struct loop *l = loop_new();
	struct slices *s = slices_new(l);
	struct piece_job many[100], one = job(100, 3);
	int order[303], at = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		many[i] = job(i, 3);
		many[i].order = order;
		many[i].at = &at;
		add(s, 1, &many[i]);
	}
	one.order = order;
	one.at = &at;
	add(s, 2, &one);
	for (int i = 0; i < MAX_ROUNDS && at < 303; i++)
		loop_round(l, 10);
	assert_int_equal(at, 303);
	/* Its three pieces are among the first six, although a hundred jobs were there before. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(order[2 * i + 1], 100);
	slices_free(s);
	loop_free(l);
}

static void the_jobs_of_a_client_follow_each_other(void **state)
{
	struct loop *l = loop_new();
	struct slices *s = slices_new(l);
	struct piece_job a = job(0, 2), b = job(1, 2);
	int order[4], at = 0;

	(void)state;
	a.order = b.order = order;
	a.at = b.at = &at;
	add(s, 1, &a);
	add(s, 1, &b);
	for (int i = 0; i < MAX_ROUNDS && at < 4; i++)
		loop_round(l, 10);
	assert_int_equal(at, 4);
	assert_int_equal(order[0] + order[1], 0);
	assert_int_equal(order[2] + order[3], 2);
	slices_free(s);
	loop_free(l);
}

static void a_removed_job_gets_no_piece_and_the_rest_are_dropped_at_the_end(void **state)
{
	struct loop *l = loop_new();
	struct slices *s = slices_new(l);
	struct piece_job a = job(0, 5), b = job(1, 5), c = job(2, 5);

	(void)state;
	add(s, 1, &a);
	slice_job_remove(&a.job);
	slice_job_remove(&a.job); /* twice is fine */
	add(s, 1, &b);
	add(s, 2, &c);
	slices_free(s);
	assert_int_equal(a.done + b.done + c.done, 0);
	assert_int_equal(a.dropped, 0);
	assert_int_equal(b.dropped, 1);
	assert_int_equal(c.dropped, 1);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_turn_of_the_loop_does_a_bounded_part),
		cmocka_unit_test(a_client_with_many_jobs_has_one_share),
		cmocka_unit_test(the_jobs_of_a_client_follow_each_other),
		cmocka_unit_test(a_removed_job_gets_no_piece_and_the_rest_are_dropped_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
