/*
 * The network of isolated nodes: ranges, bridge, cables, sweep.
 *
 * All that needs root happens in network and mount namespaces of the test's own, so that nothing of
 * this machine is touched.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "driver/driver.h"
#include "driver/local/internal.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "own_mounts.h"
#include "sys/netns.h"

#define FIRST_10 0x0a000000u
#define LAST_10 0x0affffffu

/* ---- ranges ---- */

static void a_range_is_as_large_as_its_nodes_need(void **state)
{
	static const struct {
		int nodes, prefix;
	} rows[] = {{1, 24}, {253, 24}, {254, 23}, {507, 23}, {508, 22}, {1000, 22}};
	struct range r;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(range_choose(NULL, 0, rows[i].nodes, 7, &r));
		assert_int_equal(range_prefix(r), rows[i].prefix);
		assert_int_equal(r.first % (r.last - r.first + 1), 0);
		assert_true(r.first >= FIRST_10 && r.last <= LAST_10);
	}
}

static void a_range_meets_nobody_elses(void **state)
{
	/* All of 10/8 but 10.200.6.0/23, of which the second half is taken in a piece of one address. */
	const struct range taken[] = {
		{FIRST_10, 0x0ac805ff}, {0x0ac80780, 0x0ac80780}, {0x0ac80800, LAST_10}};
	struct range r;

	(void)state;
	for (uint64_t start = 0; start < 300000; start += 999) {
		assert_true(range_choose(taken, COUNT(taken), 10, start, &r));
		assert_int_equal(r.first, 0x0ac80600);
		assert_int_equal(r.last, 0x0ac806ff);
	}
	/* For more nodes nothing is left there, and the shared space of providers is used. */
	assert_true(range_choose(taken, COUNT(taken), 300, 5, &r));
	assert_int_equal(r.first & 0xffc00000, 0x64400000);
}

static void without_a_free_range_there_is_none(void **state)
{
	const struct range all = {0, UINT32_MAX};
	struct range r;

	(void)state;
	assert_false(range_choose(&all, 1, 1, 0, &r));
}

static void the_text_of_a_network_is_read(void **state)
{
	struct range r;

	(void)state;
	assert_true(range_parse("10.3.4.1/23", &r));
	assert_int_equal(r.first, 0x0a030400);
	assert_int_equal(r.last, 0x0a0305ff);
	assert_false(range_parse("10.3.4.1", &r));
	assert_false(range_parse("10.3.4.1/", &r));
	assert_false(range_parse("10.3.4.1/31", &r));
	assert_false(range_parse("10.3.4/24", &r));
	assert_false(range_parse("100.300.400.500/24", &r));
	assert_false(range_parse("", &r));
}

/* ---- with a network ---- */

struct bench {
	char *dir, *node;
	char spec[700], bridge_spec[700];
	struct driver_row row, bridge;
	struct local_net net;
};

static int setup(void **state)
{
	struct bench *b = xcalloc(1, sizeof(*b));
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	b->dir = dir;
	b->node = path_join(dir, "runs/run-abcd/w-0.node");
	CLEANUP(freep) char *run_dir = path_join(dir, "runs/run-abcd");

	if (file_mkdir_p(b->node, 0700, NULL) < 0)
		return -1;
	snprintf(b->bridge_spec, sizeof(b->bridge_spec),
		 "{\"run_dir\":\"%s\",\"address\":\"10.3.4.1\",\"prefix\":24,"
		 "\"hosts\":\"10.3.4.2 w-0\\n\"}",
		 run_dir);
	b->bridge = (struct driver_row){.kind = "local.bridge",
					.name = "bridge",
					.install = "i1",
					.run = "run-abcd",
					.spec = b->bridge_spec};
	b->row = b->bridge;
	b->row.kind = "local.node";
	b->row.name = "w-0";
	b->net = (struct local_net){"10.3.4.2", 24};
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *dir = b->dir;

	if (geteuid() == 0) {
		local_net_remove(&b->row, b->node, NULL);
		local_bridge_driver.destroy(&b->bridge);
	}
	free(b->node);
	free(b);
	return unit_remove_dir(&dir);
}

static bool has_root(void)
{
	return netns_check_allowed(NULL) == 0;
}

static void count_link(void *ctx, const char *name, const char *alias)
{
	(void)alias;
	*(int *)ctx += strncmp(name, "rg", 2) == 0;
}

static int links(void)
{
	CLEANUP(close_fdp) int nl = netlink_open(NULL);
	int n = 0;

	assert_int_equal(netlink_each_link(nl, count_link, &n, NULL), 0);
	return n;
}

static int make_node(struct bench *b, struct err *err)
{
	CLEANUP(freep) char *run_dir = path_join(b->dir, "runs/run-abcd");

	return local_net_make(&b->row, &b->net, b->node, run_dir, err);
}

