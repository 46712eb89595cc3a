/* The master and an agent that says the right thing, the wrong thing, or the same thing twice. */
#include "rig.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "master/agents.h"
#include "master/messages.h"
#include "master/runs.h"
#include "store/logfile.h"

#define FENCE_SLACK_MS 2000 /* as docs/protocol.md says */
#define WRONG_TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* The agent's node, of the one run. */
static struct core_node *node(struct rig_agent *a)
{
	return &rig_run(a->r)->core->nodes[a->rank];
}

static struct rig_agent *running(struct rig *r)
{
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	agent_run(a);
	rig_until(r, node(a)->state == NODE_RUNNING);
	return a;
}

static void an_agent_with_a_wrong_token_is_refused_and_its_node_hears_nothing(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *other = rig_agent(r, 1);
	char token[65];

	rig_submit(r, RIG_JOB_OF_TWO);
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	agent_hello(a, WRONG_TOKEN);
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_REFUSE], 1);
	assert_int_equal(a->seen[FRAME_WELCOME] + a->seen[FRAME_INPUTS], 0);
	assert_non_null(strstr(a->last[FRAME_REFUSE], "\"denied\""));
	/* The token of a node is good for that node only. */
	node_token(rig_run(r), rig_run(r)->plan.crew.members[0].name, 1, token);
	agent_hello(other, token);
	agent_wait_closed(other);
	assert_int_equal(other->seen[FRAME_REFUSE], 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_run(r)->core->nodes[i].state, NODE_LAUNCHING);
		assert_null(rig_run(r)->nodes[i].agent);
	}
	assert_int_equal(rig_events(r, "hello"), 0);
	/* The right one is welcome. */
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	assert_int_equal(a->seen[FRAME_WELCOME], 1);
}

/* Drivers and the core count the silence of a node from its last word, on whichever connection it came. */
static void the_last_word_of_a_node_is_remembered_when_its_connection_is_over(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *again = rig_agent(r, 0);
	struct live_run *lr = rig_submit(r, RIG_JOB);

	rig_until(r, lr->core->resources[0].state == RES_LIVE);
	assert_int_equal(agent_heard_ms(lr, 0), 0);
	((struct role *)lr->plan.crew.roles[0].spec)->policy.on_lost = LOST_REPLACE;
	agent_run(a);
	rig_until(r, node(a)->state == NODE_RUNNING);
	int64_t first = agent_heard_ms(lr, 0);

	assert_true(first > 0 && first <= clock_boot_ms());
	rig_until(r, clock_boot_ms() > first + 5);
	agent_say(a, FRAME_PING, "{}");
	agent_wait(a, FRAME_PONG);
	int64_t last = agent_heard_ms(lr, 0);

	assert_true(last > first);
	rig_until(r, clock_boot_ms() > last + 5);
	agent_hang_up(a);
	rig_until(r, !lr->nodes[0].agent);
	assert_int_equal(agent_heard_ms(lr, 0), last);
	/* Not from when the connection was found to be over. */
	assert_int_equal(node(a)->lost_at_ms, r->m.clock_base + last + core_lost_ms(lr->core, 0) +
						      lr->job->timeouts.grace_ms + FENCE_SLACK_MS);
	rig_until(r, clock_boot_ms() > last + 5);
	again->attempt = 1;
	agent_hello(again, NULL);
	agent_wait(again, FRAME_WELCOME);
	assert_true(agent_heard_ms(lr, 0) > last);
}

/* Counted from its last word, not in periods that began with its hello. */
static void a_silent_node_is_noticed_when_its_time_is_over(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	struct live_run *lr = rig_submit(r, RIG_JOB);

	rig_until(r, lr->core->resources[0].state == RES_LIVE);
	((struct role *)lr->plan.crew.roles[0].spec)->policy.on_lost = LOST_REPLACE;
	((struct job *)lr->job)->timeouts.lost_ms = 2000;
	agent_run(a);
	rig_until(r, node(a)->state == NODE_RUNNING);
	int64_t from = clock_boot_ms();

	rig_until(r, clock_boot_ms() > from + 500);
	agent_say(a, FRAME_PING, "{}");
	agent_wait(a, FRAME_PONG);
	rig_until(r, !lr->nodes[0].agent);
	/* As the first ping, or in periods, it would be 5 s after the hello. */
	assert_in_range(clock_boot_ms() - from, 2400, 4400);
}

