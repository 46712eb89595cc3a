#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

static void an_error_carries_kind_and_text(void **state)
{
	struct err err = {.code = 7};

	(void)state;
	assert_int_equal(err_set(&err, ERR_QUOTA, "limit of %d reached", 5), -1);
	assert_int_equal(err.kind, ERR_QUOTA);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.msg, "limit of 5 reached");
}

static void a_null_error_is_allowed_everywhere(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_IO, "x"), -1);
	assert_int_equal(err_errno(NULL, ENOENT, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void errno_gives_kind_code_and_description(void **state)
{
	static const struct {
		int errnum;
		enum err_kind kind;
	} cases[] = {
		{ENOENT, ERR_NOT_FOUND},	 {EACCES, ERR_DENIED},	 {EPERM, ERR_DENIED},
		{ENOSPC, ERR_CAPACITY},		 {EDQUOT, ERR_QUOTA},	 {EEXIST, ERR_CONFLICT},
		{EADDRINUSE, ERR_CONFLICT},	 {EINVAL, ERR_INVALID},	 {ENOTDIR, ERR_INVALID},
		{ETIMEDOUT, ERR_TIMEOUT},	 {EPROTO, ERR_PROTOCOL}, {ECANCELED, ERR_CANCELLED},
		{ECONNREFUSED, ERR_UNAVAILABLE}, {EIO, ERR_IO},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		err_errno(&err, cases[i].errnum, "open '%s'", "a");
		assert_int_equal(err.kind, cases[i].kind);
		assert_int_equal(err.code, cases[i].errnum);
	}
	err_errno(&err, ENOENT, "open '%s'", "a");
	assert_string_equal(err.msg, "open 'a': No such file or directory");
	err_errno(&err, 99999, "open");
	assert_string_equal(err.msg, "open: error 99999");
	assert_int_equal(err.kind, ERR_IO);
}

static void wrapping_puts_context_in_front_and_keeps_the_rest(void **state)
{
	struct err err;

	(void)state;
	err_errno(&err, EACCES, "open");
	err_wrap(&err, "run '%s'", "ctr");
	assert_string_equal(err.msg, "run 'ctr': open: Permission denied");
	assert_int_equal(err.kind, ERR_DENIED);
	assert_int_equal(err.code, EACCES);
}

static void an_error_may_quote_itself(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ERR_INVALID, "inner");
	err_set(&err, ERR_IO, "outer (%s)", err.msg);
	assert_string_equal(err.msg, "outer (inner)");
	err_wrap(&err, "again %s", err.msg);
	assert_string_equal(err.msg, "again outer (inner): outer (inner)");
}

static void a_wrap_of_nothing_is_only_the_context(void **state)
{
	struct err err = {0};

	(void)state;
	err_wrap(&err, "context");
	assert_string_equal(err.msg, "context");
}

static void a_long_text_is_cut_and_says_so(void **state)
{
	char longer[600];
	struct err err;

	(void)state;
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	err_set(&err, ERR_INVALID, "%s", longer);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_true(str_ends(str_from(err.msg), STR("aaa...")));

	err_set(&err, ERR_INVALID, "inner");
	err_wrap(&err, "%s", longer);
	assert_true(str_ends(str_from(err.msg), STR("aaa...")));

	/* The tail that does not fit is cut as well. */
	err_set(&err, ERR_INVALID, "%.100s", longer);
	err_wrap(&err, "%.200s", longer);
	assert_true(str_ends(str_from(err.msg), STR("aaa...")));
}

static void a_cut_never_splits_a_character(void **state)
{
	struct err err;

	(void)state;
	for (size_t lead = 0; lead < 4; lead++) {
		char text[600] = "xxxx";
		size_t n = lead;

		while (n + 3 < sizeof(text)) {
			memcpy(text + n, "\xe2\x82\xac", 3);
			n += 3;
		}
		text[n] = '\0';
		err_set(&err, ERR_INVALID, "%s", text);
		assert_true(str_is_utf8(str_from(err.msg)));
		assert_true(str_ends(str_from(err.msg), STR("\xe2\x82\xac...")));
	}
}

static void a_text_that_cannot_be_formatted_is_shown_as_its_format(void **state)
{
	struct err err = {0};

	(void)state;
	err_set(&err, ERR_INVALID, "bad %ls", L"\x20ac");
	assert_string_equal(err.msg, "bad %ls");
	assert_int_equal(err.kind, ERR_INVALID);
}

static void every_kind_has_a_name_that_leads_back(void **state)
{
	(void)state;
	for (int i = 0; i < ERR_KINDS; i++)
		assert_int_equal(err_kind_from_name(err_kind_name((enum err_kind)i)), i);
	assert_string_equal(err_kind_name(ERR_NOT_FOUND), "not_found");
	assert_int_equal(err_kind_from_name("no such kind"), ERR_NONE);
	assert_string_equal(err_kind_name((enum err_kind)ERR_KINDS), "io");
}

static void exit_codes_are_those_scripts_rely_on(void **state)
{
	static const int codes[ERR_KINDS] = {
		[ERR_INVALID] = 2,   [ERR_NOT_FOUND] = 3,   [ERR_CONFLICT] = 2,
		[ERR_DENIED] = 4,    [ERR_CAPACITY] = 5,    [ERR_QUOTA] = 5,
		[ERR_THROTTLED] = 8, [ERR_TIMEOUT] = 6,	    [ERR_PROTOCOL] = 8,
		[ERR_IO] = 8,	     [ERR_UNAVAILABLE] = 8, [ERR_CANCELLED] = 7,
		[ERR_PREEMPTED] = 5,
	};

	(void)state;
	for (int i = 0; i < ERR_KINDS; i++)
		assert_int_equal(err_exit_code((enum err_kind)i), codes[i]);
	assert_int_equal(err_exit_code((enum err_kind)99), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_carries_kind_and_text),
		cmocka_unit_test(a_null_error_is_allowed_everywhere),
		cmocka_unit_test(errno_gives_kind_code_and_description),
		cmocka_unit_test(wrapping_puts_context_in_front_and_keeps_the_rest),
		cmocka_unit_test(an_error_may_quote_itself),
		cmocka_unit_test(a_wrap_of_nothing_is_only_the_context),
		cmocka_unit_test(a_long_text_is_cut_and_says_so),
		cmocka_unit_test(a_cut_never_splits_a_character),
		cmocka_unit_test(a_text_that_cannot_be_formatted_is_shown_as_its_format),
		cmocka_unit_test(every_kind_has_a_name_that_leads_back),
		cmocka_unit_test(exit_codes_are_those_scripts_rely_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