static void make_bridge(struct bench *b)
{
	if (local_bridge_driver.create(&b->bridge) != OUTCOME_DONE)
		fail_msg("%s", b->bridge.err.msg);
}

static void a_bridge_is_made_once_and_removed(void **state)
{
	struct bench *b = *state;
	CLEANUP(freep) char *hosts = path_join(b->dir, "runs/run-abcd/" LAYOUT_HOSTS_FILE);
	struct buf text;

	if (!has_root())
		skip();
	assert_int_equal(local_bridge_driver.find(&b->bridge), OUTCOME_ABSENT);
	assert_true(b->bridge.identity_checked);
	make_bridge(b);
	make_bridge(b);
	assert_int_equal(links(), 1);
	assert_int_equal(strlen(b->bridge.id), 15);
	assert_int_equal(local_bridge_driver.observe(&b->bridge), OUTCOME_DONE);
	buf_init(&text, 4096);
	assert_int_equal(file_read(hosts, &text, NULL), 0);
	assert_string_equal(text.p, "127.0.0.1 localhost\n::1 localhost\n10.3.4.2 w-0\n");
	buf_release(&text);
	assert_int_equal(local_bridge_driver.destroy(&b->bridge), OUTCOME_DONE);
	assert_int_equal(local_bridge_driver.destroy(&b->bridge), OUTCOME_DONE);
	assert_int_equal(links(), 0);
	assert_false(file_exists(hosts));
}

static void a_link_of_somebody_else_is_not_taken(void **state)
{
	struct bench *b = *state;
	CLEANUP(close_fdp) int nl = netlink_open(NULL);
	char name[LINK_NAME_SIZE];

	if (!has_root())
		skip();
	local_net_bridge_name(&b->bridge, name);
	assert_int_equal(netlink_add_bridge(nl, name, NULL), 0);
	assert_int_equal(netlink_set_alias(nl, name, "the office", NULL), 0);
	assert_int_equal(local_bridge_driver.create(&b->bridge), OUTCOME_REFUSED);
	assert_non_null(strstr(b->bridge.err.msg, "another owner: the office"));
	assert_int_equal(links(), 1);
}

