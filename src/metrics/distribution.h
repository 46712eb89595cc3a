#pragma once
/* distribution - the normal and Student's t distributions, to about 1e-14. */

double normal_cdf(double z);
/* P(Z > z), accurate far out in the tail. */
double normal_tail(double z);
/* The z with P(Z <= z) = p; infinite at 0 and 1, NaN outside. */
double normal_quantile(double p);
/* P(T <= t) with df > 0 degrees of freedom. */
double student_cdf(double t, double df);
double student_quantile(double p, double df);
