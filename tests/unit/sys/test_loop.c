/* The loop: timers, descriptors, signals, hooks, and what may be freed when. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/rand.h"
#include "sys/loop.h"

static int setup(void **state)
{
	*state = loop_new();
	return 0;
}

static int teardown(void **state)
{
	*state = loop_free(*state);
	return 0;
}

struct trace {
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_io *io;
	int calls, stop_at;
	char text[64];
};

static void count(void *ctx)
{
	struct trace *t = ctx;

	if (++t->calls == t->stop_at)
		loop_stop(t->loop);
}

static void note(struct trace *t, char c)
{
	size_t n = strlen(t->text);

	if (n + 1 < sizeof(t->text))
		t->text[n] = c;
}

static void note_soon(void *ctx)
{
	note(ctx, 's');
}

static void note_timer(void *ctx)
{
	note(ctx, 't');
}

static void note_after(void *ctx)
{
	note(ctx, '.');
}

static void note_io(void *ctx, int fd, int events)
{
	char c;

	(void)events;
	if (read(fd, &c, 1) == 1)
		note(ctx, 'i');
}

static void a_timer_fires_once_and_not_early(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l, .stop_at = 1};
	int64_t start = clock_boot_us();

	t.timer = loop_timer_new(l, count, &t);
	loop_timer_set(t.timer, 5);
	loop_run(l);
	assert_true(clock_boot_us() - start >= 5000);
	loop_round(l, 2);
	assert_int_equal(t.calls, 1);
	loop_timer_free(t.timer);
}

static void a_new_setting_replaces_the_old_one(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l, .stop_at = 1};

	t.timer = loop_timer_new(l, count, &t);
	loop_timer_set(t.timer, 3600 * 1000);
	loop_timer_set(t.timer, 1);
	loop_run(l);
	assert_int_equal(t.calls, 1);
	/* And later: the descriptor that was armed for the first setting wakes for nothing. */
	loop_timer_set(t.timer, 1);
	loop_timer_set(t.timer, 6);
	int64_t start = clock_boot_us();

	t.stop_at = 2;
	loop_run(l);
	assert_int_equal(t.calls, 2);
	assert_true(clock_boot_us() - start >= 5000);
	loop_timer_free(t.timer);
}

static void a_cancelled_timer_does_not_fire(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};

	t.timer = loop_timer_new(l, count, &t);
	loop_timer_set(t.timer, 0);
	loop_timer_cancel(t.timer);
	loop_timer_cancel(t.timer);
	loop_round(l, 1);
	assert_int_equal(t.calls, 0);
	assert_null(loop_timer_free(t.timer));
	assert_null(loop_timer_free(NULL));
}

static void endless(void *ctx)
{
	struct trace *t = ctx;

	t->calls++;
	loop_timer_set(t->timer, -7); /* the past is now */
}

static void a_timer_that_renews_itself_does_not_hold_the_round(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};

	t.timer = loop_timer_new(l, endless, &t);
	loop_timer_set(t.timer, 0);
	for (int i = 1; i <= 5; i++) {
		loop_round(l, -1);
		assert_int_equal(t.calls, i);
	}
	loop_timer_free(t.timer);
}

static void free_own_timer(void *ctx)
{
	struct trace *t = ctx;

	t->calls++;
	t->timer = loop_timer_free(t->timer);
	loop_stop(t->loop);
}

static void a_timer_may_free_itself_in_its_callback(void **state)
{
	struct trace t = {.loop = *state};

	t.timer = loop_timer_new(*state, free_own_timer, &t);
	loop_timer_set(t.timer, 0);
	loop_run(*state);
	assert_int_equal(t.calls, 1);
	assert_null(t.timer);
}

#define MANY 500
struct many {
	struct loop_timer *timer;
	struct many_state *all;
	int64_t due;
	bool dead;
};
struct many_state {
	struct many v[MANY];
	int fired, early;
	int64_t last;
	bool unordered;
};

static void many_fired(void *ctx)
{
	struct many *m = ctx;

	m->all->fired++;
	if (m->dead || clock_boot_ms() < m->due)
		m->all->early++;
	if (m->due < m->all->last)
		m->all->unordered = true;
	m->all->last = m->due;
}

