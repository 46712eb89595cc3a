/* Durations and sizes as people write them.  Integer arithmetic only: a value that is not a whole number of milliseconds or bytes is refused. */
#include "base/str.h"

#include <stdio.h>

struct unit {
	const char *name;
	uint64_t scale;
};

#define KI UINT64_C(1024)
#define K UINT64_C(1000)

/* Largest first: in "1h30m" each unit must be smaller than the one before. */
static const struct unit durations[] = {
	{"w", 7 * 86400 * K}, {"d", 86400 * K}, {"h", 3600 * K}, {"m", 60 * K}, {"s", K}, {"ms", 1},
};

static const struct unit sizes[] = {
	{"", 1},
	{"B", 1},
	{"kB", K},
	{"KB", K},
	{"MB", K *K},
	{"GB", K *K *K},
	{"TB", K *K *K *K},
	{"PB", K *K *K *K *K},
	{"EB", K *K *K *K *K *K},
	{"KiB", KI},
	{"MiB", KI *KI},
	{"GiB", KI *KI *KI},
	{"TiB", KI *KI *KI *KI},
	{"PiB", KI *KI *KI *KI *KI},
	{"EiB", KI *KI *KI *KI *KI *KI},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return !is_digit(c) && c != '.';
}

static struct str take_while(bool (*fits)(char c), struct str *s)
{
	struct str head = {s->p, 0};

	while (head.n < s->n && fits(s->p[head.n]))
		head.n++;
	s->p += head.n;
	s->n -= head.n;
	return head;
}

/* whole.fraction in units of scale; false when it does not fit or is not a whole number of units. */
static bool scaled(struct str whole, struct str fraction, uint64_t scale, uint64_t *ret)
{
	uint64_t v, f = 0, tens = 1, part;

	if (!str_to_u64(whole, &v) || __builtin_mul_overflow(v, scale, &v))
		return false;
	while (fraction.n && fraction.p[fraction.n - 1] == '0')
		fraction.n--;
	for (size_t i = 0; i < fraction.n; i++) {
		if (__builtin_mul_overflow(tens, (uint64_t)10, &tens))
			return false;
		f = f * 10 + (uint64_t)(fraction.p[i] - '0'); /* stays below tens */
	}
	if (__builtin_mul_overflow(f, scale, &part) || part % tens)
		return false;
	return !__builtin_add_overflow(v, part / tens, ret);
}

/* One "12.5unit" off the front of *s; *ret_unit is the index in the table. */
static bool take_quantity(struct str *s, const struct unit *units, size_t n_units, uint64_t *ret,
			  size_t *ret_unit)
{
	struct str whole = take_while(is_digit, s), fraction = {s->p, 0};

	if (whole.n == 0)
		return false;
	if (s->n && s->p[0] == '.') {
		s->p++;
		s->n--;
		fraction = take_while(is_digit, s);
		if (fraction.n == 0)
			return false;
	}
	struct str name = take_while(is_letter, s);
	for (size_t i = 0; i < n_units; i++) {
		if (!str_is(name, units[i].name))
			continue;
		*ret_unit = i;
		return scaled(whole, fraction, units[i].scale, ret);
	}
	return false;
}

bool str_to_duration_ms(struct str s, int64_t *ret)
{
	const size_t n_units = sizeof(durations) / sizeof(durations[0]);
	size_t next_unit = 0;
	uint64_t total = 0;

	if (s.n == 0)
		return false;
	while (s.n) {
		uint64_t part;
		size_t unit;

		if (!take_quantity(&s, durations + next_unit, n_units - next_unit, &part, &unit) ||
		    __builtin_add_overflow(total, part, &total))
			return false;
		next_unit += unit + 1;
	}
	if (total > INT64_MAX)
		return false;
	*ret = (int64_t)total;
	return true;
}

bool str_to_size(struct str s, uint64_t *ret)
{
	uint64_t v;
	size_t unit;

	if (!take_quantity(&s, sizes, sizeof(sizes) / sizeof(sizes[0]), &v, &unit) || s.n)
		return false;
	*ret = v;
	return true;
}