/* A machine that was given up is told to leave; its successor's connection stays. */
static void an_earlier_incarnation_is_sent_away_and_the_node_stays_connected(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *past = rig_agent(r, 1);
	char token[65];

	rig_submit(r, RIG_JOB_OF_TWO);
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	rig_run(r)->core->nodes[0].incarnation = 2;
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	const struct agent_conn *conn = rig_run(r)->nodes[0].agent;

	past->rank = 0;
	past->incarnation = 1;
	agent_hello(past, NULL);
	agent_wait_closed(past);
	assert_int_equal(past->seen[FRAME_REFUSE], 1);
	assert_int_equal(past->seen[FRAME_WELCOME], 0);
	assert_non_null(strstr(past->last[FRAME_REFUSE], "\"denied\""));
	assert_ptr_equal(rig_run(r)->nodes[0].agent, conn);
	assert_true(rig_run(r)->core->nodes[0].connected);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM event WHERE kind = 'hello' AND text "
				       "LIKE '%: it was given up, and has to leave'"),
			 1);
	/* The token of one incarnation is no other's. */
	node_token(rig_run(r), rig_run(r)->plan.crew.members[0].name, 1, token);
	past->incarnation = 2;
	agent_hello(past, token);
	agent_wait_closed(past);
	assert_int_equal(past->seen[FRAME_WELCOME], 0);
	assert_ptr_equal(rig_run(r)->nodes[0].agent, conn);
}

/* A node of another machine: only it knows where it is. */
static void a_node_without_a_planned_address_has_the_one_it_says(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	struct buf start;

	rig_submit(r, RIG_JOB);
	rig_run(r)->plan.iface = NULL;
	node(a)->address[0] = '\0';
	buf_init(&start, FRAME_MAX_PAYLOAD);
	node_start_put(rig_run(r), 0, 1, false, &start);
	buf_add(&start, "", 1);
	assert_null(strstr(start.p, "\"MASTER_ADDR\":\"\"")); /* its name, until it is known */
	a->address = "10.0.0.7";
	a->interface = "eth7";
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	assert_string_equal(node(a)->address, "10.0.0.7");
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM node WHERE address = '10.0.0.7'"), 1);
	start.n = 0;
	node_start_put(rig_run(r), 0, 1, false, &start);
	buf_add(&start, "", 1);
	assert_non_null(strstr(start.p, "\"MASTER_ADDR\":\"10.0.0.7\""));
	assert_non_null(strstr(start.p, "\"NCCL_SOCKET_IFNAME\":\"eth7\""));
	buf_release(&start);
	/* What is planned stays. */
	a->address = "10.0.0.8";
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	rig_idle(r);
	assert_string_equal(node(a)->address, "10.0.0.7");
}

static void a_hello_with_an_address_that_is_none_is_refused(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	a->address = "10.0.0.7 slots=64";
	agent_hello(a, NULL);
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_WELCOME], 0);
	assert_non_null(strstr(a->last[FRAME_BYE], "'address'"));
	a->address = "10.0.0.7";
	a->interface = "eth0; rm";
	agent_hello(a, NULL);
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "'interface'"));
}

/* The rig checks each ACK against what was synced (check_ack() of rig.c). */
static void bytes_are_acknowledged_when_they_are_synced(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	for (uint64_t at = 0; at < 5 * 7; at += 7) {
		agent_data(a, STREAM_OUT, at, STR("a line\n"));
		rig_until(r, a->acks[STREAM_OUT].stored == at + 7);
	}
	/* Those that come while others are synced are not synced with them. */
	agent_data(a, STREAM_OUT, 35, STR("a line\n"));
	agent_data(a, STREAM_OUT, 42, STR("a line\n"));
	rig_until(r, a->acks[STREAM_OUT].stored == 49);
	/* The same bytes again change nothing and are acknowledged again. */
	a->seen[FRAME_ACK] = 0;
	agent_data(a, STREAM_OUT, 7, STR("a line\n"));
	agent_wait(a, FRAME_ACK);
	assert_int_equal(a->acks[STREAM_OUT].stored, 49);
	/* The next master says how far it is. */
	rig_crash(r);
	assert_true(rig_start(r));
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	assert_int_equal(a->acks[STREAM_OUT].stored, 49);
}

