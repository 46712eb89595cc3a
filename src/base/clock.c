#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
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

/* The other way round. */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t yoe = year - era * 400;
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* What a text may say of a moment. */
struct moment {
	int64_t year, month, day, hour, minute, second, ms, offset_min;
};

/* Takes n digits from the front. */
static bool take_digits(struct str *s, size_t n, int64_t *ret)
{
	if (s->n < n || !str_to_i64((struct str){s->p, n}, ret) || *ret < 0 || s->p[0] == '+')
		return false;
	*s = (struct str){s->p + n, s->n - n};
	return true;
}

static bool take_char(struct str *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = (struct str){s->p + 1, s->n - 1};
	return true;
}

static void take_fraction(struct str *s, struct moment *m)
{
	int64_t digit, weight = 100;

	if (!take_char(s, '.'))
		return;
	for (; take_digits(s, 1, &digit); weight /= 10)
		m->ms += digit * weight;
}

static bool take_offset(struct str *s, struct moment *m)
{
	int64_t hours, minutes, sign = take_char(s, '-') ? -1 : take_char(s, '+') ? 1 : 0;

	if (!sign)
		return take_char(s, 'Z') || take_char(s, 'z');
	if (!take_digits(s, 2, &hours))
		return false;
	take_char(s, ':');
	if (!take_digits(s, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	m->offset_min = sign * (hours * 60 + minutes);
	return true;
}

static bool take_time(struct str *s, struct moment *m, bool colons)
{
	return take_digits(s, 2, &m->hour) && (!colons || take_char(s, ':')) &&
	       take_digits(s, 2, &m->minute) && (!colons || take_char(s, ':')) &&
	       take_digits(s, 2, &m->second);
}

static bool parse_rfc3339(struct str s, struct moment *m)
{
	bool dashes = s.n > 4 && s.p[4] == '-';

	if (!take_digits(&s, 4, &m->year) || (dashes && !take_char(&s, '-')) ||
	    !take_digits(&s, 2, &m->month) || (dashes && !take_char(&s, '-')) ||
	    !take_digits(&s, 2, &m->day))
		return false;
	if (!take_char(&s, 'T') && !take_char(&s, 't') && !take_char(&s, ' '))
		return false;
	if (!take_time(&s, m, dashes))
		return false;
	take_fraction(&s, m);
	return take_offset(&s, m) && s.n == 0;
}

static bool parse_http(struct str s, struct moment *m)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct str rest = s, name;

	str_cut(&rest, ',');
	rest = str_trim(rest);
	if (!rest.p || !take_digits(&rest, 2, &m->day) || !take_char(&rest, ' '))
		return false;
	name = str_cut(&rest, ' ');
	const char *at = name.n == 3 ? memmem(months, sizeof(months) - 1, name.p, 3) : NULL;

	if (!at || (at - months) % 3)
		return false;
	m->month = (at - months) / 3 + 1;
	return take_digits(&rest, 4, &m->year) && take_char(&rest, ' ') &&
	       take_time(&rest, m, true) && str_is(str_trim(rest), "GMT");
}

bool clock_parse(struct str text, int64_t *ret_wall_ms)
{
	struct moment a = {0}, b = {0};
	const struct moment *m = parse_rfc3339(text, &a) ? &a : parse_http(text, &b) ? &b : NULL;

	if (!m || m->month < 1 || m->month > 12 || m->day < 1 || m->day > 31 || m->hour > 23 ||
	    m->minute > 59 || m->second > 60)
		return false;
	*ret_wall_ms = days_from_civil(m->year, m->month, m->day) * MS_PER_DAY +
		       ((m->hour * 60 + m->minute - m->offset_min) * 60 + m->second) * 1000 + m->ms;
	return true;
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
