#pragma once
/* assets - the table that web/build.mjs writes; other folders use page.h. */
#include <stddef.h>
#include "web/page.h"

extern const struct page_asset page_assets[];
extern const size_t page_nassets;
