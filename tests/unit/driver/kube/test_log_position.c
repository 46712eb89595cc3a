/* Each byte of a log once, whatever answers it comes in. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "driver/kube/log_position.h"

#define LINES 60
#define BEGIN_MS 1700000000000

/* A log as a node keeps it: lines with times, in the order in which they were written. */
struct stored {
	int64_t ns[LINES]; /* after BEGIN_MS */
	char text[LINES][24];
	int n;
};

static void put_time(char out[static LOG_TIME_MAX], int64_t ns)
{
	char text[32];

	clock_format(BEGIN_MS + ns / 1000000000 * 1000, text); /* with .000Z */
	snprintf(out, LOG_TIME_MAX, "%.19s.%09lldZ", text, (long long)(ns % 1000000000));
}

/* What the cluster answers: the lines from that second on, of those that were not rotated away. */
static void answer(const struct stored *s, const char *since, int rotated, struct buf *out)
{
	int64_t from = 0;

	if (*since)
		assert_true(clock_parse(str_from(since), &from));
	for (int i = rotated; i < s->n; i++) {
		char time[LOG_TIME_MAX];

		put_time(time, s->ns[i]);
		if (!*since || BEGIN_MS + s->ns[i] / 1000000000 * 1000 >= from)
			buf_printf(out, "%s %s", time, s->text[i]);
	}
}

static void all_of(const struct stored *s, struct buf *out)
{
	for (int i = 0; i < s->n; i++)
		buf_addz(out, s->text[i]);
}

static void draw(struct rng *rng, struct stored *s)
{
	int64_t ns = 0;

	s->n = 1 + (int)rng_below(rng, LINES);
	for (int i = 0; i < s->n; i++) {
		/* Of two streams: at the same time, or a little before the line that was written before. */
		ns += rng_below(rng, 4) == 0 ? (int64_t)rng_below(rng, 3000000000ull)
					     : (int64_t)rng_below(rng, 3);
		/* 'A little' may be in the second before. */
		int64_t late = rng_below(rng, 8) == 0 ? (rng_below(rng, 2) ? 500 : 400000000) : 0;

		s->ns[i] = ns > late ? ns - late : ns;
		snprintf(s->text[i], sizeof(s->text[i]), "%d%s%s", i, rng_below(rng, 5) ? " x" : "",
			 "\n");
	}
	if (rng_below(rng, 2)) /* the last line may have no end */
		s->text[s->n - 1][strlen(s->text[s->n - 1]) - 1] = '\0';
}

static void a_log_that_is_cut_anywhere_is_read_without_loss_or_repeats(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct rng rng;
		struct stored s = {0};
		struct log_reader r = {0};
		struct buf got, want, all;

		rng_seed(&rng, seed);
		draw(&rng, &s);
		buf_init(&got, 1 << 16);
		buf_init(&want, 1 << 16);
		buf_init(&all, 1 << 16);
		all_of(&s, &want);
		for (int tries = 0; tries < 200; tries++) {
			char since[32], at[160];

			buf_reset(&all);
			log_reader_since(&r, since);
			answer(&s, since, 0, &all);
			size_t n = rng_below(&rng, 3) ? rng_below(&rng, all.n + 1) : all.n;

			log_reader_begin(&r);
			for (size_t k = 0; k < n;) {
				size_t piece = 1 + rng_below(&rng, n - k);

				assert_true(
					log_reader_take(&r, (struct str){all.p + k, piece}, &got));
				k += piece;
			}
			/* The next master has the position only. */
			log_position_put(&r.at, at, sizeof(at));
			r = (struct log_reader){0};
			assert_true(log_position_get(at, &r.at));
			if (got.n == want.n && n == all.n)
				break;
		}
		if (got.n != want.n || memcmp(got.p, want.p, got.n) != 0)
			fail_msg("seed %llu: '%.*s' is not '%.*s'", (unsigned long long)seed,
				 (int)got.n, got.p, (int)want.n, want.p);
		buf_release(&got);
		buf_release(&want);
		buf_release(&all);
	}
}

static void what_was_rotated_away_is_not_counted(void **state)
{
	struct stored s = {
		.ns = {0, 10, 20, 30, 40}, .text = {"a\n", "b\n", "c\n", "d\n", "e\n"}, .n = 3};
	struct log_reader r = {0};
	struct buf got, all;

	(void)state;
	buf_init(&got, 1 << 16);
	buf_init(&all, 1 << 16);
	answer(&s, "", 0, &all);
	log_reader_begin(&r);
	assert_true(log_reader_take(&r, buf_str(&all), &got));
	s.n = 5;
	for (int i = 0; i < 2; i++) { /* the first answer shows that the place is lost */
		buf_reset(&all);
		answer(&s, "", 2, &all);
		log_reader_begin(&r);
		assert_int_equal(log_reader_take(&r, buf_str(&all), &got), i == 1);
	}
	assert_true(str_is(buf_str(&got), "a\nb\nc\nd\ne\n"));
	assert_false(r.gap); /* what was rotated away had been taken */
	buf_release(&got);
	buf_release(&all);
}

static void what_was_rotated_away_before_it_was_taken_is_a_gap(void **state)
{
	struct stored s = {.ns = {0, 10, 20, 30, 40, 50},
			   .text = {"a\n", "b\n", "c\n", "d\n", "e\n", "f\n"},
			   .n = 2};
	struct log_reader r = {0};
	struct buf got, all;

	(void)state;
	buf_init(&got, 1 << 16);
	buf_init(&all, 1 << 16);
	answer(&s, "", 0, &all);
	log_reader_begin(&r);
	assert_true(log_reader_take(&r, buf_str(&all), &got));
	s.n = 6;
	for (int i = 0; i < 2; i++) {
		buf_reset(&all);
		answer(&s, "", 3, &all);
		log_reader_begin(&r);
		assert_int_equal(log_reader_take(&r, buf_str(&all), &got), i == 1);
	}
	assert_true(str_is(buf_str(&got), "a\nb\nd\ne\nf\n"));
	assert_true(r.gap);
	buf_release(&got);
	buf_release(&all);
}

static void a_line_without_a_time_is_not_the_containers(void **state)
{
	struct log_reader r = {0};
	struct buf got;

	(void)state;
	buf_init(&got, 1 << 16);
	log_reader_begin(&r);
	assert_true(log_reader_take(&r,
				    STR("failed to open the log\n2026-01-01T00:00:00.1Z a b\nx\n"
					"2026-01-01T02:00:00.2+02:00 \n"),
				    &got));
	assert_true(str_is(buf_str(&got), "a b\n\n"));
	assert_false(log_position_get("", &r.at));
	buf_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_that_is_cut_anywhere_is_read_without_loss_or_repeats),
		cmocka_unit_test(what_was_rotated_away_is_not_counted),
		cmocka_unit_test(what_was_rotated_away_before_it_was_taken_is_a_gap),
		cmocka_unit_test(a_line_without_a_time_is_not_the_containers),
	};

	return cmocka_run_group_tests_name("driver kube log position", tests, NULL, NULL);
}
