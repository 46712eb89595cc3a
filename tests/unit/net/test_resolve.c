/* Names to addresses: a hosts file, a name server on loopback, and ones that fail. */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "net/resolve.h"
#include "peer.h"

#define LONG_MS 10000

static const struct peer_name names[] = {
	{"api.cloud.test", "10.1.2.3"},	    {"api.cloud.test", "10.1.2.4"},
	{"api.cloud.test", "fd00::1"},	    {"six.cloud.test", "fd00::6"},
	{"db.team.inner.test", "10.9.9.9"}, {"a.b.c", "10.0.0.1"},
	{"a.b.c.inner.test", "10.0.0.2"},
};

struct rig {
	void *dir;
	struct peer_dns dns;
	struct resolve_options o;
	char hosts[200], conf[200];
	struct address got[RESOLVE_MAX];
	size_t n;
	struct err err;
};

static void write_file(const char *path, const char *text)
{
	assert_int_equal(file_write(path, str_from(text), 0600, NULL), 0);
}

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	char *conf;

	if (unit_make_dir(&r->dir) < 0)
		return -1;
	r->dns.names = names;
	r->dns.n = COUNT(names);
	peer_dns_start(&r->dns);
	snprintf(r->hosts, sizeof(r->hosts), "%s", unit_path(&r->dir, "hosts"));
	snprintf(r->conf, sizeof(r->conf), "%s", unit_path(&r->dir, "resolv.conf"));
	write_file(r->hosts, "127.0.0.9 mine mine.test # a comment\n::9 mine6\n");
	conf = xasprintf(
		"# test\nnameserver 127.0.0.1:%d\nsearch none.test team.inner.test inner.test\n"
		"options ndots:3 edns0\n",
		r->dns.port);
	write_file(r->conf, conf);
	free(conf);
	r->o = (struct resolve_options){.hosts_file = r->hosts, .resolv_conf = r->conf};
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	void *dir = r->dir;

	peer_dns_stop(&r->dns);
	free(r);
	return unit_remove_dir(&dir);
}

static int ask(struct rig *r, const char *name)
{
	struct deadline d = deadline_in(LONG_MS, NULL);

	r->err = (struct err){0};
	return resolve_host(&r->o, name, &d, r->got, &r->n, &r->err);
}

/* "10.1.2.3 fd00::1 " */
static const char *answer(struct rig *r, const char *name)
{
	static char all[500];
	char one[ADDRESS_TEXT];
	size_t at = 0;

	if (ask(r, name) < 0)
		fail_msg("%s: %s", name, r->err.msg);
	for (size_t i = 0; i < r->n; i++) {
		address_text(&r->got[i], one);
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s ", one);
	}
	return all;
}

static void numbers_are_themselves(void **state)
{
	struct rig *r = *state;

	assert_string_equal(answer(r, "192.0.2.7"), "192.0.2.7 ");
	assert_string_equal(answer(r, "2001:db8::1"), "2001:db8::1 ");
	assert_string_equal(r->dns.asked, "");
}

static void the_hosts_file_comes_first(void **state)
{
	struct rig *r = *state;

	assert_string_equal(answer(r, "mine.test"), "127.0.0.9 ");
	assert_string_equal(answer(r, "MINE"), "127.0.0.9 ");
	assert_string_equal(answer(r, "mine6"), "::9 ");
	assert_string_equal(r->dns.asked, "");
	/* Read anew each time. */
	write_file(r->hosts, "127.0.0.10 mine\n");
	assert_string_equal(answer(r, "mine"), "127.0.0.10 ");
}

static void localhost_needs_no_file(void **state)
{
	struct rig *r = *state;

	assert_int_equal(unlink(r->hosts), 0);
	assert_non_null(strstr(answer(r, "localhost"), "127.0.0.1 "));
	assert_string_equal(r->dns.asked, "");
}

static void both_families_take_turns(void **state)
{
	struct rig *r = *state;
	const char *got = answer(r, "api.cloud.test.");

	/* The order inside a family is the server's or evdns' choice. */
	assert_true(strcmp(got, "10.1.2.3 fd00::1 10.1.2.4 ") == 0 ||
		    strcmp(got, "10.1.2.4 fd00::1 10.1.2.3 ") == 0);
	assert_string_equal(answer(r, "six.cloud.test."), "fd00::6 ");
}

static void short_names_are_searched_for(void **state)
{
	struct rig *r = *state;

	assert_string_equal(answer(r, "db"), "10.9.9.9 ");
	assert_string_equal(answer(r, "DB.team"), "10.9.9.9 ");
	/* Two dots are fewer than ndots: the search comes first.  A dot at the end forbids it. */
	assert_string_equal(answer(r, "a.b.c"), "10.0.0.2 ");
	assert_string_equal(answer(r, "a.b.c."), "10.0.0.1 ");
}

static void with_enough_dots_a_name_is_asked_for_as_it_is(void **state)
{
	struct rig *r = *state;
	char *conf = xasprintf("nameserver 127.0.0.1:%d\nsearch inner.test\n", r->dns.port);

	write_file(r->conf, conf);
	assert_string_equal(answer(r, "a.b.c"), "10.0.0.1 ");
	free(conf);
}