/* Random sets, resets and cancels; every survivor fires once, none early, in order of its time. */
static void many_timers_fire_in_order(void **state)
{
	struct loop *l = *state;
	static struct many_state all;
	struct rng r;
	uint64_t seed = rand_u64();
	int alive = 0;

	memset(&all, 0, sizeof(all));
	rng_seed(&r, seed);
	for (int i = 0; i < MANY; i++) {
		all.v[i].all = &all;
		all.v[i].timer = loop_timer_new(l, many_fired, &all.v[i]);
	}
	for (int i = 0; i < 4 * MANY; i++) {
		struct many *m = &all.v[rng_below(&r, MANY)];
		int64_t delay = (int64_t)rng_below(&r, 20);

		m->dead = rng_below(&r, 4) == 0;
		m->due = clock_boot_ms() + delay;
		if (m->dead)
			loop_timer_cancel(m->timer);
		else
			loop_timer_set(m->timer, delay);
	}
	for (int i = 0; i < MANY; i++)
		alive += all.v[i].due && !all.v[i].dead;
	while (all.fired < alive)
		loop_round(l, 1000);
	loop_round(l, 1);
	if (all.fired != alive || all.early || all.unordered)
		fail_msg("fired %d of %d, %d early, unordered %d, seed %#jx", all.fired, alive,
			 all.early, all.unordered, (uintmax_t)seed);
	for (int i = 0; i < MANY; i++)
		loop_timer_free(all.v[i].timer);
}

static void a_round_waits_at_most_as_long_as_it_may(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};
	int64_t start = clock_boot_us();

	t.timer = loop_timer_new(l, count, &t);
	loop_timer_set(t.timer, 3600 * 1000);
	loop_round(l, 3);
	int64_t took = clock_boot_us() - start;

	assert_in_range(took, 2900, 60 * 1000 * 1000);
	loop_round(l, 0);
	assert_int_equal(t.calls, 0);
	loop_timer_free(t.timer);
}

static void a_descriptor_is_reported_until_it_is_read(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	t.io = loop_io_new(l, fd[0], LOOP_READ, note_io, &t);
	assert_int_equal(write(fd[1], "ab", 2), 2);
	loop_round(l, 1000);
	loop_round(l, 1000);
	assert_string_equal(t.text, "ii");
	loop_io_set(t.io, 0);
	assert_int_equal(write(fd[1], "c", 1), 1);
	loop_round(l, 1);
	assert_string_equal(t.text, "ii");
	loop_io_set(t.io, LOOP_READ);
	loop_round(l, 1000);
	assert_string_equal(t.text, "iii");
	assert_null(loop_io_free(t.io));
	assert_null(loop_io_free(NULL));
	close(fd[0]);
	close(fd[1]);
}

static void see_both(void *ctx, int fd, int events)
{
	struct trace *t = ctx;

	(void)fd;
	note(t, events == LOOP_READ ? 'r' : events == LOOP_WRITE ? 'w' : '?');
	if (strlen(t->text) == 2)
		loop_io_set(t->io, 0);
}

static void reading_and_writing_are_told_apart(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	t.io = loop_io_new(l, fd[0], LOOP_READ | LOOP_WRITE, see_both, &t);
	loop_round(l, 1000);
	assert_int_equal(strlen(t.text), 2);
	assert_non_null(strchr(t.text, 'r'));
	assert_non_null(strchr(t.text, 'w'));
	loop_io_free(t.io);
	close(fd[0]);
	close(fd[1]);
}

static void free_own_io(void *ctx, int fd, int events)
{
	struct trace *t = ctx;

	(void)fd;
	(void)events;
	t->calls++;
	t->io = loop_io_free(t->io);
}

static void a_descriptor_may_be_freed_in_its_callback(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	/* Both directions are ready: the second must not be called after the free. */
	t.io = loop_io_new(l, fd[0], LOOP_READ | LOOP_WRITE, free_own_io, &t);
	loop_round(l, 1000);
	loop_round(l, 0);
	assert_int_equal(t.calls, 1);
	close(fd[0]);
	close(fd[1]);
}

