/* Workers: blocking work elsewhere, its end on the loop. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>

#include "sys/loop.h"
#include "sys/worker.h"

struct task {
	struct loop *loop;
	struct workers *workers;
	pthread_t loop_thread;
	int value, *done, more;
	bool on_loop, elsewhere, signals_blocked;
};

static void work(void *arg)
{
	struct task *t = arg;
	sigset_t mask;

	t->elsewhere = !pthread_equal(pthread_self(), t->loop_thread);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	t->signals_blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1;
	t->value *= 2;
}

static void done(void *arg)
{
	struct task *t = arg;

	t->on_loop = pthread_equal(pthread_self(), t->loop_thread);
	++*t->done;
	if (t->more > 0) {
		t->more--;
		workers_submit(t->workers, work, done, t);
	}
}

static void work_runs_elsewhere_and_ends_on_the_loop(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, 2);
	int ended = 0;
	struct task t = {.loop = l, .loop_thread = pthread_self(), .value = 21, .done = &ended};

	(void)state;
	workers_submit(w, work, done, &t);
	assert_int_equal(workers_pending(w), 1);
	while (ended < 1)
		loop_round(l, 1000);
	assert_int_equal(workers_pending(w), 0);
	assert_int_equal(t.value, 42);
	assert_true(t.elsewhere);
	assert_true(t.on_loop);
	assert_true(t.signals_blocked);
	assert_null(workers_free(w));
	assert_null(workers_free(NULL));
	loop_free(l);
}

#define MANY 2000
static void every_job_of_many_ends_once(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, 4);
	struct task *v = xcalloc(MANY, sizeof(*v));
	int ended = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		v[i] = (struct task){.loop_thread = pthread_self(), .value = i, .done = &ended};
		workers_submit(w, work, done, &v[i]);
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

static void one_thread_keeps_the_order(void **state)
{
	struct loop *l = loop_new();
	struct workers *w = workers_new(l, 1);
	int ended = 0;
	struct task a = {.loop_thread = pthread_self(), .value = 1, .done = &ended};

	(void)state;
	for (int i = 0; i < 10; i++)
		workers_submit(w, work, NULL, &a); /* no done: allowed */
	workers_submit(w, work, done, &a);
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
	struct workers *w = workers_new(l, 3);
	struct task v[50];
	int ended = 0;

	(void)state;
	for (int i = 0; i < 50; i++) {
		v[i] = (struct task){
			.workers = w, .loop_thread = pthread_self(), .value = 1, .done = &ended};
		v[i].more = i == 7 ? 3 : 0;
		workers_submit(w, work, done, &v[i]);
	}
	workers_free(w);
	assert_int_equal(ended, 53);
	assert_int_equal(v[7].value, 16);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_runs_elsewhere_and_ends_on_the_loop),
		cmocka_unit_test(every_job_of_many_ends_once),
		cmocka_unit_test(one_thread_keeps_the_order),
		cmocka_unit_test(free_finishes_what_is_queued_and_what_that_adds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
