#include "unit.h"

#include <string.h>

#include "master/api/auth.h"
#include "master/api/origin.h"

static bool host(const char *host_, const char *own, bool tls)
{
	return host_is_own(str_from(host_), str_from(own), tls);
}

/* Rule: the Host is the address that was reached, or another name of this machine. */

static void the_address_that_was_reached_is_own(void **state)
{
	(void)state;
	assert_true(host("127.0.0.1:5436", "127.0.0.1:5436", false));
	assert_true(host("10.0.0.5:5436", "10.0.0.5:5436", true));
	assert_true(host("[fe80::1]:5436", "[fe80::1]:5436", true));
	assert_true(host("[FE80::1]:5436", "[fe80::1]:5436", true));
}

static void names_of_this_machine_are_own_on_this_machine_only(void **state)
{
	static const char *const names[] = {"127.0.0.1:7", "localhost:7", "LocalHost:7", "[::1]:7"};

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_true(host(names[i], "127.0.0.1:7", false));
		assert_true(host(names[i], "[::1]:7", false));
		assert_true(host(names[i], "127.9.9.9:7", false));
		assert_false(host(names[i], "10.0.0.5:7", false));
	}
}

static void any_other_host_is_not(void **state)
{
	static const char *const others[] = {
		"",
		"evil.example",
		"evil.example:7",
		"127.0.0.1",
		"127.0.0.1:8",
		"127.0.0.1:77",
		"127.0.0.1:7.",
		":7",
		"127.0.0.1:7:7",
		"x127.0.0.1:7",
		"127.0.0.2:7",
		"localhost.evil:7",
		"evil@127.0.0.1:7",
		"127.0.0.1:7 ",
		"[::1:7",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(host(others[i], "127.0.0.1:7", false));
	assert_false(host("127.0.0.1:7", "", false)); /* the client has left */
}

static void the_usual_port_may_be_left_out(void **state)
{
	(void)state;
	assert_true(host("127.0.0.1", "127.0.0.1:80", false));
	assert_true(host("localhost:80", "127.0.0.1:80", false));
	assert_false(host("127.0.0.1", "127.0.0.1:80", true));
	assert_true(host("10.0.0.5", "10.0.0.5:443", true));
	assert_false(host("10.0.0.5", "10.0.0.5:443", false));
}

/* Rule: an Origin is that of our own page. */

static void only_the_origin_of_the_host_is_own(void **state)
{
	static const char *const others[] = {
		"",	    "null",	   "http://evil", "https://h:7",
		"http://h", "http://h:70", "http://h:7/", "HTTP://h:7",
		"http://",  "file://",	   "h:7"};

	(void)state;
	assert_true(origin_is_own(STR("http://h:7"), STR("h:7"), false));
	assert_true(origin_is_own(STR("https://h:7"), STR("H:7"), true));
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(origin_is_own(str_from(others[i]), STR("h:7"), false));
	assert_false(origin_is_own(STR("http://"), STR(""), false));
}

/* Rule: cookies. */

static void a_cookie_is_found_by_its_whole_name(void **state)
{
	(void)state;
	assert_true(str_is(cookie_get(STR("a=1; b=2;c=3"), "b"), "2"));
	assert_true(str_is(cookie_get(STR("a=1; b=2;c=3"), "c"), "3"));
	assert_true(str_is(cookie_get(STR("a=1=2"), "a"), "1=2"));
	assert_int_equal(cookie_get(STR("ab=1; xa=2"), "a").n, 0);
	assert_int_equal(cookie_get(STR("a"), "a").n, 0);
	assert_int_equal(cookie_get(STR(""), "a").n, 0);
	assert_int_equal(cookie_get((struct str){0}, "a").n, 0);
	assert_int_equal(cookie_get(STR(";;;= ;"), "a").n, 0);
}

static void an_address_loses_its_port(void **state)
{
	(void)state;
	assert_true(str_is(address_without_port(STR("127.0.0.1:4")), "127.0.0.1"));
	assert_true(str_is(address_without_port(STR("[::1]:4")), "[::1]"));
	assert_true(str_is(address_without_port(STR("?")), "?"));
	assert_int_equal(address_without_port(STR("")).n, 0);
}

/* Rule: whoever is on another machine is told what to do there, and of no file of this one. */
static void a_caller_from_elsewhere_is_not_sent_to_files_of_this_machine(void **state)
{
	static const char *const here[] = {"127.0.0.1:4711", "[::1]:4711"},
				 *const there[] = {"192.0.2.7:4711", "[2001:db8::1]:4711", "", "?"};

	(void)state;
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		assert_non_null(
			strstr(auth_token_advice(str_from(here[i])), "$REGATTA_HOME/token"));
	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		const char *said = auth_token_advice(str_from(there[i]));

		assert_null(strstr(said, "$REGATTA_HOME"));
		assert_non_null(strstr(said, "regatta context add"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_address_that_was_reached_is_own),
		cmocka_unit_test(names_of_this_machine_are_own_on_this_machine_only),
		cmocka_unit_test(any_other_host_is_not),
		cmocka_unit_test(the_usual_port_may_be_left_out),
		cmocka_unit_test(only_the_origin_of_the_host_is_own),
		cmocka_unit_test(a_cookie_is_found_by_its_whole_name),
		cmocka_unit_test(an_address_loses_its_port),
		cmocka_unit_test(a_caller_from_elsewhere_is_not_sent_to_files_of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
