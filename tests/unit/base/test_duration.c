#include "unit.h"

#include <inttypes.h>

#include "base/str.h"

static void durations_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"90s", 90000},
		{"1h30m", 5400000},
		{"250ms", 250},
		{"2d", 172800000},
		{"1w", 604800000},
		{"0s", 0},
		{"0ms", 0},
		{"1m", 60000},
		{"1m1ms", 60001},
		{"1w2d3h4m5s6ms", 604800000 + 172800000 + 10800000 + 240000 + 5006},
		{"1.5h", 5400000},
		{"0.5s", 500},
		{"1.250s", 1250},
		{"1.50000000000000000000000000s", 1500},
		{"0.0010s", 1},
		{"1h0.5m", 3630000},
		{"100m", 6000000},
		{"48h", 172800000},
		{"9223372036854775807ms", INT64_MAX},
		{"007s", 7000},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t ms = -1;
		if (!str_to_duration_ms(str_from(cases[i].text), &ms) || ms != cases[i].ms)
			fail_msg("'%s' gave %" PRId64, cases[i].text, ms);
	}
}

static void a_doubtful_duration_is_refused_and_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"5",
		"0",
		"s",
		"ms",
		"-1s",
		"+1s",
		" 1s",
		"1s ",
		"1 s",
		"1h 30m",
		"30m1h",
		"1m1m",
		"1s1s",
		"1S",
		"1H",
		"1min",
		"1sec",
		"1us",
		"1y",
		"1.s",
		".5s",
		"1.5",
		"1..5s",
		"1.5.5s",
		"1e3s",
		"0x1s",
		"1h30",
		"0.5ms",
		"0.0001s",
		"1,5s",
		"9223372036854775808ms",
		"99999999999999999999s",
		"153722867280912931m",
		"9223372036854775807ms1ms",
		"106751991167300d23h59m59s999ms",
		"1s\n",
	};
	int64_t ms = 42;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (str_to_duration_ms(str_from(bad[i]), &ms))
			fail_msg("'%s' was taken as %" PRId64, bad[i], ms);
	assert_false(str_to_duration_ms((struct str){"1s\0", 3}, &ms));
	assert_false(str_to_duration_ms((struct str){NULL, 0}, &ms));
	assert_int_equal(ms, 42);
}

static void sizes_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"512", 512},
		{"0", 0},
		{"0B", 0},
		{"7B", 7},
		{"64KiB", 65536},
		{"2GiB", UINT64_C(2147483648)},
		{"10MB", 10000000},
		{"1kB", 1000},
		{"1KB", 1000},
		{"3GB", UINT64_C(3000000000)},
		{"1TB", UINT64_C(1000000000000)},
		{"1TiB", UINT64_C(1099511627776)},
		{"1PB", UINT64_C(1000000000000000)},
		{"1PiB", UINT64_C(1125899906842624)},
		{"1EB", UINT64_C(1000000000000000000)},
		{"15EiB", UINT64_C(17293822569102704640)},
		{"1.5GiB", UINT64_C(1610612736)},
		{"0.5KiB", 512},
		{"2.50MB", 2500000},
		{"18446744073709551615", UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t bytes = 99;
		if (!str_to_size(str_from(cases[i].text), &bytes) || bytes != cases[i].bytes)
			fail_msg("'%s' gave %" PRIu64, cases[i].text, bytes);
	}
}

static void a_doubtful_size_is_refused_and_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"KiB",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1 KiB",
		"1K",
		"1M",
		"1G",
		"1kib",
		"1mb",
		"1Mib",
		"1.5",
		"1.5B",
		"0.3KiB",
		"1.KiB",
		".5KiB",
		"1KiB2",
		"1KiBs",
		"0x10",
		"1e3",
		"16EiB",
		"18446744073709551616",
		"99999999999999999999KiB",
		"1KiB1KiB",
		"0.00000000000000000000001EB",
	};
	uint64_t bytes = 42;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (str_to_size(str_from(bad[i]), &bytes))
			fail_msg("'%s' was taken as %" PRIu64, bad[i], bytes);
	assert_false(str_to_size((struct str){"1\0", 2}, &bytes));
	assert_int_equal(bytes, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_read_as_people_write_them),
		cmocka_unit_test(a_doubtful_duration_is_refused_and_changes_nothing),
		cmocka_unit_test(sizes_are_read_as_people_write_them),
		cmocka_unit_test(a_doubtful_size_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