/* The kernel may have thrown the bytes away: only what a new master finds is there. */
static void a_log_that_cannot_be_synced_ends_the_master(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	r->sync_fails = true;
	agent_data(a, STREAM_OUT, 0, STR("a line\n"));
	rig_until_it_gives_up(r);
	assert_int_equal(a->acks[STREAM_OUT].stored, 0);
	r->sync_fails = false;
	rig_crash(r);
	assert_true(rig_start(r));
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
}

static void bytes_that_leave_a_hole_are_refused(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);
	struct buf text;

	agent_data(a, STREAM_OUT, 0, STR("abc"));
	rig_until(r, a->acks[STREAM_OUT].stored == 3);
	agent_data(a, STREAM_OUT, 4, STR("e"));
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_BYE], 1);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	agent_data(a, STREAM_OUT, 2, STR("cde"));
	rig_until(r, a->acks[STREAM_OUT].stored == 5);
	buf_init(&text, 100);
	assert_int_equal(file_read(a->log, &text, NULL), 0);
	assert_string_equal(text.p, "abcde");
	buf_release(&text);
}

static void a_stream_that_does_not_exist_ends_the_connection(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_data(a, (enum stream)STREAMS, 0, STR("abc"));
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_BYE], 1);
}

static void a_figure_counts_once(void **state)
{
	static const char frame[] =
		"{\"from\":0,\"to\":6,\"bad\":0,\"samples\":[[\"loss\",1.5,1,1]]}";
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	agent_say(a, FRAME_METRICS, frame);
	agent_say(a, FRAME_METRICS, frame);
	rig_until(r, a->acks[STREAM_OUT].scanned == 6);
	agent_say(a, FRAME_METRICS, frame);
	rig_idle(r);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM sample"), 1);
	assert_int_equal(rig_stored(r, "SELECT count FROM series"), 1);
	/* And is known to the next master. */
	rig_crash(r);
	assert_true(rig_start(r));
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	assert_int_equal(a->acks[STREAM_OUT].scanned, 6);
	agent_say(a, FRAME_METRICS, frame);
	rig_idle(r);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM sample"), 1);
}

static void a_second_hello_of_a_node_replaces_the_first_connection(void **state)
{
	struct rig *r = *state;
	struct rig_agent *old = running(r), *new = rig_agent(r, 0);

	new->attempt = old->attempt;
	agent_hello(new, NULL);
	agent_wait(new, FRAME_WELCOME);
	rig_until(r, old->closed);
	assert_int_equal(rig_events(r, "dropped"), 0); /* replaced, not lost */
	/* What the old one says counts no more. */
	agent_say(old, FRAME_EXIT, "{}");
	agent_finish(new);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_SUCCEEDED);
}

static void a_connection_says_hello_once(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_say(a, FRAME_HELLO, "{}");
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "has said hello already"));
	rig_until(r, rig_events(r, "dropped") == 1);
	assert_int_equal(node(a)->state, NODE_RUNNING); /* lost for now, not for good */
}

static void an_exit_that_is_reported_twice_counts_once(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);

	rig_submit(r, RIG_JOB_OF_TWO);
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	agent_hello(b, NULL);
	agent_wait(b, FRAME_INPUTS);
	agent_say(b, FRAME_READY, "{\"ok\":true}");
	agent_run(a);
	agent_wait(b, FRAME_START);
	agent_exit(a, 0);
	agent_exit(a, 0);
	rig_until(r, node(a)->state == NODE_EXITED);
	agent_hello(a, NULL); /* and says so again */
	agent_wait(a, FRAME_INPUTS);
	rig_idle(r);
	assert_int_equal(rig_events(r, "exited"), 1);
	assert_int_equal(rig_run(r)->core->counted_ok, 1);
	assert_int_equal(rig_run(r)->core->phase, RUN_RUNNING); /* the other one still runs */
	agent_hand_over(b);
	agent_finish(a);
	agent_wait(b, FRAME_RELEASE);
	agent_hang_up(b);
	rig_until(r, !rig_run(r));
}

