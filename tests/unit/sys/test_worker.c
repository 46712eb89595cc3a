/* Workers: blocking work elsewhere, its end on the loop. */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

struct task {
	struct loop *loop;
	struct workers *workers;
	pthread_t loop_thread;
	int value, *done, more;
	bool on_loop, elsewhere, signals_blocked;
	int64_t left_ms;
	char thread_name[16];
};

static void work(void *arg, const struct deadline *d)
{
	struct task *t = arg;
	sigset_t mask;

	t->elsewhere = !pthread_equal(pthread_self(), t->loop_thread);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	t->signals_blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1;
	t->left_ms = deadline_left_ms(d);
	prctl(PR_GET_NAME, t->thread_name);
	t->value *= 2;
}

static void done(void *arg, enum err_kind how)
{
	struct task *t = arg;

	assert_int_equal(how, ERR_NONE);
	t->on_loop = pthread_equal(pthread_self(), t->loop_thread);
	++*t->done;
	if (t->more > 0) {
		t->more--;
		workers_submit(t->workers, work, done, t, -1);
	}
}

static void work_runs_elsewhere_and_ends_on_the_loop(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 2);
	int ended = 0;
	struct task t = {.loop = l, .loop_thread = pthread_self(), .value = 21, .done = &ended};

	(void)state;
	workers_submit(w, work, done, &t, 60000);
	assert_int_equal(workers_pending(w), 1);
	while (ended < 1)
		loop_round(l, 1000);
	assert_int_equal(workers_pending(w), 0);
	assert_int_equal(t.value, 42);
	assert_true(t.elsewhere);
	assert_true(t.on_loop);
	assert_true(t.signals_blocked);
	assert_true(t.left_ms > 0 && t.left_ms <= 60000);
	assert_string_equal(t.thread_name, "test");
	assert_null(workers_free(w));
	assert_null(workers_free(NULL));
	loop_free(l);
}

#define MANY 2000
static void every_job_of_many_ends_once(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 4);
	struct task *v = xcalloc(MANY, sizeof(*v));
	int ended = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		v[i] = (struct task){.loop_thread = pthread_self(), .value = i, .done = &ended};
		workers_submit(w, work, done, &v[i], -1);
	}
	while (ended < MANY)
		loop_round(l, 1000);
	assert_int_equal(workers_pending(w), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(v[i].value, 2 * i);
	workers_free(w);
	free(v);
	loop_free(l);
}

static void post(void *arg, const struct deadline *d)
{
	(void)d;
	sem_post(arg);
}

/* Rule: thousands of ends that come together do not stop the loop. */
static void many_ends_are_told_in_several_rounds(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 1);
	int ended = 0;
	struct task t = {.loop_thread = pthread_self(), .done = &ended};
	sem_t all;

	(void)state;
	sem_init(&all, 0, 0);
	for (int i = 0; i < 600; i++)
		workers_submit(w, work, done, &t, -1);
	workers_submit(w, post, NULL, &all, -1);
	while (sem_wait(&all) < 0)
		;
	for (int i = 1; i <= 3; i++) {
		loop_round(l, 1000);
		assert_int_equal(ended, i < 3 ? 256 * i : 600);
	}
	workers_free(w);
	sem_destroy(&all);
	loop_free(l);
}

static void one_thread_keeps_the_order(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 1);
	int ended = 0;
	struct task a = {.loop_thread = pthread_self(), .value = 1, .done = &ended};

	(void)state;
	for (int i = 0; i < 10; i++)
		workers_submit(w, work, NULL, &a, -1); /* no done: allowed */
	workers_submit(w, work, done, &a, -1);
	while (ended < 1)
		loop_round(l, 1000);
	assert_int_equal(a.value, 1 << 11);
	assert_int_equal(workers_pending(w), 0);
	workers_free(w);
	loop_free(l);
}

static void free_finishes_what_is_queued_and_what_that_adds(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 3);
	struct task v[50];
	int ended = 0;

	(void)state;
	for (int i = 0; i < 50; i++) {
		v[i] = (struct task){
			.workers = w, .loop_thread = pthread_self(), .value = 1, .done = &ended};
		v[i].more = i == 7 ? 3 : 0;
		workers_submit(w, work, done, &v[i], -1);
	}
	workers_free(w);
	assert_int_equal(ended, 53);
	assert_int_equal(v[7].value, 16);
	loop_free(l);
}

/* Work that waits for its end: for ever, but for its deadline and the stop. */
struct blocked {
	int *ended, *dropped;
	volatile int begun;
	struct err err;
};

static void wait_for_end(void *arg, const struct deadline *d)
{
	struct blocked *b = arg;

	b->begun = 1;
	while (deadline_check(d, "nothing happened", &b->err) == 0)
		poll(NULL, 0, deadline_slice_ms(d) < 5 ? deadline_slice_ms(d) : 5);
}

static void blocked_done(void *arg, enum err_kind how)
{
	struct blocked *b = arg;

	if (how == ERR_CANCELLED)
		++*b->dropped;
	else
		++*b->ended;
}

static void wait_begun(const struct blocked *b)
{
	int64_t give_up = clock_boot_ms() + 5000;

	while (!b->begun && clock_boot_ms() < give_up)
		poll(NULL, 0, 1);
	assert_true(b->begun);
}

