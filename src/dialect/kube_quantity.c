/* kube_quantity - amounts as Kubernetes writes them. */
#include <math.h>

#include "base/str.h"
#include "dialect/kube.h"

static bool number_of(const struct doc *d, double *ret)
{
	if (d->type == DOC_INT)
		*ret = (double)d->i;
	else if (d->type == DOC_FLOAT)
		*ret = d->f;
	else if (d->type != DOC_STRING || !str_to_double(d->s, ret))
		return false;
	return isfinite(*ret) && *ret >= 0;
}

bool kube_cpus(const struct doc *d, double *ret)
{
	int64_t thousandths;

	if (number_of(d, ret))
		return true;
	if (d->type != DOC_STRING || !str_ends(d->s, STR("m")) ||
	    !str_to_i64((struct str){d->s.p, d->s.n - 1}, &thousandths) || thousandths < 0)
		return false;
	*ret = (double)thousandths / 1000;
	return true;
}

bool kube_bytes(const struct doc *d, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		double unit;
	} units[] = {
		{"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0},
		{"k", 1e3},	{"M", 1e6},	   {"G", 1e9},		 {"T", 1e12},
	};
	double n;

	for (size_t i = 0; d->type == DOC_STRING && i < sizeof(units) / sizeof(units[0]); i++) {
		struct str suffix = str_from(units[i].suffix);

		if (!str_ends(d->s, suffix))
			continue;
		if (!str_to_double((struct str){d->s.p, d->s.n - suffix.n}, &n) || !(n >= 0) ||
		    n * units[i].unit >= 0x1p62)
			return false;
		*ret = (uint64_t)(n * units[i].unit);
		return true;
	}
	if (!number_of(d, &n) || n >= 0x1p62)
		return false;
	*ret = (uint64_t)n;
	return true;
}
