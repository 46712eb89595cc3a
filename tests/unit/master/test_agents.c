/* Peers of the link before their HELLO: the memory they may use and the answers they get. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "sys/loop.h"

#define PEERS 400
#define FILES 2048	/* of which strangers may have an eighth */
#define WAIT_ROUNDS 500 /* of 10 ms */

struct rig {
	struct master m;
	struct live_run lr;
	int peers[PEERS];
};

static struct member members[] = {{.name = "worker-0"}};

static int make(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
	setrlimit(RLIMIT_NOFILE, &files);
	r->m.loop = loop_new();
	r->m.runs = map_new();
	r->m.agents = agents_new(&r->m);
	r->lr.m = &r->m;
	r->lr.plan.crew.members = members;
	r->lr.plan.crew.n = 1;
	r->lr.row.id = "run-a";
	r->lr.row.secret = "secret";
	map_put(r->m.runs, STR("run-a"), &r->lr);
	for (int i = 0; i < PEERS; i++)
		r->peers[i] = -1;
	*state = r;
	return 0;
}

static int drop(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < PEERS; i++)
		if (r->peers[i] >= 0)
			close(r->peers[i]);
	r->m.agents = agents_free(r->m.agents);
	map_free(r->lr.ranks);
	map_free(r->m.runs);
	loop_free(r->m.loop);
	free(r);
	return 0;
}

static void connect_peer(struct rig *r, int i)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	agent_accept(r->m.agents, fd[0]);
	r->peers[i] = fd[1];
}

static void send_frame(struct rig *r, int i, uint8_t type, uint32_t length, struct str payload)
{
	uint8_t header[FRAME_HEADER];

	frame_header(header, type, 0, 0, length);
	assert_int_equal(write(r->peers[i], header, sizeof(header)), sizeof(header));
	if (payload.n > 0)
		assert_int_equal(write(r->peers[i], payload.p, payload.n), payload.n);
}

/* Bytes that came; 0 when the master has hung up, -1 when nothing comes. */
static ssize_t receive(struct rig *r, int i, char *out, size_t size, int rounds)
{
	for (int k = 0; k < rounds; k++) {
		ssize_t n = recv(r->peers[i], out, size, MSG_DONTWAIT);

		if (n >= 0 || errno != EAGAIN)
			return n < 0 ? 0 : n;
		loop_round(r->m.loop, 10);
	}
	return -1;
}

static size_t hello(struct rig *r, int i, const char *run, const char *node, const char *token,
		    char *out, size_t size)
{
	struct message_hello m = {.proto = LINK_PROTO,
				  .run = run,
				  .node = node,
				  .token = token,
				  .boot_id = "b",
				  .pid = 1,
				  .version = "0"};
	struct buf b;

	buf_init(&b, 100000);
	message_hello_put(&m, &b);
	connect_peer(r, i);
	send_frame(r, i, FRAME_HELLO, (uint32_t)b.n, buf_str(&b));
	buf_release(&b);
	ssize_t n = receive(r, i, out, size, WAIT_ROUNDS);

	assert_true(n >= 0);
	return (size_t)n;
}

static void a_frame_longer_than_a_hello_is_refused_by_its_header(void **state)
{
	struct rig *r = *state;
	char bin[64];

	connect_peer(r, 0);
	send_frame(r, 0, FRAME_HELLO, MESSAGE_HELLO_MAX + 1, STR(""));
	assert_int_equal(receive(r, 0, bin, sizeof(bin), WAIT_ROUNDS), 0);
	/* One that is as long as it may be is waited for. */
	connect_peer(r, 1);
	send_frame(r, 1, FRAME_HELLO, MESSAGE_HELLO_MAX, STR("{"));
	assert_int_equal(receive(r, 1, bin, sizeof(bin), 10), -1);
}

static void a_whole_frame_that_is_too_long_is_refused_too(void **state)
{
	struct rig *r = *state;
	char text[MESSAGE_HELLO_MAX + 1], bin[64];

	memset(text, ' ', sizeof(text));
	connect_peer(r, 0);
	send_frame(r, 0, FRAME_HELLO, sizeof(text), (struct str){text, sizeof(text)});
	assert_int_equal(receive(r, 0, bin, sizeof(bin), WAIT_ROUNDS), 0);
}

static void of_too_many_strangers_the_oldest_go_and_the_newest_is_heard(void **state)
{
	struct rig *r = *state;
	char bin[512];
	int gone = 0;

	for (int i = 0; i < PEERS - 1; i++) {
		connect_peer(r, i);
		send_frame(r, i, FRAME_HELLO, MESSAGE_HELLO_MAX, STR("{"));
		loop_round(r->m.loop, 0);
	}
	for (int i = 0; i < PEERS - 1; i++) {
		bool closed = recv(r->peers[i], bin, sizeof(bin), MSG_DONTWAIT) == 0;

		assert_true(!closed || gone == i); /* in the order in which they came */
		gone += closed;
	}
	assert_true(gone >= PEERS - 1 - FILES / 8);
	assert_true(hello(r, PEERS - 1, "run-b", "worker-0", "x", bin, sizeof(bin)) > FRAME_HEADER);
	assert_int_equal(bin[4], FRAME_REFUSE);
}

