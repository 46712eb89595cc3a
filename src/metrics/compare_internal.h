#pragma once
/* compare_internal - what compare.c and bootstrap.c share; not for others. */
#include "metrics/compare.h"

/* The checks that compare.h promises. */
int compare_check(struct values a, struct values b, struct err *err);
void compare_sort(double *v, size_t n);
/* Owned. */
double *compare_sorted(struct values from);
