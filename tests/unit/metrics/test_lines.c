#include "unit.h"

#include <string.h>
#include "base/buf.h"
#include "metrics/lines.h"
#include "seed.h"

/* What was given, as text: "end cut|line\n", so that two histories compare as strings. */
struct seen {
	struct buf text;
	struct buf bytes; /* the lines alone, each with its newline unless cut or last */
	size_t n;
	bool any_cut;
	size_t longest;
};

static void note(void *ctx, struct str line, uint64_t end, bool cut)
{
	struct seen *s = ctx;

	s->n++;
	s->any_cut |= cut;
	if (line.n > s->longest)
		s->longest = line.n;
	buf_printf(&s->text, "%llu %d|", (unsigned long long)end, cut);
	buf_addstr(&s->text, line);
	buf_addc(&s->text, '\n');
	buf_addstr(&s->bytes, line);
}

static void seen_init(struct seen *s)
{
	*s = (struct seen){0};
	buf_init(&s->text, 64u << 20);
	buf_init(&s->bytes, 64u << 20);
}

static void seen_release(struct seen *s)
{
	buf_release(&s->text);
	buf_release(&s->bytes);
}

/* Feed in chunks of `chunk` bytes (0: of random length). */
static void feed(struct seen *s, struct str text, size_t chunk, struct rng *rng)
{
	struct lines l;
	size_t at = 0;

	seen_init(s);
	lines_init(&l, 1000);
	while (at < text.n) {
		size_t n = chunk ? chunk : 1 + rng_below(rng, rng_below(rng, 2) ? 200000 : 9);

		if (n > text.n - at)
			n = text.n - at;
		lines_feed(&l, (struct str){text.p + at, n}, note, s);
		at += n;
	}
	lines_end(&l, note, s);
	assert_int_equal(l.offset, 1000 + text.n);
	lines_release(&l);
}

static void expect(const char *text, const char *history)
{
	for (size_t chunk = 1; chunk <= 40; chunk++) {
		struct seen s;

		feed(&s, str_from(text), chunk, NULL);
		assert_string_equal(buf_str(&s.text).p, history);
		seen_release(&s);
	}
}

static void a_line_ends_at_the_newline_and_its_end_counts_it(void **state)
{
	(void)state;
	expect("one\ntwo\n", "1004 0|one\n1008 0|two\n");
	expect("\n\nx\n", "1001 0|\n1002 0|\n1004 0|x\n");
	expect("", "");
}

static void a_return_is_dropped_before_a_newline_only(void **state)
{
	(void)state;
	expect("a\r\nb\rc\n", "1003 0|a\n1007 0|b\rc\n");
	expect("a\r\r\n\r\n", "1004 0|a\r\n1006 0|\n");
	expect("end\r", "1004 0|end\r\n");
}

static void the_last_line_needs_no_newline(void **state)
{
	(void)state;
	expect("a\nb", "1002 0|a\n1003 0|b\n");
	expect("alone", "1005 0|alone\n");
}

static void nothing_is_given_twice_at_the_end(void **state)
{
	struct lines l;
	struct seen s;

	(void)state;
	seen_init(&s);
	lines_init(&l, 0);
	lines_end(&l, note, &s);
	lines_feed(&l, STR("x"), note, &s);
	lines_feed(&l, (struct str){"", 0}, note, &s);
	assert_int_equal(s.n, 0);
	lines_end(&l, note, &s);
	lines_end(&l, note, &s);
	assert_int_equal(s.n, 1);
	lines_feed(&l, STR("y\n"), note, &s);
	assert_string_equal(buf_str(&s.text).p, "1 0|x\n3 0|y\n");
	lines_release(&l);
	seen_release(&s);
}

static struct str long_text(struct buf *b, size_t n, const char *tail)
{
	buf_init(b, 64u << 20);
	memset(buf_reserve(b, n), 'x', n);
	buf_commit(b, n);
	buf_addz(b, tail);
	return buf_str(b);
}

