#include "metrics/stats.h"

#include <ctype.h>
#include <math.h>

void stats_add(struct stats *s, double v)
{
	if (s->count++ == 0) {
		s->first = s->min = s->max = v;
		s->mean = s->m2 = 0;
	}
	s->last = v;
	if (v < s->min)
		s->min = v;
	if (v > s->max)
		s->max = v;
	double delta = v - s->mean;
	s->mean += delta / (double)s->count;
	s->m2 += delta * (v - s->mean);
}

void stats_merge(struct stats *into, const struct stats *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0) {
		*into = *from;
		return;
	}
	double a = (double)into->count, b = (double)from->count;
	double delta = from->mean - into->mean;

	into->mean += delta * (b / (a + b));
	into->m2 += from->m2 + delta * delta * (a * b / (a + b));
	into->count += from->count;
	into->last = from->last;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
}

double stats_best(const struct stats *s, enum better b)
{
	if (s->count == 0)
		return NAN;
	switch (b) {
	case BETTER_LOWER:
		return s->min;
	case BETTER_HIGHER:
		return s->max;
	case BETTER_UNKNOWN:
		break;
	}
	return s->last;
}

double stats_stddev(const struct stats *s)
{
	return s->count < 2 ? 0 : sqrt(s->m2 / (double)(s->count - 1));
}

static bool holds(struct str s, const char *lower)
{
	size_t n = strlen(lower);

	for (size_t at = 0; at + n <= s.n; at++) {
		size_t i = 0;

		while (i < n && tolower((unsigned char)s.p[at + i]) == lower[i])
			i++;
		if (i == n)
			return true;
	}
	return false;
}

static bool ends(struct str s, const char *lower)
{
	size_t n = strlen(lower);

	return s.n >= n && holds((struct str){s.p + s.n - n, n}, lower);
}

enum better better_guess(struct str name)
{
	static const char *const inside[] = {"loss", "err", "time", "latency"};
	static const char *const at_end[] = {"_ms", "_s"};

	if (holds(name, "per_s")) /* a rate, whatever it ends in */
		return BETTER_HIGHER;
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
		if (holds(name, inside[i]))
			return BETTER_LOWER;
	for (size_t i = 0; i < sizeof(at_end) / sizeof(at_end[0]); i++)
		if (ends(name, at_end[i]))
			return BETTER_LOWER;
	return BETTER_HIGHER;
}