/* What listens in the namespace of a node is reached from here, and a port of ours is free there. */
static void a_node_has_ports_of_its_own(void **state)
{
	struct bench *b = *state;
	CLEANUP(freep) char *netns = path_join(b->node, LAYOUT_NETNS);
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(5000)};
	struct sockaddr_in there = any;
	struct err err = {0};

	if (!has_root())
		skip();
	make_bridge(b);
	if (make_node(b, &err) < 0)
		fail_msg("%s", err.msg);
	inet_pton(AF_INET, "10.3.4.2", &there.sin_addr);
	CLEANUP(close_fdp) int here = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP(close_fdp) int in = netns_socket(netns, AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
	CLEANUP(close_fdp) int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(here, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(here, 1), 0);
	assert_int_equal(bind(in, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(in, 1), 0);
	assert_int_equal(connect(out, (struct sockaddr *)&there, sizeof(there)), 0);
	CLEANUP(close_fdp) int peer = accept(in, NULL, NULL);

	assert_true(peer >= 0);
}

static void a_complete_network_stays_and_a_half_made_one_is_made_again(void **state)
{
	struct bench *b = *state;
	CLEANUP(freep) char *netns = path_join(b->node, LAYOUT_NETNS);
	struct stat before, after;
	char alias[LINK_ALIAS_SIZE];
	struct err err = {0};

	if (!has_root())
		skip();
	make_bridge(b);
	assert_int_equal(make_node(b, &err), 0);
	assert_int_equal(stat(netns, &before), 0);
	assert_int_equal(make_node(b, &err), 0);
	assert_int_equal(stat(netns, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(links(), 2);

	/* Killed in the middle: the namespace is there, the cable is not. */
	local_net_alias("i1", "run-abcd", "w-0", alias);
	assert_int_equal(local_net_remove(&b->row, b->node, &err), 0);
	assert_int_equal(netns_make(netns, &err), 0);
	assert_true(local_net_is_there(&b->row, b->node));
	assert_int_equal(make_node(b, &err), 0);
	assert_int_equal(links(), 2);
	assert_int_equal(local_net_remove(&b->row, b->node, &err), 0);
	assert_false(local_net_is_there(&b->row, b->node));
	assert_int_equal(links(), 1);
	assert_false(file_exists(netns));
}

static void a_network_that_cannot_be_made_leaves_nothing(void **state)
{
	struct bench *b = *state;
	struct err err = {0};

	if (!has_root())
		skip();
	make_bridge(b);
	snprintf(b->net.address, sizeof(b->net.address), "10.3.4");
	assert_int_equal(make_node(b, &err), -1);
	assert_non_null(strstr(err.msg, "'10.3.4' is not an IPv4 address"));
	assert_false(local_net_is_there(&b->row, b->node));
	assert_int_equal(links(), 1);
}

static bool only_other(void *ctx, const char *run)
{
	(void)ctx;
	return strcmp(run, "other") == 0;
}

static void a_sweep_takes_what_is_ours_and_of_no_active_run(void **state)
{
	struct bench *b = *state;
	CLEANUP(freep) char *netns = path_join(b->node, LAYOUT_NETNS);
	struct sweep_input in = {.home = b->dir, .install = "i2", .is_active = only_other};
	struct driver_row other = b->bridge;
	struct err err = {0};

	if (!has_root())
		skip();
	make_bridge(b);
	assert_int_equal(make_node(b, &err), 0);
	other.run = "other";
	assert_int_equal(local_bridge_driver.create(&other), OUTCOME_DONE);
	assert_int_equal(links(), 3);

	in.home = "/nowhere"; /* another install on the same machine */
	assert_int_equal(local_sweep(&in, &err), 0);
	assert_int_equal(links(), 3);
	assert_true(netns_is_at(netns));

	in.home = b->dir;
	in.install = "i1";
	assert_int_equal(local_sweep(&in, &err), 3);
	assert_int_equal(err.kind, ERR_NONE);
	assert_int_equal(links(), 1);
	assert_false(netns_is_at(netns));
	assert_int_equal(local_bridge_driver.destroy(&other), OUTCOME_DONE);
}

static void addresses_avoid_the_routes_and_the_other_runs(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *other = doc_new(a, DOC_TABLE), *facts;
	const struct doc *taken[] = {other};
	struct err err = {0};
	struct range r;
	struct resolve_input in = {.home = "/h", .run_dir = "/h/r", .nodes = 900, .netns = true};

	(void)state;
	if (!has_root())
		skip();
	/* The network of the test has no route at all but what is made here. */
	CLEANUP(close_fdp) int nl = netlink_open(NULL);

	assert_int_equal(netlink_add_bridge(nl, "rgx", &err), 0);
	assert_int_equal(netlink_add_address(nl, "rgx", 0x0a000001, 8, &err), 0);
	assert_int_equal(netlink_set_up(nl, "rgx", &err), 0);
	/* 10/8 is a route, and another run has half of the rest. */
	doc_set(a, other, STR("bridge"), doc_new_str(a, STR("100.64.0.1/11")));
	in.taken = taken;
	in.ntaken = 1;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(local_resolver.resolve(&in, a, &facts, &err), 0);
		assert_true(range_parse(doc_str(facts, "bridge", STR("")).p, &r));
		assert_int_equal(r.first & 0xffe00000, 0x64600000);
	}
	assert_int_equal(netlink_add_address(nl, "rgx", 0x64400001, 10, &err), 0);
	assert_int_equal(local_resolver.resolve(&in, a, &facts, &err), -1);
	assert_string_equal(
		err.msg, "isolate = \"netns\": no addresses are left for 900 nodes: the routes of "
			 "this machine take 10.0.0.0/8 and 100.64.0.0/10");
	assert_int_equal(netlink_delete(nl, "rgx", &err), 0);
}

static void who_is_not_root_is_told_what_to_do(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct resolve_input in = {.home = "/h", .run_dir = "/h/r", .nodes = 2, .netns = true};
	uid_t was = geteuid();
	struct err err = {0};
	struct doc *facts;

	(void)state;
	if (was == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(local_resolver.resolve(&in, a, &facts, &err), -1);
	assert_int_equal(seteuid(was), 0);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_non_null(strstr(err.msg,
			       "isolate = \"netns\": network namespaces take root, and this "
			       "master is user "));
	assert_non_null(strstr(err.msg, "; start the master as root, or leave out isolate"));
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_as_large_as_its_nodes_need),
		cmocka_unit_test(a_range_meets_nobody_elses),
		cmocka_unit_test(without_a_free_range_there_is_none),
		cmocka_unit_test(the_text_of_a_network_is_read),
		CASE(a_bridge_is_made_once_and_removed),
		CASE(a_link_of_somebody_else_is_not_taken),
		CASE(a_node_has_ports_of_its_own),
		CASE(a_complete_network_stays_and_a_half_made_one_is_made_again),
		CASE(a_network_that_cannot_be_made_leaves_nothing),
		CASE(a_sweep_takes_what_is_ours_and_of_no_active_run),
		CASE(addresses_avoid_the_routes_and_the_other_runs),
		CASE(who_is_not_root_is_told_what_to_do),
	};

	/* A machine of its own; without the right to have one, what needs it is skipped. */
	own_mounts(CLONE_NEWNET);
	return cmocka_run_group_tests_name("driver: network of local nodes", tests, NULL, NULL);
}