/* A right token is accepted in the end-to-end tests. */
static void without_a_token_nobody_learns_whether_a_run_exists(void **state)
{
	static const struct {
		const char *run, *node, *token;
	} cases[] = {
		{"run-b", "worker-0",
		 "0000000000000000000000000000000000000000000000000000000000000000"},
		{"run-a", "worker-0",
		 "0000000000000000000000000000000000000000000000000000000000000000"},
		{"run-a", "worker-7",
		 "0000000000000000000000000000000000000000000000000000000000000000"},
		{"run-a", "worker-0", ""},
		{"", "", ""},
	};
	struct rig *r = *state;
	char first[512], other[512];
	size_t n = hello(r, 0, cases[0].run, cases[0].node, cases[0].token, first, sizeof(first));

	assert_int_equal(first[4], FRAME_REFUSE);
	for (int i = 1; i < (int)COUNT(cases); i++) {
		assert_int_equal(hello(r, i, cases[i].run, cases[i].node, cases[i].token, other,
				       sizeof(other)),
				 n);
		assert_memory_equal(first, other, n);
	}
	/* A token that only begins right is wrong. */
	char token[66];

	node_token(&r->lr, "worker-0", 1, token);
	token[64] = 'x';
	token[65] = '\0';
	assert_int_equal(hello(r, 9, "run-a", "worker-0", token, other, sizeof(other)), n);
	token[63] = token[63] == '0' ? '1' : '0';
	token[64] = '\0';
	assert_int_equal(hello(r, 10, "run-a", "worker-0", token, other, sizeof(other)), n);
	/* The agent leaves with this kind. */
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct message_refuse m;

	assert_int_equal(message_refuse_get((struct str){first + FRAME_HEADER, n - FRAME_HEADER}, a,
					    &m, NULL),
			 0);
	assert_int_equal(m.kind, ERR_DENIED);
}

static void another_version_is_told_to_come_later(void **state)
{
	struct rig *r = *state;
	char out[512];

	connect_peer(r, 0);
	send_frame(r, 0, FRAME_HELLO, 11, STR("{\"proto\":9}"));
	ssize_t n = receive(r, 0, out, sizeof(out) - 1, WAIT_ROUNDS);

	assert_true(n > FRAME_HEADER && out[4] == FRAME_REFUSE);
	out[n] = '\0';
	assert_non_null(strstr(out + FRAME_HEADER, "\"unavailable\""));
}

/* The reason names frame and key, and the master invents nothing. */
static void what_a_stranger_says_wrong_is_answered_with_a_goodbye(void **state)
{
	static const struct {
		uint8_t type;
		const char *json, *says;
	} bad[] = {
		{FRAME_HELLO, "{\"proto\":1}", "hello: key 'run' is missing"},
		{FRAME_HELLO, "[]", "hello: not a JSON object"},
		{FRAME_EXIT, "{}", "exit: sent before the hello was accepted"},
		{FRAME_START, "{}", "start: only a master sends this frame"},
	};
	struct rig *r = *state;

	for (int i = 0; i < (int)COUNT(bad); i++) {
		char out[512];

		connect_peer(r, i);
		send_frame(r, i, bad[i].type, (uint32_t)strlen(bad[i].json), str_from(bad[i].json));
		ssize_t n = receive(r, i, out, sizeof(out) - 1, WAIT_ROUNDS);

		assert_true(n > FRAME_HEADER && out[4] == FRAME_BYE);
		out[n] = '\0';
		if (!strstr(out + FRAME_HEADER, bad[i].says))
			fail_msg("%s", out + FRAME_HEADER);
	}
}

/* Any connection that is silent for 15 s is closed; a stranger has only 10 s for its hello. */
static void a_stranger_has_ten_seconds_for_its_hello(void **state)
{
	struct rig *r = *state;
	int64_t from = clock_boot_ms();
	char out[256];

	connect_peer(r, 0);
	while (clock_boot_ms() - from < 20000 && receive(r, 0, out, sizeof(out), 100) != 0)
		;
	assert_in_range(clock_boot_ms() - from, 9900, 14000);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make, drop)
	static const struct CMUnitTest tests[] = {
		CASE(a_frame_longer_than_a_hello_is_refused_by_its_header),
		CASE(a_whole_frame_that_is_too_long_is_refused_too),
		CASE(of_too_many_strangers_the_oldest_go_and_the_newest_is_heard),
		CASE(without_a_token_nobody_learns_whether_a_run_exists),
		CASE(another_version_is_told_to_come_later),
		CASE(a_stranger_has_ten_seconds_for_its_hello),
		CASE(what_a_stranger_says_wrong_is_answered_with_a_goodbye),
	};

	return cmocka_run_group_tests_name("master: agents", tests, NULL, NULL);
}
