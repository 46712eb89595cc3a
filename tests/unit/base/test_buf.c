#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static void text_is_collected_and_always_terminated(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	buf_addz(&b, "a");
	buf_addc(&b, 'b');
	buf_addstr(&b, STR("c"));
	buf_add(&b, "d\0e", 3);
	buf_printf(&b, "%d", 42);
	assert_int_equal(b.n, 8);
	assert_memory_equal(b.p, "abcd\0e42", 9);
	assert_false(b.overflow);
	buf_release(&b);
	assert_null(b.p);
	assert_int_equal(b.max, 1000);
}

static void whole_numbers_are_written_in_decimal(void **state)
{
	const int64_t values[] = {0, 7, -1, 10, -10, 9999, INT64_MAX, INT64_MIN};
	struct buf b;

	(void)state;
	buf_init(&b, 30);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char text[30];

		snprintf(text, sizeof(text), "%lld", (long long)values[i]);
		buf_reset(&b);
		buf_addint(&b, values[i]);
		assert_string_equal(b.p, text);
	}
	buf_release(&b);
}

static void an_empty_buffer_is_an_empty_text(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_string_equal(buf_str(&b).p, "");
	assert_int_equal(buf_str(&b).n, 0);
	buf_drop_front(&b, 5);
	buf_reset(&b);
	buf_add(&b, NULL, 0);
	assert_int_equal(b.n, 0);
	assert_string_equal(b.p, "");
	buf_release(&b);
}

static void exactly_the_maximum_fits_and_one_more_does_not(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 5);
	buf_addz(&b, "12345");
	assert_false(b.overflow);
	assert_string_equal(b.p, "12345");
	buf_addc(&b, '6');
	assert_true(b.overflow);
	assert_string_equal(b.p, "12345");
	assert_int_equal(b.n, 5);
	assert_true(b.cap <= 6);
	buf_release(&b);
}

static void an_append_past_the_maximum_appends_nothing_of_itself(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 5);
	buf_addz(&b, "abc");
	buf_addz(&b, "defgh");
	assert_string_equal(b.p, "abc");
	assert_true(b.overflow);
	buf_reset(&b);
	assert_false(b.overflow);
	assert_int_equal(b.n, 0);
	assert_string_equal(b.p, "");
	buf_release(&b);
}

static void a_maximum_of_zero_holds_nothing(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_addc(&b, 'x');
	assert_true(b.overflow);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

static void printing_obeys_the_maximum_like_any_append(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 200);
	buf_printf(&b, "%s", "first");
	for (int i = 0; i < 19; i++)
		buf_printf(&b, "%010d", i);
	assert_false(b.overflow);
	assert_int_equal(b.n, 195);
	assert_memory_equal(b.p + 185, "0000000018", 11);
	buf_printf(&b, "%s", "sixsix");
	assert_true(b.overflow);
	assert_int_equal(b.n, 195);
	assert_int_equal(strlen(b.p), 195);
	b.overflow = false;
	buf_printf(&b, "%s", "five5");
	assert_false(b.overflow);
	assert_int_equal(b.n, 200);
	buf_release(&b);

	buf_init(&b, 3);
	buf_printf(&b, "%ls", L"\x20ac");
	assert_true(b.overflow);
	b.overflow = false;
	buf_printf(&b, "%s", "long");
	assert_true(b.overflow);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

static void printing_is_exact_at_every_length(void **state)
{
	char text[300];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (int before = 0; before < 3; before++)
		for (int n = 0; n < (int)sizeof(text); n++) {
			struct buf b;

			buf_init(&b, 1000);
			buf_printf(&b, "%.*s", before, "ab");
			buf_printf(&b, "%.*s", n, text);
			assert_int_equal(b.n, (before < 2 ? before : 2) + n);
			assert_int_equal(strlen(b.p), b.n);
			buf_release(&b);
		}
}

static void reserved_bytes_count_once_committed(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_addz(&b, "ab");
	char *p = buf_reserve(&b, 8);
	assert_non_null(p);
	assert_int_equal(b.n, 2);
	memcpy(p, "cde", 3);
	buf_commit(&b, 3);
	assert_string_equal(b.p, "abcde");
	assert_null(buf_reserve(&b, 6));
	assert_non_null(buf_reserve(&b, 5));
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_false(b.overflow);
	buf_release(&b);
}

static void an_endless_maximum_does_not_wrap_around(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, SIZE_MAX);
	buf_addz(&b, "x");
	assert_null(buf_reserve(&b, SIZE_MAX - 1));
	assert_null(buf_reserve(&b, SIZE_MAX));
	buf_addz(&b, "y");
	assert_string_equal(b.p, "xy");
	buf_release(&b);
}

static void the_front_can_be_dropped(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_addz(&b, "abcdef");
	buf_drop_front(&b, 2);
	assert_string_equal(b.p, "cdef");
	buf_drop_front(&b, 0);
	assert_int_equal(b.n, 4);
	buf_addz(&b, "ghijkl");
	assert_string_equal(b.p, "cdefghijkl");
	buf_drop_front(&b, 99);
	assert_int_equal(b.n, 0);
	assert_string_equal(b.p, "");
	buf_release(&b);
}

static void taking_hands_over_the_text_and_leaves_an_empty_buffer(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	char *none = buf_take(&b);
	assert_string_equal(none, "");
	buf_addz(&b, "text");
	char *text = buf_take(&b);
	assert_string_equal(text, "text");
	assert_int_equal(b.n, 0);
	buf_addz(&b, "more");
	assert_string_equal(text, "text");
	assert_string_equal(b.p, "more");
	free(none);
	free(text);
	buf_release(&b);
}

static void it_grows_to_any_size_below_the_maximum(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < (1 << 20); i++)
		buf_addc(&b, (char)('a' + i % 26));
	assert_false(b.overflow);
	assert_int_equal(b.n, 1 << 20);
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] != (char)('a' + i % 26))
			fail_msg("byte %zu is wrong", i);
	assert_true(b.cap <= (1 << 20) + 1);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_collected_and_always_terminated),
		cmocka_unit_test(whole_numbers_are_written_in_decimal),
		cmocka_unit_test(an_empty_buffer_is_an_empty_text),
		cmocka_unit_test(exactly_the_maximum_fits_and_one_more_does_not),
		cmocka_unit_test(an_append_past_the_maximum_appends_nothing_of_itself),
		cmocka_unit_test(a_maximum_of_zero_holds_nothing),
		cmocka_unit_test(printing_obeys_the_maximum_like_any_append),
		cmocka_unit_test(printing_is_exact_at_every_length),
		cmocka_unit_test(reserved_bytes_count_once_committed),
		cmocka_unit_test(an_endless_maximum_does_not_wrap_around),
		cmocka_unit_test(the_front_can_be_dropped),
		cmocka_unit_test(taking_hands_over_the_text_and_leaves_an_empty_buffer),
		cmocka_unit_test(it_grows_to_any_size_below_the_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
