#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define MS_PER_DAY INT64_C(86400000)
/* 0000-01-01 and the last millisecond of 9999 in the proleptic Gregorian calendar. */
#define FIRST_WALL_MS INT64_C(-62167219200000)
#define LAST_WALL_MS INT64_C(253402300799999)

static struct timespec now(clockid_t id)
{
	struct timespec ts = {0};

	clock_gettime(id, &ts);
	return ts;
}

int64_t clock_boot_ms(void)
{
	return clock_boot_us() / 1000;
}

int64_t clock_boot_us(void)
{
	struct timespec ts = now(CLOCK_BOOTTIME);

	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
	struct timespec ts = now(CLOCK_REALTIME);

	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/*
 * Not libc's: gmtime_r reads the time zone files of the host and takes a lock.
 * Days are counted from 0000-03-01, so that the leap day ends the year.
 */
static void civil_from_days(int64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t doe = days - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	*day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
	*month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
	*year = (unsigned)(yoe + era * 400 + (*month <= 2));
}

void clock_format(int64_t wall_ms, char out[static 32])
{
	unsigned year, month, day;

	if (wall_ms < FIRST_WALL_MS)
		wall_ms = FIRST_WALL_MS;
	if (wall_ms > LAST_WALL_MS)
		wall_ms = LAST_WALL_MS;
	int64_t days = wall_ms / MS_PER_DAY, in_day = wall_ms % MS_PER_DAY;
	if (in_day < 0) {
		in_day += MS_PER_DAY;
		days--;
	}
	civil_from_days(days, &year, &month, &day);
	unsigned ms = (unsigned)in_day;
	/* The remainders change nothing; they tell the compiler how long the text can be. */
	snprintf(out, 32, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year % 10000, month % 100,
		 day % 100, ms / 3600000 % 24, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

void clock_format_span(int64_t ms, char out[static 32])
{
	static const struct {
		uint64_t ms;
		const char *name;
		uint64_t small_ms;
		const char *small_name;
	} units[] = {
		{86400000, "d", 3600000, "h"},
		{3600000, "h", 60000, "min"},
		{60000, "min", 1000, "s"},
	};
	const char *sign = ms < 0 ? "-" : "";
	uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (v < units[i].ms)
			continue;
		/* The remainders change nothing; they tell the compiler how long the text can be. */
		uint64_t large = v / units[i].ms % UINT64_C(1000000000000);
		uint64_t small = v % units[i].ms / units[i].small_ms % 100;
		if (small)
			snprintf(out, 32, "%s%" PRIu64 " %s %" PRIu64 " %s", sign, large,
				 units[i].name, small, units[i].small_name);
		else
			snprintf(out, 32, "%s%" PRIu64 " %s", sign, large, units[i].name);
		return;
	}
	if (v >= 1000)
		snprintf(out, 32, "%s%" PRIu64 ".%" PRIu64 " s", sign, v / 1000, v % 1000 / 100);
	else
		snprintf(out, 32, "%s%" PRIu64 " ms", sign, v);
}
