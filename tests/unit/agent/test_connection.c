/* The agent's connection: lost, refused, silent, with messages that cannot be used. */
#include "unit.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/rand.h"
#include "fake_master.h"

static void a_lost_connection_is_resumed_where_it_was(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(
		f,
		"head -c 20000000 /dev/urandom > $DIR/copy; echo ready >&2; cat $DIR/copy; exit 2");
	for (size_t i = 1; i <= 10; i++) {
		fake_wait_bytes(f, STREAM_OUT, i * 1500000);
		fake_hang_up(f);
		assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	}
	while (f->out[STREAM_OUT].n < 20000000)
		fake_wait_bytes(f, STREAM_OUT, 20000000);
	fake_wait(f, FRAME_COLLECTED);
	fake_output_is_copy(f, "copy");
	assert_int_equal(f->scanned[STREAM_OUT], 20000000);
}

static void killed_agents_and_lost_connections_never_cost_a_byte_or_a_second_run(void **state)
{
	struct fake *f = *state;
	struct rng rng;
	uint64_t seed = rand_u64();

	print_message("# seed %" PRIu64 "\n", seed);
	rng_seed(&rng, seed);
	fake_ready(f);
	fake_start(
		f,
		"echo x >> $DIR/ran; i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i loss=$i | "
		"tee -a $DIR/copy; [ $((i % 8)) = 0 ] && sleep 0.01; done; exit 11");
	for (int i = 0; i < 25; i++) {
		size_t more = f->out[STREAM_OUT].n + rng_below(&rng, 300);

		if (f->last[FRAME_COLLECTED])
			break;
		if (more < 4000)
			fake_wait_bytes(f, STREAM_OUT, more);
		if (rng_below(&rng, 2)) {
			fake_kill(f->agent);
			fake_agent(f);
		} else {
			fake_hang_up(f);
		}
		fake_meet(f);
	}
	const struct doc *h = f->last[FRAME_HELLO];
	const struct doc *e = doc_table(h, "exit");

	if (!f->last[FRAME_COLLECTED])
		fake_wait(f, FRAME_COLLECTED);
	if (!e)
		e = f->last[FRAME_EXIT];
	assert_non_null(e);
	assert_int_equal(fake_int(e, "code"), 11);
	fake_output_is_copy(f, "copy");
	assert_string_equal(fake_file(f, fake_below(f, "ran")), "x\n");
	/* Each line gave one sample, once. */
	size_t n = 0;

	for (const char *p = f->samples.p; (p = strstr(p, "loss=")); p++)
		n++;
	assert_int_equal(n, 400);
}

static void the_lease_ends_a_job_that_nobody_asks_for(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_welcome(f, 300);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\"}");
	fake_wait(f, FRAME_READY);
	pid_t pid = fake_start(f, "echo $$; exec sleep 600");

	fake_wait_bytes(f, STREAM_OUT, 2);
	close(f->listener); /* nobody answers any more */
	fake_hang_up(f);
	assert_int_equal(fake_agent_gone(f), 0);
	fake_gone(pid);
	/* The result waits for the next master. */
	struct fake *g = f;
	char *status = arena_printf(f->arena, "%s/status", g->node);

	assert_non_null(strstr(fake_file(f, status), "\"reason\":\"lease\""));
	f->listener = -1;
}

#define LOST_MS 2000

/* A node that may be carried elsewhere: the master's answers keep its job alive, nothing else does. */
static void a_job_ends_when_no_ping_is_answered_even_without_an_agent(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_WELCOME,
		  "{\"lease_ms\":60000,\"lost_ms\":2000,\"acks\":[0,0,0],\"scanned\":[0,0,0]}");
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\"}");
	fake_wait(f, FRAME_READY);
	pid_t pid = fake_start(f, "exec sleep 600"), shim = fake_shim(f);
	int64_t from = clock_boot_ms();

	while (clock_boot_ms() - from < 2 * LOST_MS)
		fake_wait(f, FRAME_PING); /* which is answered */
	assert_true(fake_alive(pid));
	fake_kill(f->agent);
	from = clock_boot_ms();
	fake_gone(pid);
	/* Its grace is 0.3 s; the master waits two seconds more. */
	assert_in_range(clock_boot_ms() - from, 0, LOST_MS + 300 + 2000);
	fake_gone(shim);
	assert_non_null(
		strstr(fake_file(f, fake_in_node(f, "status")), "\"reason\":\"no master for "));
}

/* The connection stays open, but nothing comes: with lost_ms 2500 the agent waits for half a second. */
static void a_silent_master_is_given_up_and_called_again(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_WELCOME,
		  "{\"lease_ms\":60000,\"lost_ms\":2500,\"acks\":[0,0,0],\"scanned\":[0,0,0]}");
	f->hold_pongs = true;
	fake_wait_close(f);
	f->hold_pongs = false;
	fake_meet(f);
	fake_release(f);
}

static void a_refused_node_cleans_up_and_leaves(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "exec sleep 600");

	fake_hang_up(f);
	fake_accept(f);
	fake_send(f, FRAME_REFUSE, "{\"kind\":\"not_found\",\"reason\":\"no such run\"}");
	assert_int_equal(fake_agent_gone(f), 0);
	fake_gone(pid);
	assert_false(file_exists(arena_printf(f->arena, "%s/work", f->node)));
}

static void a_node_refused_for_now_comes_again(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_REFUSE, "{\"kind\":\"throttled\",\"reason\":\"later\"}");
	fake_wait_close(f);
	fake_meet(f);
	fake_release(f);
}

