/* URLs taken apart, and which hosts go through a proxy. */
#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "net/proxy.h"

static void urls_are_taken_apart(void **state)
{
	static const struct {
		const char *url, *host;
		int port;
		bool tls;
		const char *user, *path;
	} cases[] = {
		{"http://a", "a", 80, false, "", ""},
		{"https://a.test/", "a.test", 443, true, "", "/"},
		{"HTTPS://A.test:8443/x?y=1#z", "A.test", 8443, true, "", "/x?y=1"},
		{"http://[::1]:81/p", "::1", 81, false, "", "/p"},
		{"http://[fd00::2]", "fd00::2", 80, false, "", ""},
		{"http://u:p%40@h:1", "h", 1, false, "u:p%40", ""},
		{"http://u@x@h/", "h", 80, false, "u@x", "/"},
		{"http://h:/", "h", 80, false, "", "/"},
		{"h.test:3128", "h.test", 3128, false, "", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct http_url u;
		struct err err = {0};

		if (http_url_parse(&u, str_from(cases[i].url), true, &err) < 0)
			fail_msg("%s", err.msg);
		assert_string_equal(u.host, cases[i].host);
		assert_int_equal(u.port, cases[i].port);
		assert_int_equal(u.tls, cases[i].tls);
		assert_true(str_is(u.user, cases[i].user));
		assert_true(str_is(u.path, cases[i].path));
	}
}

static void what_is_no_url_is_refused(void **state)
{
	char *longest = xmalloc(HTTP_URL_MAX + 2);
	const char *const bad[] = {
		"",
		"http://",
		"http:///x",
		"ftp://h/",
		"http://h:0",
		"http://h:65536",
		"http://h:x",
		"http://h h/",
		"http://h/a b",
		"http://h/a\r\nb",
		"http://[::1",
		"http://[::1]x",
		"http://h\t/",
		"http://[a.b/]",
		"http://h?x",
		"socks5://h",
		"//h/x",
		longest,
	};

	memset(longest, 'a', HTTP_URL_MAX + 1);
	longest[HTTP_URL_MAX + 1] = '\0';
	memcpy(longest, "http://h/", 9);
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct http_url u;
		struct err err = {0};

		if (http_url_parse(&u, str_from(bad[i]), false, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
	free(longest);
}

static void hosts_are_exempt_from_the_proxy(void **state)
{
	static const struct {
		const char *no_proxy, *host;
		int port;
		bool used;
	} cases[] = {
		{NULL, "a.test", 443, true},
		{"", "a.test", 443, true},
		{"*", "a.test", 443, false},
		{"b.test,a.test", "a.test", 443, false},
		{" b.test , A.TEST ", "a.test", 443, false},
		{"test", "a.test", 443, false},
		{".test", "a.test", 443, false},
		{"*.test", "a.test", 443, false},
		{"est", "a.test", 443, true},
		{"a.test", "xa.test", 443, true},
		{"a.test:443", "a.test", 443, false},
		{"a.test:80", "a.test", 443, true},
		{"10.0.0.0/8", "10.200.1.1", 443, false},
		{"10.0.0.0/8", "11.0.0.1", 443, true},
		{"10.0.0.0/33", "10.0.0.1", 443, true},
		{"192.168.4.0/23", "192.168.5.255", 443, false},
		{"192.168.4.0/23", "192.168.6.0", 443, true},
		{"169.254.169.254", "169.254.169.254", 80, false},
		{"fd00::/8", "fd12::1", 443, false},
		{"fd00::/8", "fe80::1", 443, true},
		{"0.0.0.0/0", "fd12::1", 443, true},
		{NULL, "localhost", 443, false},
		{NULL, "127.9.9.9", 443, false},
		{NULL, "::1", 443, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct proxy_settings s = {.https_proxy = "http://proxy:3128",
					   .no_proxy = cases[i].no_proxy};
		struct http_url proxy;
		struct err err = {0};
		bool used;

		assert_int_equal(
			proxy_for(&s, cases[i].host, cases[i].port, true, &proxy, &used, &err), 0);
		if (used != cases[i].used)
			fail_msg("%s with %s", cases[i].host,
				 cases[i].no_proxy ? cases[i].no_proxy : "-");
		assert_int_equal(
			proxy_for(&s, cases[i].host, cases[i].port, false, &proxy, &used, &err), 0);
		assert_false(used); /* https_proxy is not for plain ones */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(what_is_no_url_is_refused),
		cmocka_unit_test(hosts_are_exempt_from_the_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
