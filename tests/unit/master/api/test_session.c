#include "unit.h"

#include <string.h>

#include "master/api/session.h"

static struct sessions *s;

static int make(void **state)
{
	(void)state;
	s = sessions_new();
	return 0;
}

static int drop(void **state)
{
	(void)state;
	assert_null(sessions_free(s));
	return 0;
}

static bool begin(const char *code, int64_t now_ms, char secret[static 65])
{
	uint32_t forgotten;

	return session_begin(s, str_from(code), now_ms, secret, &forgotten);
}

/* Rule: a code is good once, for two minutes. */

static void a_code_becomes_a_session_of_its_scope(void **state)
{
	char code[65], secret[65];

	(void)state;
	session_code(s, API_SUBMIT, 1000, code);
	assert_int_equal(strspn(code, "0123456789abcdef"), 64);
	assert_true(begin(code, 1000, secret));
	assert_string_not_equal(code, secret);
	assert_int_equal(session_scope(s, str_from(secret), 1000, NULL), API_SUBMIT);
	assert_int_equal(session_scope(s, str_from(code), 1000, NULL), 0);
}

static void a_code_is_good_once(void **state)
{
	char code[65], secret[65];

	(void)state;
	session_code(s, API_ADMIN, 1000, code);
	assert_true(begin(code, 1000, secret));
	assert_false(begin(code, 1000, secret));
}

static void a_code_ends_after_two_minutes(void **state)
{
	char early[65], late[65], secret[65];

	(void)state;
	session_code(s, API_ADMIN, 1000, early);
	session_code(s, API_ADMIN, 1000, late);
	assert_true(begin(early, 1000 + SESSION_CODE_MS - 1, secret));
	assert_false(begin(late, 1000 + SESSION_CODE_MS, secret));
}

static void what_was_never_given_is_no_code(void **state)
{
	char secret[65];

	(void)state;
	assert_false(begin("", 1000, secret));
	assert_false(begin("0000000000000000000000000000000000000000000000000000000000000000", 1000,
			   secret));
	session_code(s, API_ADMIN, 1000, secret);
	secret[63] ^= 1;
	assert_false(begin(secret, 1000, secret));
	assert_int_equal(session_scope(s, STR(""), 1000, NULL), 0);
}

/* Rule: a session ends after twelve hours, or when it is ended. */

static void a_session_ends_with_its_time(void **state)
{
	char code[65], secret[65];

	(void)state;
	session_code(s, API_READ, 0, code);
	assert_true(begin(code, 1000, secret));
	assert_int_equal(session_scope(s, str_from(secret), 1000 + SESSION_MS - 1, NULL), API_READ);
	assert_int_equal(session_scope(s, str_from(secret), 1000 + SESSION_MS, NULL), 0);
}

static void a_session_that_is_ended_is_over(void **state)
{
	char code[65], one[65], two[65];

	(void)state;
	session_code(s, API_READ, 0, code);
	assert_true(begin(code, 0, one));
	session_code(s, API_READ, 0, code);
	assert_true(begin(code, 0, two));
	uint32_t serial_one, serial_two;
	assert_int_equal(session_scope(s, str_from(one), 1, &serial_one), API_READ);
	assert_int_equal(session_scope(s, str_from(two), 1, &serial_two), API_READ);
	assert_int_not_equal(serial_one, serial_two);
	assert_int_equal(session_end(s, str_from(one)), serial_one);
	assert_int_equal(session_end(s, STR("nobody")), 0);
	assert_int_equal(session_scope(s, str_from(one), 1, NULL), 0);
	assert_int_equal(session_scope(s, str_from(two), 1, NULL), API_READ);
}

static void those_whose_time_is_over_are_told_one_by_one(void **state)
{
	char code[65], secret[65];
	uint32_t first = 0, second = 0;

	(void)state;
	session_code(s, API_READ, 0, code);
	assert_true(begin(code, 0, secret));
	session_scope(s, str_from(secret), 0, &first);
	session_code(s, API_READ, 0, code);
	assert_true(begin(code, 10, secret));
	session_scope(s, str_from(secret), 10, &second);
	assert_int_equal(session_expire(s, SESSION_MS - 1), 0);
	assert_int_equal(session_expire(s, SESSION_MS), first);
	assert_int_equal(session_expire(s, SESSION_MS), 0);
	assert_int_equal(session_expire(s, SESSION_MS + 10), second);
}

