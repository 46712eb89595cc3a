#include "unit.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rand.h"

static int64_t us_of(clockid_t id)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(id, &ts), 0);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void the_clocks_are_those_of_the_kernel(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		int64_t before = us_of(CLOCK_BOOTTIME), us = clock_boot_us(), ms = clock_boot_ms();
		int64_t after = us_of(CLOCK_BOOTTIME);

		assert_true(before <= us && us <= after);
		assert_true(before / 1000 <= ms && ms <= after / 1000);
		before = us_of(CLOCK_REALTIME);
		ms = clock_wall_ms();
		after = us_of(CLOCK_REALTIME);
		/* Unless somebody sets the wall clock back just now. */
		assert_true(after < before || (before / 1000 <= ms && ms <= after / 1000));
	}
}

static void the_boot_clock_never_goes_back(void **state)
{
	int64_t before = clock_boot_us();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int64_t us = clock_boot_us();
		assert_true(us >= before);
		before = us;
	}
}

static void moments_are_written_as_rfc_3339(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{1, "1970-01-01T00:00:00.001Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{INT64_C(1767323045678), "2026-01-02T03:04:05.678Z"},
		{INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
		{INT64_C(4107542399999), "2100-02-28T23:59:59.999Z"},
		{INT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
		{INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
		{INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z"},
		{INT64_MAX, "9999-12-31T23:59:59.999Z"},
		{INT64_MIN, "0000-01-01T00:00:00.000Z"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		clock_format(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void every_day_agrees_with_libc(void **state)
{
	uint64_t seed = rand_u64();
	struct rng rng;

	(void)state;
	rng_seed(&rng, seed);
	for (int64_t day = -719528; day < 2932896; day += 1 + (int64_t)rng_below(&rng, 60)) {
		char ours[32], theirs[32];
		time_t t = (time_t)(day * 86400);
		struct tm tm;

		clock_format((int64_t)t * 1000, ours);
		assert_non_null(gmtime_r(&t, &tm));
		snprintf(theirs, sizeof(theirs), "%04u-%02u-%02uT00:00:00.000Z",
			 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
			 (unsigned)tm.tm_mday % 100);
		if (strcmp(ours, theirs) != 0)
			fail_msg("seed %" PRIu64 ": %s is not %s", seed, ours, theirs);
	}
}

static void spans_are_written_for_people(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "0 ms"},
		{999, "999 ms"},
		{1000, "1.0 s"},
		{1234, "1.2 s"},
		{59999, "59.9 s"},
		{60000, "1 min"},
		{200000, "3 min 20 s"},
		{3599999, "59 min 59 s"},
		{3600000, "1 h"},
		{7500000, "2 h 5 min"},
		{86399999, "23 h 59 min"},
		{86400000, "1 d"},
		{100800000, "1 d 4 h"},
		{-1500, "-1.5 s"},
		{INT64_MAX, "106751991167 d 7 h"},
		{INT64_MIN, "-106751991167 d 7 h"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		clock_format_span(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void moments_are_read_as_services_write_them(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-01-02T03:04:05.678Z", INT64_C(1767323045678)},
		{"2026-01-02T03:04:05.6789123Z", INT64_C(1767323045678)},
		{"2026-01-02T05:04:05.678+02:00", INT64_C(1767323045678)},
		{"2026-01-01T21:34:05.678-0530", INT64_C(1767323045678)},
		{"20150830T123600Z", INT64_C(1440938160000)},
		{"2000-02-29T00:00:00Z", INT64_C(951782400000)},
		{"Sun, 06 Nov 1994 08:49:37 GMT", INT64_C(784111777000)},
	};
	static const char *const bad[] = {
		"",
		"2026-01-02",
		"2026-01-02T03:04:05",
		"2026-13-02T03:04:05Z",
		"2026-01-02T24:04:05Z",
		"2026-01-02T03:04:05Zx",
		"2026-01-02T03:04:05+2",
		"+026-01-02T03:04:05Z",
		"Sun, 06 Nox 1994 08:49:37 GMT",
		"Sun, 06 anF 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 08:49:37 CET",
		"06 Nov 1994",
	};
	int64_t ms = 7;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(clock_parse(str_from(good[i].text), &ms));
		assert_int_equal(ms, good[i].ms);
	}
	ms = 7;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (clock_parse(str_from(bad[i]), &ms))
			fail_msg("%s", bad[i]);
	assert_int_equal(ms, 7);
	for (int64_t day = -700000; day < 2900000; day += 997) {
		char text[32];
		int64_t wall = day * 86400000 + 12345;

		clock_format(wall, text);
		assert_true(clock_parse(str_from(text), &ms));
		assert_int_equal(ms, wall);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clocks_are_those_of_the_kernel),
		cmocka_unit_test(the_boot_clock_never_goes_back),
		cmocka_unit_test(moments_are_written_as_rfc_3339),
		cmocka_unit_test(moments_are_read_as_services_write_them),
		cmocka_unit_test(every_day_agrees_with_libc),
		cmocka_unit_test(spans_are_written_for_people),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