static void an_exit_of_another_attempt_counts_for_nothing(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	a->attempt = 2;
	agent_exit(a, 0);
	rig_idle(r);
	assert_int_equal(node(a)->state, NODE_RUNNING);
	assert_int_equal(rig_events(r, "exited"), 0);
}

static void an_exit_of_another_attempt_does_not_hide_the_right_one(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_say(a, FRAME_EXIT,
		  "{\"attempt\":7,\"code\":0,\"signal\":0,\"oom\":false,\"kind\":\"none\","
		  "\"reason\":\"\",\"streams\":[0,0,0]}");
	agent_say(a, FRAME_COLLECTED, "{\"files\":0,\"bytes\":0}");
	rig_idle(r);
	assert_int_equal(node(a)->state, NODE_RUNNING);
	agent_exit(a, 0);
	rig_until(r, node(a)->state == NODE_EXITED);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_RELEASE], 0); /* neither its bytes nor its files have come */
	agent_hand_over(a);
	agent_wait(a, FRAME_RELEASE);
}

static void a_notice_is_taken_and_shown(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_say(a, FRAME_PREEMPT, "{\"time_ms\":1794859200000}");
	rig_until(r, node(a)->preempt_at_ms == 1794859200000);
	rig_idle(r);
	assert_int_equal(rig_events(r, "preempt"), 1);
}

#define STALLS "{\"name\":\"t\",\"command\":[\"true\"],\"stall\":\"50ms\"}"

static void a_silent_job_is_looked_at_and_what_was_found_is_kept(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, STALLS);
	a->inspect = true;
	agent_run(a);
	agent_wait(a, FRAME_INSPECT);
	agent_say(a, FRAME_INSPECTED, "{\"line\":\"T stopped\",\"report\":\"process 7\"}");
	rig_until(r, rig_events(r, "stalled") == 1);
	assert_int_equal(rig_events(r, "inspected"), 1);
	CLEANUP(freep) char *path = xasprintf("%s/stall/worker-0.txt", rig_run(r)->dir);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 4096);
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_non_null(strstr(buf_str(&text).p, "T stopped\nprocess 7\n"));
	agent_data(a, STREAM_OUT, 0, STR("it goes on\n"));
	rig_until(r, rig_events(r, "progress") == 1);
}

static void an_agent_that_cannot_look_is_not_asked(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, STALLS);
	agent_run(a);
	rig_until(r, rig_run(r)->core->stall.stalled);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_INSPECT], 0);
}

/* An agent that comes back says so there and sends no EXIT again. */
static void an_exit_in_a_hello_counts(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_hang_up(a);
	a->ended = true;
	agent_dial(a);
	agent_hello(a, NULL);
	rig_until(r, node(a)->state == NODE_EXITED);
	assert_int_equal(rig_events(r, "exited"), 1);
}

static void a_node_is_released_when_all_it_has_is_stored(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_exit(a, 0); /* "hello\n" is still to come */
	agent_say(a, FRAME_COLLECTED, "{\"files\":0,\"bytes\":0}");
	rig_until(r, node(a)->state == NODE_EXITED);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_RELEASE], 0);
	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	rig_until(r, a->acks[STREAM_OUT].stored == 6);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_RELEASE], 0); /* its metrics are not scanned for */
	agent_say(a, FRAME_METRICS, "{\"from\":0,\"to\":6,\"bad\":0,\"samples\":[]}");
	agent_wait(a, FRAME_RELEASE);
}

static void bytes_that_are_not_on_disk_keep_a_node(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	r->work_waits = true; /* a slow disk */
	agent_hand_over(a);
	rig_until(r, node(a)->state == NODE_EXITED && a->acks[STREAM_OUT].scanned == 6);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_RELEASE], 0);
	assert_int_equal(a->acks[STREAM_OUT].stored, 0);
	rig_let_work_go(r);
	agent_wait(a, FRAME_RELEASE);
}

