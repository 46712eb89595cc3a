#pragma once
/* assets - what web/build.mjs writes; use page.h. */
#include <stddef.h>
#include "web/page.h"

extern const struct page_asset page_assets[];
extern const size_t page_nassets;
