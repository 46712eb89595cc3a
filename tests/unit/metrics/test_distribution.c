/* Figures from SciPy 1.17: norm.ppf, norm.sf, t.ppf and t.cdf. */
#include "unit.h"

#include <math.h>
#include "metrics/distribution.h"

static void near(double got, double want, double relative)
{
	if (got == want)
		return;
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.17g, expected %.17g", got, want);
}

static void normal_quantiles_agree(void **state)
{
	static const double rows[][2] = {
		{1e-300, -37.0470962993612},   {1e-20, -9.262340089798409},
		{1e-09, -5.9978070150076865},  {0.001, -3.090232306167813},
		{0.025, -1.9599639845400545},  {0.2, -0.8416212335729142},
		{0.7, 0.5244005127080407},     {0.975, 1.959963984540054},
		{0.999999, 4.753424308817087}, {0.999999999999, 7.0344869100478356},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		near(normal_quantile(rows[i][0]), rows[i][1], 1e-12);
		near(normal_cdf(rows[i][1]), rows[i][0], 1e-11);
	}
	assert_true(fabs(normal_quantile(0.5)) < 1e-15);
	near(normal_tail(10), 7.61985302416047e-24, 1e-12);
}

static void the_ends_of_the_normal_are_infinite_and_beyond_is_nothing(void **state)
{
	(void)state;
	assert_true(normal_quantile(0) == -INFINITY);
	assert_true(normal_quantile(1) == INFINITY);
	assert_true(isnan(normal_quantile(-0.1)));
	assert_true(isnan(normal_quantile(1.1)));
	assert_true(isnan(normal_quantile(NAN)));
	assert_true(student_quantile(0, 3) == -INFINITY);
	assert_true(student_quantile(1, 3) == INFINITY);
	assert_true(isnan(student_quantile(NAN, 3)));
}

static void student_quantiles_agree(void **state)
{
	static const double rows[][3] = {
		{0.975, 1.0, 12.706204736174694},   {0.975, 2.0, 4.302652729749462},
		{0.975, 8.0, 2.306004135204166},    {0.8, 8.0, 0.8888895177670202},
		{0.975, 18.0, 2.1009220402410382},  {0.8, 18.0, 0.8620486679895989},
		{0.95, 4.5, 2.065575888878524},	    {0.001, 6.0, -5.207626238725374},
		{0.975, 198.0, 1.9720174778363146}, {0.975, 100000.0, 1.9599877075346095},
		{1e-09, 5.0, -98.93722464836996},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		near(student_quantile(rows[i][0], rows[i][1]), rows[i][2], 1e-9);
	assert_true(fabs(student_quantile(0.5, 3)) < 1e-9);
}

static void student_probabilities_agree(void **state)
{
	static const double rows[][3] = {
		{0.0, 3.0, 0.5},
		{1.0, 1.0, 0.75},
		{-2.5, 8.0, 0.01847101885681206},
		{3.2, 18.0, 0.9975187550019964},
		{-12.0, 4.0, 0.0001382142742514865},
		{0.01, 1000.0, 0.5039883590339064},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		near(student_cdf(rows[i][0], rows[i][1]), rows[i][2], 1e-12);
	near(student_cdf(-1e200, 3), 0, 0);
	near(student_cdf(1e200, 3), 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normal_quantiles_agree),
		cmocka_unit_test(the_ends_of_the_normal_are_infinite_and_beyond_is_nothing),
		cmocka_unit_test(student_quantiles_agree),
		cmocka_unit_test(student_probabilities_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