static void bytes_that_are_missing_keep_a_node(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_say(a, FRAME_METRICS, "{\"from\":0,\"to\":6,\"bad\":0,\"samples\":[]}");
	agent_exit(a, 0);
	agent_say(a, FRAME_COLLECTED, "{\"files\":0,\"bytes\":0}");
	rig_until(r, node(a)->state == NODE_EXITED);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_RELEASE], 0);
	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	agent_wait(a, FRAME_RELEASE);
}

static void files_that_are_not_collected_keep_a_node(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	a->output = "";
	agent_exit(a, 0);
	rig_until(r, node(a)->state == NODE_EXITED);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_RELEASE], 0);
	agent_say(a, FRAME_COLLECTED, "{\"files\":0,\"bytes\":0}");
	agent_wait(a, FRAME_RELEASE);
}

static void a_run_whose_files_were_not_kept_has_failed(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	a->output = "";
	agent_exit(a, 0);
	agent_say(
		a, FRAME_COLLECTED,
		"{\"files\":0,\"bytes\":0,\"error\":\"keep 'm': No space left\",\"kind\":\"capacity\"}");
	agent_wait(a, FRAME_RELEASE);
	assert_int_equal(rig_stored(r,
				    "SELECT count(*) FROM run WHERE verdict = 2 AND cause_kind = 5 "
				    "AND cause_text LIKE '%: keep ''m'': No space left'"),
			 1);
	assert_int_equal(rig_events(r, "collect"), 1);
}

/* Such as a link that points outside. */
static void what_was_not_worth_keeping_is_only_a_line(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	a->output = "";
	agent_exit(a, 0);
	agent_say(a, FRAME_COLLECTED,
		  "{\"files\":0,\"bytes\":0,\"error\":\"1 link was not kept\"}");
	agent_wait(a, FRAME_RELEASE);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run WHERE verdict = 1"), 1);
	assert_int_equal(rig_events(r, "collect"), 1);
}

static void remove_logs(struct rig *r)
{
	struct err err = {0};

	if (file_remove_tree(rig_run(r)->logs_dir, &err) < 0)
		fail_msg("%s", err.msg);
}

#define LOST_ITS_LOGS                                                                              \
	"SELECT count(*) FROM run WHERE verdict = 2 AND cause_text LIKE "                          \
	"'% was lost: the logs of the run are missing: %'"

/* Rule: what a job does to its run's directory ends that run and nothing else. */
static void a_job_that_removes_its_logs_ends_its_run_only(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	remove_logs(r);
	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	for (int64_t until = rig_deadline(); !a->released;) {
		assert_true(rig_turn(r)); /* the master goes on */
		if (a->closed) {	  /* as an agent does */
			agent_hang_up(a);
			agent_hello(a, NULL);
		}
		if (rig_late(until))
			fail_msg("it is not released");
	}
	assert_int_equal(a->acks[STREAM_OUT].stored, 0);
	assert_int_equal(rig_stored(r, LOST_ITS_LOGS), 1);
	agent_hang_up(a);
	rig_until(r, !rig_run(r) || rig_run(r)->ended);
}

/* The agent of a run whose master may have one log open at a time. */
static struct rig_agent *running_with_one_log(struct rig *r)
{
	logfile_pool_free(r->m.logs);
	r->m.logs = logfile_pool_new(1);
	return running(r);
}

/* Rule: acknowledged bytes are synced (rig.c checks it) also where logs are closed in between. */
static void logs_that_take_turns_with_a_descriptor_are_whole(void **state)
{
	static const char *const texts[] = {"out\n", "err\n"};
	static const enum stream streams[] = {STREAM_OUT, STREAM_ERR};
	struct rig *r = *state;
	struct rig_agent *a = running_with_one_log(r);
	CLEANUP(freep) char *err_log = xasprintf("%s/%s.err.log", rig_run(r)->logs_dir, a->name);
	CLEANUP(buf_release) struct buf out = {0}, err = {0};

	for (uint64_t at = 0; at < 12; at += 4)
		for (int i = 0; i < 2; i++) {
			agent_data(a, streams[i], at, str_from(texts[i]));
			rig_until(r, a->acks[streams[i]].stored == at + 4);
		}
	buf_init(&out, 100);
	buf_init(&err, 100);
	assert_int_equal(file_read(a->log, &out, NULL), 0);
	assert_int_equal(file_read(err_log, &err, NULL), 0);
	assert_true(str_eq(buf_str(&out), STR("out\nout\nout\n")));
	assert_true(str_eq(buf_str(&err), STR("err\nerr\nerr\n")));
}