/* Rule: there is room for a few; the oldest makes place. */

static void the_oldest_is_forgotten_for_a_new_one(void **state)
{
	char codes[SESSION_MAX + 1][65], secret[65];

	(void)state;
	for (int i = 0; i <= SESSION_MAX; i++)
		session_code(s, API_READ, i, codes[i]);
	assert_false(begin(codes[0], SESSION_MAX, secret));
	assert_true(begin(codes[1], SESSION_MAX, secret));
	assert_true(begin(codes[SESSION_MAX], SESSION_MAX, secret));
}

/* Its streams are to be cut: whoever takes the place hears whose it was. */
static void who_is_forgotten_is_told(void **state)
{
	char code[65], secret[65];
	uint32_t first = 0, forgotten = 7;

	(void)state;
	for (int i = 0; i < SESSION_MAX; i++) {
		session_code(s, API_READ, i, code);
		assert_true(session_begin(s, str_from(code), i, secret, &forgotten));
		assert_int_equal(forgotten, 0);
		if (i == 0)
			assert_int_equal(session_scope(s, str_from(secret), i, &first), API_READ);
	}
	session_code(s, API_READ, SESSION_MAX, code);
	assert_true(session_begin(s, str_from(code), SESSION_MAX, secret, &forgotten));
	assert_int_equal(forgotten, first);
}

/* Rule: sessions outlive the master. */

struct kept {
	struct session v[SESSION_MAX];
	int n;
};

static void keep(void *ctx, const struct session *one)
{
	struct kept *k = ctx;

	k->v[k->n++] = *one;
}

static void a_session_that_was_written_down_is_good_until_its_own_end(void **state)
{
	char code[65], secret[65];
	struct kept k = {.n = 0};
	uint32_t serial = 0;

	(void)state;
	session_code(s, API_SUBMIT, 1000, code);
	assert_true(begin(code, 1000, secret));
	session_code(s, API_READ, 1000, code); /* a link that nobody used is not kept */
	sessions_each(s, keep, &k);
	assert_int_equal(k.n, 1);

	struct sessions *next = sessions_new();
	session_restore(next, &k.v[0], 5000);
	assert_int_equal(session_scope(next, str_from(secret), 5000, &serial), API_SUBMIT);
	assert_int_not_equal(serial, 0);
	assert_int_equal(session_scope(next, str_from(secret), 1000 + SESSION_MS, NULL), 0);
	sessions_free(next);
}

static void a_session_that_is_over_or_too_long_is_not_restored(void **state)
{
	char code[65], secret[65];
	struct kept k = {.n = 0};

	(void)state;
	session_code(s, API_ADMIN, 1000, code);
	assert_true(begin(code, 1000, secret));
	sessions_each(s, keep, &k);
	struct sessions *next = sessions_new();
	session_restore(next, &k.v[0], 1000 + SESSION_MS);
	k.v[0].until_ms += 1;
	session_restore(next, &k.v[0], 1000);
	assert_int_equal(session_scope(next, str_from(secret), 1000, NULL), 0);
	sessions_free(next);
}

int main(void)
{
#define test(t) cmocka_unit_test_setup_teardown(t, make, drop)
	const struct CMUnitTest tests[] = {
		test(a_code_becomes_a_session_of_its_scope),
		test(a_code_is_good_once),
		test(a_code_ends_after_two_minutes),
		test(what_was_never_given_is_no_code),
		test(a_session_ends_with_its_time),
		test(a_session_that_is_ended_is_over),
		test(those_whose_time_is_over_are_told_one_by_one),
		test(the_oldest_is_forgotten_for_a_new_one),
		test(who_is_forgotten_is_told),
		test(a_session_that_was_written_down_is_good_until_its_own_end),
		test(a_session_that_is_over_or_too_long_is_not_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