/* A master that knows the run and cannot serve it yet says "unavailable". */
static void a_job_goes_on_while_its_node_is_told_to_come_later(void **state)
{
	static const char *const kinds[] = {"unavailable", "a kind of later versions"};
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "exec sleep 600");

	for (int i = 0; i < 4; i++) {
		fake_hang_up(f);
		fake_accept(f);
		fake_send(f, FRAME_REFUSE,
			  arena_printf(f->arena, "{\"kind\":\"%s\",\"reason\":\"later\"}",
				       kinds[i % 2]));
		fake_wait_close(f);
		assert_int_equal(kill(pid, 0), 0);
	}
	assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
	fake_release(f);
}

static void a_message_that_cannot_be_used_ends_the_connection_with_the_reason(void **state)
{
	static const struct {
		enum frame_type type;
		const char *json, *reason;
	} bad[] = {
		{FRAME_START, "{\"attempt\":0}", "attempt"},
		{FRAME_INPUTS, "nonsense", "JSON"},
		{FRAME_SIGNAL, "{\"hurry\":7}", "hurry"},
		{FRAME_ACK, "{}", "offset"},
		{FRAME_EXIT, "{}", "not expected"},
		{FRAME_WELCOME, "{\"lease_ms\":1,\"acks\":[1],\"scanned\":[0,0,0]}", "acks"},
		{FRAME_REFUSE, "{}", "kind"},
	};
	struct fake *f = *state;

	fake_agent(f);
	for (size_t i = 0; i < COUNT(bad); i++) {
		fake_meet(f);
		fake_send(f, bad[i].type, bad[i].json);
		const char *reason = fake_str(fake_wait(f, FRAME_BYE), "reason");

		if (!strstr(reason, bad[i].reason))
			fail_msg("'%s' does not say '%s'", reason, bad[i].reason);
		fake_wait_close(f);
	}
	fake_meet(f);
	fake_release(f);
}

static void a_start_before_the_welcome_is_not_acted_on(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_START,
		  "{\"attempt\":1,\"argv\":[\"/bin/true\"],\"env\":{},\"grace_ms\":1}");
	fake_wait(f, FRAME_BYE);
	fake_wait_close(f);
	assert_string_equal(fake_str(fake_meet(f), "holds"), "nothing");
}

/* Under the sanitizers, too: what the dialer says is gone with the dialer. */
static void an_agent_that_cannot_reach_another_machine_says_why_and_goes_on(void **state)
{
	struct fake *f = *state;
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	char *log = fake_below(f, "agent.log");

	f->raw_config = "{\"run\":\"r\",\"node\":\"n-0\",\"token\":\"t\",\"proto\":1,"
			"\"master\":\"https://127.0.0.1:1\",\"pin\":\"sha256//"
			"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}";
	fake_agent(f);
	while (!strstr(fake_file(f, log), "nobody listens on port 1 of 127.0.0.1; trying again"))
		assert_true(clock_boot_ms() < until);
	poll(NULL, 0, 200); /* some more dials */
	assert_int_equal(kill(f->agent, 0), 0);
	assert_int_equal(waitpid(f->agent, NULL, WNOHANG), 0);
	assert_null(strstr(fake_file(f, log), "Sanitizer"));
	fake_kill(f->agent);
}

static void a_ping_is_answered(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(f, FRAME_PING, "{}");
	fake_wait(f, FRAME_PONG);
}

static void when_nobody_listens_a_master_is_started(void **state)
{
	struct fake *f = *state;

	f->config = ",\"revive\":true";
	fake_ready(f);
	close(f->listener);
	f->listener = -1;
	unlink(fake_below(f, "link.sock"));
	fake_hang_up(f);
	/* Not as a part of this node: it has no mark. */
	assert_string_equal(fake_file(f, fake_below(f, "revived")), "--background");
}

/* A listener that never accepts; returns the connection that fills its backlog. */
static int listen_but_be_busy(struct fake *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int next = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/link.sock", f->dir);
	close(f->listener);
	assert_int_equal(unlink(sa.sun_path), 0);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(f->listener, 0), 0);
	assert_int_equal(connect(filler, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(connect(next, (struct sockaddr *)&sa, sizeof(sa)), -1);
	close(next);
	return filler;
}

static void a_busy_master_is_not_replaced_by_another(void **state)
{
	struct fake *f = *state;

	f->config = ",\"revive\":true";
	fake_ready(f);
	int filler = listen_but_be_busy(f);

	fake_hang_up(f);
	int64_t until = clock_boot_ms() + 3500; /* one that is missing is replaced after a second */

	while (clock_boot_ms() < until) {
		assert_false(file_exists(fake_below(f, "revived")));
		poll(NULL, 0, 20);
	}
	close(accept4(f->listener, NULL, NULL, SOCK_CLOEXEC));
	close(filler);
	fake_meet(f);
	fake_release(f);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
		CASE(a_lost_connection_is_resumed_where_it_was),
		CASE(killed_agents_and_lost_connections_never_cost_a_byte_or_a_second_run),
		CASE(the_lease_ends_a_job_that_nobody_asks_for),
		CASE(a_job_ends_when_no_ping_is_answered_even_without_an_agent),
		CASE(a_silent_master_is_given_up_and_called_again),
		CASE(a_refused_node_cleans_up_and_leaves),
		CASE(a_node_refused_for_now_comes_again),
		CASE(a_job_goes_on_while_its_node_is_told_to_come_later),
		CASE(a_message_that_cannot_be_used_ends_the_connection_with_the_reason),
		CASE(a_start_before_the_welcome_is_not_acted_on),
		CASE(an_agent_that_cannot_reach_another_machine_says_why_and_goes_on),
		CASE(a_ping_is_answered),
		CASE(a_busy_master_is_not_replaced_by_another),
		CASE(when_nobody_listens_a_master_is_started),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: connection", tests, NULL, NULL);
}
