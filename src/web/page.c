#include "web/page.h"

#include <string.h>

#include "web/assets.h"

/* "<prefix>ANYTHING", without a further '/'. */
static bool is_page_of(struct str path, struct str prefix)
{
	return str_starts(path, prefix) && path.n > prefix.n &&
	       !memchr(path.p + prefix.n, '/', path.n - prefix.n);
}

const struct page_asset *page_find(struct str path)
{
	if (str_is(path, "/compare") || str_is(path, "/suites") || is_page_of(path, STR("/run/")) ||
	    is_page_of(path, STR("/suite/")))
		path = STR("/");
	for (size_t i = 0; i < page_nassets; i++)
		if (str_is(path, page_assets[i].path))
			return &page_assets[i];
	return NULL;
}
