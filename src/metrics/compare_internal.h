#pragma once
/* compare_internal - shared by compare.c and bootstrap.c only. */
#include "metrics/compare.h"

/* The checks that compare.h promises. */
int compare_check(struct values a, struct values b, struct err *err);
void compare_sort(double *v, size_t n);
/* A sorted copy; the caller frees it. */
double *compare_sorted(struct values from);