/* {length of the line, what follows it, lines expected, any cut}. */
static const struct {
	size_t n;
	const char *tail;
	size_t lines;
	bool cut;
} lengths[] = {
	{LINE_MAX_BYTES - 1, "\n", 1, false},	 {LINE_MAX_BYTES, "\n", 1, false},
	{LINE_MAX_BYTES - 1, "\r\n", 1, false},	 {LINE_MAX_BYTES, "", 1, false},
	{LINE_MAX_BYTES + 1, "\n", 2, true},	 {LINE_MAX_BYTES, "\r\n", 2, true},
	{2 * LINE_MAX_BYTES, "\n", 2, true},	 {2 * LINE_MAX_BYTES + 1, "", 3, true},
	{5 * LINE_MAX_BYTES + 7, "\n", 6, true},
};

static void a_line_above_the_maximum_is_cut_and_a_whole_one_is_not(void **state)
{
	static const size_t chunks[] = {1, 4096, LINE_MAX_BYTES, LINE_MAX_BYTES + 1, 1u << 20};

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		for (size_t c = 0; c < COUNT(chunks); c++) {
			struct buf b;
			struct seen s;

			feed(&s, long_text(&b, lengths[i].n, lengths[i].tail), chunks[c], NULL);
			assert_int_equal(s.n, lengths[i].lines);
			assert_int_equal(s.any_cut, lengths[i].cut);
			assert_true(s.longest <= LINE_MAX_BYTES);
			assert_int_equal(s.bytes.n, lengths[i].n);
			seen_release(&s);
			buf_release(&b);
		}
	}
}

static void every_piece_of_a_cut_line_says_so_and_the_next_line_does_not(void **state)
{
	struct buf b;
	struct seen s;
	static const char want[] = "66536 1|", last[] = "66541 1|xxxx\n66544 0|ok\n";

	(void)state;
	feed(&s, long_text(&b, LINE_MAX_BYTES + 4, "\nok\n"), 1000, NULL);
	assert_memory_equal(s.text.p, want, strlen(want));
	assert_string_equal(s.text.p + strlen(want) + LINE_MAX_BYTES + 1, last);
	seen_release(&s);
	buf_release(&b);
}

static void how_bytes_arrive_makes_no_difference(void **state)
{
	struct rng rng;

	(void)state;
	seed_rng(&rng);
	for (int round = 0; round < 60; round++) {
		struct buf b;
		struct seen whole, parts;

		buf_init(&b, 64u << 20);
		for (size_t i = rng_below(&rng, 20); i > 0; i--) {
			size_t n = rng_below(&rng, 4) ? rng_below(&rng, 300)
						      : rng_below(&rng, 3 * LINE_MAX_BYTES);
			for (size_t k = 0; k < n; k++)
				buf_addc(&b, "\r\nab\0\xff"[2 + rng_below(&rng, 4)]);
			buf_addz(&b, rng_below(&rng, 3) ? "\n" : "\r\n");
		}
		if (rng_below(&rng, 2))
			buf_addz(&b, "tail");
		feed(&whole, buf_str(&b), b.n + 1, NULL);
		feed(&parts, buf_str(&b), 0, &rng);
		assert_int_equal(whole.text.n, parts.text.n);
		assert_memory_equal(buf_str(&whole.text).p, buf_str(&parts.text).p, whole.text.n);
		seen_release(&whole);
		seen_release(&parts);
		buf_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_ends_at_the_newline_and_its_end_counts_it),
		cmocka_unit_test(a_return_is_dropped_before_a_newline_only),
		cmocka_unit_test(the_last_line_needs_no_newline),
		cmocka_unit_test(nothing_is_given_twice_at_the_end),
		cmocka_unit_test(a_line_above_the_maximum_is_cut_and_a_whole_one_is_not),
		cmocka_unit_test(every_piece_of_a_cut_line_says_so_and_the_next_line_does_not),
		cmocka_unit_test(how_bytes_arrive_makes_no_difference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