static void the_hooks_run_once_after_everything_of_a_round(void **state)
{
	struct loop *l = *state;
	struct trace t = {.loop = l};
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "a", 1), 1);
	t.io = loop_io_new(l, fd[0], LOOP_READ, note_io, &t);
	t.timer = loop_timer_new(l, note_timer, &t);
	loop_after_round(l, note_after, &t);
	loop_after_round(l, note_after, &t);
	loop_timer_set(t.timer, 0);
	loop_soon(l, note_soon, &t);
	assert_string_equal(t.text, "");
	loop_round(l, -1);
	assert_int_equal(strlen(t.text), 5);
	assert_string_equal(t.text + 3, "..");
	for (const char *c = "ist"; *c; c++)
		assert_non_null(memchr(t.text, *c, 3));
	loop_timer_free(t.timer);
	loop_io_free(t.io);
	close(fd[0]);
	close(fd[1]);
}

static void soon_again(void *ctx)
{
	struct trace *t = ctx;

	note(t, 's');
	loop_soon(t->loop, soon_again, t);
}

static void what_soon_adds_belongs_to_the_next_round(void **state)
{
	struct trace t = {.loop = *state};

	loop_soon(*state, soon_again, &t);
	loop_round(*state, -1);
	assert_string_equal(t.text, "s");
	loop_round(*state, -1);
	assert_string_equal(t.text, "ss");
}

static void got_signal(void *ctx, int signo)
{
	struct trace *t = ctx;

	t->calls = signo;
	loop_stop(t->loop);
}

static void a_signal_arrives_on_the_loop(void **state)
{
	struct trace t = {.loop = *state}, u = {.loop = *state};

	loop_on_signal(*state, SIGUSR1, got_signal, &t);
	loop_on_signal(*state, SIGUSR2, got_signal, &u);
	raise(SIGUSR1);
	assert_int_equal(t.calls, 0);
	loop_run(*state);
	assert_int_equal(t.calls, SIGUSR1);
	assert_int_equal(u.calls, 0);
	raise(SIGUSR2);
	loop_run(*state);
	assert_int_equal(u.calls, SIGUSR2);
}

static void the_scratch_buffer_is_one_and_whole(void **state)
{
	char *p = loop_scratch(*state);

	memset(p, 0x5a, LOOP_SCRATCH);
	assert_ptr_equal(p, loop_scratch(*state));
	assert_non_null(loop_event_base(*state));
	assert_null(loop_free(NULL));
}

static void note_costly(void *ctx, int fd, int events)
{
	struct trace *t = ctx;
	char c;

	(void)events;
	if (loop_take_costly(t->loop))
		t->calls += read(fd, &c, 1) == 1;
}

/* Rule: what costs much is done a few times per round, and nobody is forgotten. */
static void costly_steps_are_spread_over_rounds(void **state)
{
	struct trace t = {.loop = *state};
	struct loop_io *io[100];
	int fds[COUNT(io)][2], rounds = 0;

	for (size_t i = 0; i < COUNT(io); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
		assert_int_equal(write(fds[i][1], "x", 1), 1);
		io[i] = loop_io_new(t.loop, fds[i][0], LOOP_READ, note_costly, &t);
	}
	while (t.calls < (int)COUNT(io)) {
		int before = t.calls;

		loop_round(t.loop, 1000);
		assert_true(t.calls > before);
		assert_true(t.calls - before <= LOOP_COSTLY);
		rounds++;
	}
	assert_int_equal(rounds, (COUNT(io) + LOOP_COSTLY - 1) / LOOP_COSTLY);
	for (size_t i = 0; i < COUNT(io); i++) {
		loop_io_free(io[i]);
		close(fds[i][0]);
		close(fds[i][1]);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_timer_fires_once_and_not_early),
		T(a_new_setting_replaces_the_old_one),
		T(a_cancelled_timer_does_not_fire),
		T(a_timer_that_renews_itself_does_not_hold_the_round),
		T(a_timer_may_free_itself_in_its_callback),
		T(many_timers_fire_in_order),
		T(a_round_waits_at_most_as_long_as_it_may),
		T(a_descriptor_is_reported_until_it_is_read),
		T(reading_and_writing_are_told_apart),
		T(a_descriptor_may_be_freed_in_its_callback),
		T(the_hooks_run_once_after_everything_of_a_round),
		T(what_soon_adds_belongs_to_the_next_round),
		T(a_signal_arrives_on_the_loop),
		T(costly_steps_are_spread_over_rounds),
		T(the_scratch_buffer_is_one_and_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
