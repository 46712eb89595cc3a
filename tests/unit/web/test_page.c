#include "unit.h"

#include <stdlib.h>
#include <zlib.h>

#include "web/assets.h"
#include "web/page.h"

#define MAX_COMPRESSED 100000
#define MAX_PLAIN (1 << 20)

/* The asset as a browser sees it; the caller frees. */
static char *unpacked(const struct page_asset *a, size_t *ret_n)
{
	char *plain = malloc(MAX_PLAIN);
	z_stream z = {.next_in = (unsigned char *)a->gzip,
		      .avail_in = (unsigned)a->n,
		      .next_out = (unsigned char *)plain,
		      .avail_out = MAX_PLAIN - 1};

	assert_non_null(plain);
	assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	*ret_n = z.total_out;
	plain[z.total_out] = 0;
	inflateEnd(&z);
	return plain;
}

static void every_page_is_the_one_page(void **state)
{
	static const char *const paths[] = {"/",
					    "/compare",
					    "/run/quickstart-abcd",
					    "/run/a%2Fb",
					    "/run/..",
					    "/run/<script>",
					    "/suites",
					    "/suite/scaling-abcd"};
	const struct page_asset *index = page_find(STR("/"));

	(void)state;
	assert_non_null(index);
	assert_string_equal(index->type, "text/html; charset=utf-8");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_ptr_equal(page_find(str_from(paths[i])), index);
}

static void what_the_page_asks_for_is_there(void **state)
{
	size_t n;
	char *html = unpacked(page_find(STR("/")), &n);
	char *script = NULL;

	(void)state;
	for (const char *at = html; (at = strstr(at, "=\"/assets/"));) {
		at += 2;
		struct str path = {at, strcspn(at, "\"")};
		assert_non_null(page_find(path));
	}
	assert_non_null(strstr(html, "/assets/app.js"));
	script = unpacked(page_find(STR("/assets/app.js")), &n);
	assert_true(n > 10000);
	free(script);
	free(html);
}

static void other_paths_are_nothing(void **state)
{
	static const char *const paths[] = {"",
					    "/run",
					    "/run/",
					    "/run/a/b",
					    "/run//",
					    "//",
					    "/compare/",
					    "/suites/",
					    "/suite",
					    "/suite/",
					    "/suite/a/b",
					    "/assets",
					    "/assets/",
					    "/assets/app.ts",
					    "/./",
					    "/assets/app.js/",
					    "/assets/../run",
					    "/assets/app.js%00",
					    "/index.html",
					    "index",
					    "/COMPARE"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_null(page_find(str_from(paths[i])));
	assert_null(page_find((struct str){"/\0", 2}));
	assert_null(page_find((struct str){NULL, 0}));
}

static void the_whole_is_small(void **state)
{
	size_t total = 0, n;

	(void)state;
	assert_true(page_nassets >= 4);
	for (size_t i = 0; i < page_nassets; i++) {
		const struct page_asset *a = &page_assets[i];
		free(unpacked(a, &n));
		assert_true(n > 0);
		assert_int_equal(a->etag[0], '"');
		assert_int_equal(a->etag[strlen(a->etag) - 1], '"');
		total += a->n;
	}
	assert_true(total <= MAX_COMPRESSED);
}

static void the_policy_allows_nothing_inline(void **state)
{
	size_t n;
	char *html = unpacked(page_find(STR("/")), &n);

	(void)state;
	assert_null(strstr(PAGE_CSP, "unsafe"));
	assert_null(strstr(PAGE_CSP, "*"));
	assert_null(strstr(html, "<style"));
	assert_null(strstr(html, " style="));
	assert_null(strstr(html, "<script>"));
	assert_null(strstr(html, "://"));
	free(html);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_page_is_the_one_page),
		cmocka_unit_test(what_the_page_asks_for_is_there),
		cmocka_unit_test(other_paths_are_nothing),
		cmocka_unit_test(the_whole_is_small),
		cmocka_unit_test(the_policy_allows_nothing_inline),
	};

	return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
