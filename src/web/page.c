#include "web/page.h"

#include <string.h>

#include "web/assets.h"

/* "/run/ANYTHING", without a further '/'. */
static bool is_run_page(struct str path)
{
	struct str prefix = STR("/run/");

	return str_starts(path, prefix) && path.n > prefix.n &&
	       !memchr(path.p + prefix.n, '/', path.n - prefix.n);
}

const struct page_asset *page_find(struct str path)
{
	if (str_is(path, "/compare") || is_run_page(path))
		path = STR("/");
	for (size_t i = 0; i < page_nassets; i++)
		if (str_is(path, page_assets[i].path))
			return &page_assets[i];
	return NULL;
}
