#include "metrics/distribution.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

double normal_tail(double z)
{
	return 0.5 * erfc(z * M_SQRT1_2);
}

double normal_cdf(double z)
{
	return normal_tail(-z);
}

/* A start that is within 0.0005 (Abramowitz and Stegun 26.2.23), for p <= 1/2. */
static double rough_tail_quantile(double p)
{
	double t = sqrt(-2 * log(p));

	return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double normal_quantile(double p)
{
	if (!(p >= 0 && p <= 1))
		return NAN;
	if (p == 0 || p == 1)
		return p == 0 ? -INFINITY : INFINITY;

	/* Solved for the smaller tail, which keeps precision; each step of Halley's method triples the correct digits. */
	bool upper = p > 0.5;
	double tail = upper ? 1 - p : p;
	double z = rough_tail_quantile(tail);
	for (int i = 0; i < 3; i++) {
		double density = exp(-0.5 * z * z) / sqrt(2 * M_PI);
		double off = (normal_tail(z) - tail) / density;

		z += off / (1 - 0.5 * off * z);
	}
	return upper ? z : -z;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);

	d = 1 / (fabs(d) < tiny ? tiny : d);
	double f = d;
	for (int m = 1; m <= 10000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		f *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		f *= d * c;
		if (fabs(d * c - 1) < DBL_EPSILON)
			break;
	}
	return f;
}

static double log_gamma(double x)
{
	int sign; /* lgamma() itself writes a global */

	return lgamma_r(x, &sign);
}

/* The regularised incomplete beta function; y is 1 - x, given apart to keep its digits. */
static double beta_share(double a, double b, double x, double y)
{
	if (x <= 0)
		return 0;
	if (y <= 0)
		return 1;
	double front =
		exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, y) / b;
}

double student_cdf(double t, double df)
{
	double tail = 0.5 * beta_share(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t));

	return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double df)
{
	if (!(p > 0 && p < 1))
		return normal_quantile(p);

	/* The tail is monotonic: widen the interval until it encloses the quantile, then bisect to the last digit. */
	double tail = p > 0.5 ? 1 - p : p;
	double low = 0, high = 1;
	while (student_cdf(-high, df) > tail && high < 1e300)
		high *= 2;
	for (int i = 0; i < 200 && low < high; i++) {
		double mid = low + (high - low) / 2;

		if (mid <= low || mid >= high)
			break;
		if (student_cdf(-mid, df) > tail)
			low = mid;
		else
			high = mid;
	}
	return p > 0.5 ? high : -high;
}