/* Rule: a stop drops what has not begun, and asks what runs to end. */
static void a_stop_drops_the_queue_and_ends_what_runs(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 2);
	int ended = 0, dropped = 0;
	struct blocked v[20];

	(void)state;
	for (int i = 0; i < 20; i++) {
		v[i] = (struct blocked){.ended = &ended, .dropped = &dropped};
		if (i < 19)
			workers_submit(w, wait_for_end, blocked_done, &v[i], -1);
	}
	wait_begun(&v[0]);
	wait_begun(&v[1]);
	workers_stop(w);
	workers_submit(w, wait_for_end, blocked_done, &v[19], -1); /* too late */
	assert_int_equal(workers_pending(w), 20);
	assert_int_equal(dropped, 0); /* told on the loop, not inside the call */
	workers_drain(w);
	assert_int_equal(ended, 2);
	assert_int_equal(dropped, 18);
	for (int i = 0; i < 20; i++)
		assert_int_equal(v[i].err.kind, i < 2 ? ERR_CANCELLED : ERR_NONE);
	workers_free(w);
	loop_free(l);
}

/* Rule: a deadline counts from when the work begins. */
static void a_deadline_is_the_works_own(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, "test", 1);
	int ended = 0, dropped = 0;
	struct blocked v[3];
	int64_t began = clock_boot_ms();

	(void)state;
	for (int i = 0; i < 3; i++) {
		v[i] = (struct blocked){.ended = &ended, .dropped = &dropped};
		workers_submit(w, wait_for_end, blocked_done, &v[i], 30);
	}
	workers_free(w); /* without a stop everything is finished */
	assert_int_equal(ended, 3);
	assert_true(clock_boot_ms() - began >= 90);
	for (int i = 0; i < 3; i++)
		assert_int_equal(v[i].err.kind, ERR_TIMEOUT);
	loop_free(l);
}

/* Rule: a pool that is blocked does not delay another. */
static void a_blocked_pool_does_not_delay_another(void **state)
{
	struct loop *l = loop_new();
	struct pools *p = pools_new(l);
	struct workers *slow = pools_get(p, "cloud", 2), *quick = pools_get(p, "local", 1);
	int ended = 0, dropped = 0, quick_ended = 0;
	struct blocked v[6];
	struct task t = {.loop_thread = pthread_self(), .value = 1, .done = &quick_ended};

	(void)state;
	assert_ptr_equal(pools_get(p, "cloud", 5), slow);
	for (int i = 0; i < 6; i++) {
		v[i] = (struct blocked){.ended = &ended, .dropped = &dropped};
		workers_submit(slow, wait_for_end, blocked_done, &v[i], -1);
	}
	wait_begun(&v[1]);
	for (int i = 0; i < 100; i++) {
		workers_submit(quick, work, done, &t, -1);
		t.value = 1;
		while (quick_ended <= i)
			loop_round(l, 1000);
	}
	assert_int_equal(ended + dropped, 0);
	assert_int_equal(pools_pending(p), 6);
	/* At the end nothing waits for what never began. */
	assert_null(pools_free(p));
	assert_int_equal(ended, 2);
	assert_int_equal(dropped, 4);
	assert_null(pools_free(NULL));
	loop_free(l);
}

/* What ends may submit elsewhere, also to a pool that does not exist yet: that is dropped. */
struct relay {
	struct pools *pools;
	int dropped, ended;
};

static void told_last(void *arg, enum err_kind how)
{
	struct relay *r = arg;

	if (how == ERR_CANCELLED)
		r->dropped++;
	else
		r->ended++;
}

static void do_nothing(void *arg, const struct deadline *d)
{
	(void)arg;
	(void)d;
}

static void pass_on(void *arg, enum err_kind how)
{
	struct relay *r = arg;

	(void)how;
	workers_submit(pools_get(r->pools, "second", 1), do_nothing, told_last, r, -1);
	workers_submit(pools_get(r->pools, "late", 1), do_nothing, told_last, r, -1);
}

static void work_that_comes_while_pools_are_freed_is_dropped(void **state)
{
	struct loop *l = loop_new();
	struct relay r = {.pools = pools_new(l)};

	(void)state;
	pools_get(r.pools, "second", 1);
	for (int i = 0; i < 3; i++)
		workers_submit(pools_get(r.pools, "first", 1), do_nothing, pass_on, &r, -1);
	pools_free(r.pools);
	assert_int_equal(r.dropped, 6);
	assert_int_equal(r.ended, 0);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_runs_elsewhere_and_ends_on_the_loop),
		cmocka_unit_test(every_job_of_many_ends_once),
		cmocka_unit_test(many_ends_are_told_in_several_rounds),
		cmocka_unit_test(one_thread_keeps_the_order),
		cmocka_unit_test(free_finishes_what_is_queued_and_what_that_adds),
		cmocka_unit_test(a_stop_drops_the_queue_and_ends_what_runs),
		cmocka_unit_test(a_deadline_is_the_works_own),
		cmocka_unit_test(a_blocked_pool_does_not_delay_another),
		cmocka_unit_test(work_that_comes_while_pools_are_freed_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