static void a_log_that_was_removed_while_it_was_closed_ends_the_run(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running_with_one_log(r);

	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	rig_until(r, a->acks[STREAM_OUT].stored == 6);
	agent_data(a, STREAM_ERR, 0, STR("x"));
	rig_until(r, a->acks[STREAM_ERR].stored == 1);
	assert_int_equal(unlink(a->log), 0);
	agent_data(a, STREAM_OUT, 6, STR("more\n"));
	agent_wait(a, FRAME_RELEASE);
	assert_int_equal(a->acks[STREAM_OUT].stored, 6);
	assert_int_equal(rig_stored(r, LOST_ITS_LOGS), 1);
}

/* As on a full disk: it sends the same bytes again later. */
static void output_waits_while_all_open_logs_are_being_synced(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running_with_one_log(r);

	r->work_waits = true; /* a slow disk */
	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	agent_data(a, STREAM_ERR, 0, STR("x"));
	rig_until(r, node(a)->no_room);
	rig_let_work_go(r);
	agent_wait_closed(a);
	assert_int_equal(a->acks[STREAM_OUT].stored, 6);
	assert_int_equal(a->acks[STREAM_ERR].stored, 0);
	agent_hang_up(a);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	agent_data(a, STREAM_ERR, 0, STR("x"));
	rig_until(r, a->acks[STREAM_ERR].stored == 1 && !node(a)->no_room);
}

static void an_agent_whose_logs_are_gone_is_released(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_hang_up(a);
	rig_until(r, !node(a)->connected);
	remove_logs(r);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_RELEASE);
	assert_int_equal(rig_stored(r, LOST_ITS_LOGS), 1);
}

static void a_released_agent_that_comes_back_is_released_again(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_exit(a, 1);
	rig_run(r)->watchers++; /* somebody reads it, so it stays in memory */
	agent_finish(a);
	rig_until(r, rig_run(r)->ended);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_RELEASE);
	assert_int_equal(a->seen[FRAME_INPUTS] + a->seen[FRAME_START], 0);
	agent_hang_up(a);
	rig_run(r)->watchers--;
}

static void a_cancel_reaches_the_agents(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	rig_cancel(r, false);
	agent_wait(a, FRAME_SIGNAL);
	assert_non_null(strstr(a->last[FRAME_SIGNAL], "false"));
	assert_int_equal(rig_stored(r, "SELECT stop_sent FROM node"), 1);
	a->seen[FRAME_SIGNAL] = 0;
	rig_cancel(r, true);
	agent_wait(a, FRAME_SIGNAL);
	assert_non_null(strstr(a->last[FRAME_SIGNAL], "true"));
	/* One that was away hears of it when it comes. */
	agent_hang_up(a);
	rig_until(r, !node(a)->connected);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_SIGNAL);
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_CANCELLED);
}

static void a_node_that_cannot_be_made_ready_fails_the_run(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	agent_say(a, FRAME_READY,
		  "{\"ok\":false,\"kind\":\"not_found\",\"reason\":\"no such command\"}");
	agent_wait(a, FRAME_RELEASE);
	agent_hang_up(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_FAILED);
	assert_int_equal(rig_stored(r, "SELECT cause_kind FROM run"), ERR_NOT_FOUND);
	assert_int_equal(a->seen[FRAME_START], 0);
}