static void a_name_that_nobody_knows_is_unavailable(void **state)
{
	struct rig *r = *state;

	assert_int_equal(ask(r, "nobody.cloud.test"), -1);
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE); /* and not ERR_NOT_FOUND */
	assert_non_null(strstr(r->err.msg, "nobody.cloud.test"));
	r->dns.fails = true;
	assert_int_equal(ask(r, "api.cloud.test"), -1);
	assert_int_equal(r->err.kind, ERR_UNAVAILABLE);
}

static void what_is_no_name_is_not_asked_for(void **state)
{
	struct rig *r = *state;
	char *longest = xmalloc(300);
	const char *const bad[] = {"",	 ".",	"a..b", "a b", "a/b",
				   ".a", "a..", "x\ny", "a:1", longest};

	memset(longest, 'a', 299);
	longest[299] = '\0';
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(ask(r, bad[i]), -1);
		assert_int_equal(r->err.kind, ERR_INVALID);
	}
	longest[64] = '\0'; /* a label has at most 63 */
	assert_int_equal(ask(r, longest), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
	assert_string_equal(r->dns.asked, "");
	free(longest);
}

static void a_dead_server_costs_the_deadline_and_no_more(void **state)
{
	struct rig *r = *state;
	struct deadline d = deadline_in(150, NULL);
	int64_t began = clock_boot_ms();

	r->dns.silent = true;
	assert_int_equal(resolve_host(&r->o, "api.cloud.test", &d, r->got, &r->n, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_TIMEOUT);
	assert_true(clock_boot_ms() - began >= 150);
	assert_true(clock_boot_ms() - began < 3000);
}

static void a_dead_server_beside_a_live_one_costs_seconds(void **state)
{
	struct rig *r = *state;
	struct peer_dns dead = {.silent = true};
	int64_t began = clock_boot_ms();

	peer_dns_start(&dead);
	char *conf = xasprintf("nameserver 127.0.0.1:%d\nnameserver 127.0.0.1:%d\n", dead.port,
			       r->dns.port);

	write_file(r->conf, conf);
	/* Both families: the question that met the dead one is asked again. */
	const char *got = answer(r, "api.cloud.test");

	assert_non_null(strstr(got, "10.1.2."));
	assert_non_null(strstr(got, "fd00::1"));
	assert_true(clock_boot_ms() - began < 10000);
	peer_dns_stop(&dead);
	free(conf);
}

static void *set_soon(void *flag)
{
	poll(NULL, 0, 50);
	*(volatile int *)flag = 1;
	return NULL;
}

static void a_stop_ends_it(void **state)
{
	struct rig *r = *state;
	volatile int stop = 0;
	struct deadline d = deadline_in(60000, &stop);
	int64_t began = clock_boot_ms();
	pthread_t thread;

	r->dns.silent = true;
	assert_int_equal(pthread_create(&thread, NULL, set_soon, (void *)&stop), 0);
	assert_int_equal(resolve_host(&r->o, "api.cloud.test", &d, r->got, &r->n, &r->err), -1);
	pthread_join(thread, NULL);
	assert_int_equal(r->err.kind, ERR_CANCELLED);
	assert_true(clock_boot_ms() - began < 3000);
}

static void *ask_often(void *ctx)
{
	const struct rig *r = ctx;
	struct address got[RESOLVE_MAX];
	struct deadline d = deadline_in(LONG_MS, NULL);
	intptr_t ok = 0;
	size_t n;

	for (int i = 0; i < 10; i++)
		ok += resolve_host(&r->o, "db", &d, got, &n, NULL) == 0 && n == 1;
	return (void *)ok;
}

static void threads_do_not_meet(void **state)
{
	pthread_t thread[4];
	void *ok;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_often, *state), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &ok);
		assert_int_equal((intptr_t)ok, 10);
	}
}

/* Rule: a process without descriptors left is told so, and lives. */
static void no_descriptors_left_is_an_error_and_not_the_end(void **state)
{
	struct rig *r = *state;
	struct rlimit was, few;
	int failed = 0, free_fd = dup(0);

	close(free_fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	for (int i = 0; i < 16; i++) {
		few.rlim_cur = (rlim_t)(free_fd + i);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		int rc = ask(r, "db");

		setrlimit(RLIMIT_NOFILE, &was);
		assert_int_equal(r->err.kind, rc < 0 ? ERR_UNAVAILABLE : ERR_NONE);
		failed += rc < 0;
	}
	assert_true(failed >= 8 && failed < 16);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(numbers_are_themselves),
		T(the_hosts_file_comes_first),
		T(localhost_needs_no_file),
		T(both_families_take_turns),
		T(short_names_are_searched_for),
		T(with_enough_dots_a_name_is_asked_for_as_it_is),
		T(a_name_that_nobody_knows_is_unavailable),
		T(what_is_no_name_is_not_asked_for),
		T(a_dead_server_costs_the_deadline_and_no_more),
		T(a_dead_server_beside_a_live_one_costs_seconds),
		T(a_stop_ends_it),
		T(threads_do_not_meet),
		T(no_descriptors_left_is_an_error_and_not_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