static void nobody_starts_before_all_are_ready(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);

	rig_submit(r, RIG_JOB_OF_TWO);
	rig_until(r, rig_run(r)->core->phase == RUN_GATHERING);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	agent_say(a, FRAME_READY, "{\"ok\":true}");
	rig_until(r, node(a)->state == NODE_READY);
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_START], 0);
	agent_hello(b, NULL);
	agent_wait(b, FRAME_INPUTS);
	agent_say(b, FRAME_READY, "{\"ok\":true}");
	agent_wait(b, FRAME_START);
	agent_wait(a, FRAME_START);
}

static void on_a_full_disk_bytes_wait_and_nothing_is_acknowledged(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = running(r);

	agent_data(a, STREAM_OUT, 0, STR("abc"));
	rig_until(r, a->acks[STREAM_OUT].stored == 3);
	r->disk_tight = true;
	a->seen[FRAME_ACK] = 0;
	agent_data(a, STREAM_OUT, 3, STR("def"));
	agent_say(a, FRAME_METRICS, "{\"from\":0,\"to\":6,\"bad\":0,\"samples\":[]}");
	rig_until(r, node(a)->no_room);
	r->disk_tight = false;
	agent_data(a, STREAM_OUT, 3, STR("def")); /* not on this connection */
	rig_idle(r);
	assert_int_equal(a->seen[FRAME_ACK], 0);
	assert_int_equal(node(a)->state, NODE_RUNNING);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	assert_int_equal(a->acks[STREAM_OUT].stored, 3);
	assert_int_equal(a->acks[STREAM_OUT].scanned, 0);
	agent_data(a, STREAM_OUT, 3, STR("lo\n"));
	rig_until(r, !node(a)->no_room);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(the_last_word_of_a_node_is_remembered_when_its_connection_is_over),
		CASE(a_silent_node_is_noticed_when_its_time_is_over),
		CASE(an_earlier_incarnation_is_sent_away_and_the_node_stays_connected),
		CASE(an_agent_with_a_wrong_token_is_refused_and_its_node_hears_nothing),
		CASE(a_node_without_a_planned_address_has_the_one_it_says),
		CASE(a_hello_with_an_address_that_is_none_is_refused),
		CASE(bytes_are_acknowledged_when_they_are_synced),
		CASE(a_log_that_cannot_be_synced_ends_the_master),
		CASE(bytes_that_leave_a_hole_are_refused),
		CASE(a_stream_that_does_not_exist_ends_the_connection),
		CASE(a_figure_counts_once),
		CASE(a_second_hello_of_a_node_replaces_the_first_connection),
		CASE(a_connection_says_hello_once),
		CASE(an_exit_that_is_reported_twice_counts_once),
		CASE(an_exit_of_another_attempt_counts_for_nothing),
		CASE(an_exit_of_another_attempt_does_not_hide_the_right_one),
		CASE(a_notice_is_taken_and_shown),
		CASE(a_silent_job_is_looked_at_and_what_was_found_is_kept),
		CASE(an_agent_that_cannot_look_is_not_asked),
		CASE(an_exit_in_a_hello_counts),
		CASE(a_node_is_released_when_all_it_has_is_stored),
		CASE(bytes_that_are_not_on_disk_keep_a_node),
		CASE(bytes_that_are_missing_keep_a_node),
		CASE(files_that_are_not_collected_keep_a_node),
		CASE(a_run_whose_files_were_not_kept_has_failed),
		CASE(a_job_that_removes_its_logs_ends_its_run_only),
		CASE(logs_that_take_turns_with_a_descriptor_are_whole),
		CASE(a_log_that_was_removed_while_it_was_closed_ends_the_run),
		CASE(output_waits_while_all_open_logs_are_being_synced),
		CASE(an_agent_whose_logs_are_gone_is_released),
		CASE(what_was_not_worth_keeping_is_only_a_line),
		CASE(a_released_agent_that_comes_back_is_released_again),
		CASE(a_cancel_reaches_the_agents),
		CASE(a_node_that_cannot_be_made_ready_fails_the_run),
		CASE(nobody_starts_before_all_are_ready),
		CASE(on_a_full_disk_bytes_wait_and_nothing_is_acknowledged),
	};

	return cmocka_run_group_tests_name("master: agent frames", tests, NULL, NULL);
}
