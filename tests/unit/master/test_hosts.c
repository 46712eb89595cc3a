/* The master and a host that says the right thing or the wrong thing. */
#include "rig.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/hosts/host_table.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "master/api/auth.h"
#include "master/api/tokens.h"
#include "master/hosts.h"
#include "master/live_run.h"

#define WRONG_TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HOUR_MS (60 * 60 * 1000)

struct join {
	const char *name, *id, *token, *machine, *boot_id;
	int proto;
	int64_t ahead_ms;
};

static void right_token(struct rig *r, char out[static TOKENS_TEXT])
{
	assert_int_equal(tokens_join(r->m.auth->tokens, out, NULL), 0);
}

static void say_join(struct rig_agent *a, const struct join *j)
{
	char token[TOKENS_TEXT], text[1024];

	right_token(a->r, token);
	snprintf(
		text, sizeof(text),
		"{\"proto\":%d,\"id\":\"%s\",\"name\":\"%s\",\"token\":\"%s\",\"boot_id\":\"%s\",\"machine\":\"%s\","
		"\"version\":\"1\",\"address\":\"10.0.0.9\",\"time_ms\":%lld,\"cpus\":2,\"gpus\":1,"
		"\"memory\":1024,\"labels\":{\"gpu\":\"x\"}}",
		j->proto ? j->proto - 1 : 1, j->id ? j->id : "i", j->name ? j->name : "a",
		j->token ? j->token : token, j->boot_id ? j->boot_id : "b",
		j->machine ? j->machine : "m", (long long)(clock_wall_ms() + j->ahead_ms));
	agent_dial(a);
	agent_say(a, FRAME_JOIN, text);
}

static void join(struct rig_agent *a, const struct join *j)
{
	say_join(a, j);
	agent_wait(a, FRAME_JOINED);
	agent_say(a, FRAME_HOST_NODES, "{\"nodes\":[]}");
}

static void assert_refused(struct rig_agent *a, const char *kind, const char *words)
{
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_JOINED], 0);
	assert_int_equal(a->seen[FRAME_REFUSE], 1);
	assert_non_null(strstr(a->last[FRAME_REFUSE], kind));
	assert_non_null(strstr(a->last[FRAME_REFUSE], words));
}

/* "a free, b gone" */
static const char *hosts_text(struct rig *r)
{
	static char text[256];
	struct arena *a = arena_new();
	const struct doc *l = hosts_list(r->m.hosts, a);

	text[0] = '\0';
	for (size_t i = 0; i < l->array.n; i++) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%s %s", i ? ", " : "",
			 doc_str(l->array.v[i], "name", STR("")).p,
			 doc_str(l->array.v[i], "state", STR("")).p);
	}
	arena_free(a);
	return text;
}

static bool hosts_are(struct rig *r, const char *text)
{
	return strcmp(hosts_text(r), text) == 0;
}

static void a_host_joins_and_leaves(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);

	join(a, &(struct join){.name = "a"});
	join(b, &(struct join){.name = "b", .id = "j"});
	rig_until(r, hosts_are(r, "a free, b free"));
	agent_hang_up(a);
	rig_until(r, hosts_are(r, "a gone, b free"));
	assert_true(hosts_connected(r->m.hosts));
	agent_hang_up(b);
	rig_until(r, hosts_are(r, "a gone, b gone"));
	assert_false(hosts_connected(r->m.hosts)); /* so that the master may leave */
	assert_int_equal(rig_http(r, "GET", "/api/v1/hosts", ""), 200);
}

static void a_host_with_a_token_that_is_not_for_hosts_is_refused(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	say_join(a, &(struct join){.token = WRONG_TOKEN});
	assert_refused(a, "\"denied\"", "the token is wrong, revoked or too old");
	say_join(a, &(struct join){.token = ""});
	assert_refused(a, "\"denied\"", "regatta token new --scope join");
	assert_string_equal(hosts_text(r), "");
}

static void another_protocol_and_a_wrong_clock_are_refused(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	say_join(a, &(struct join){.proto = 1}); /* 0: the version before */
	assert_refused(a, "\"unavailable\"",
		       "this master speaks version 1; install its version of regatta");
	say_join(a, &(struct join){.ahead_ms = HOUR_MS});
	assert_refused(a, "\"invalid\"", "ahead of the master's: set it");
	say_join(a, &(struct join){.ahead_ms = -HOUR_MS});
	assert_refused(a, "\"invalid\"", "behind the master's: set it");
	assert_string_equal(hosts_text(r), "");
	join(a, &(struct join){.ahead_ms = 60000});
	rig_until(r, hosts_are(r, "a free"));
}

static void a_name_belongs_to_the_host_that_has_it(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);

	join(a, &(struct join){.id = "first"});
	say_join(b, &(struct join){.id = "second"});
	assert_refused(b, "\"conflict\"", "another host named 'a' has joined from 10.0.0.9");
	/* The same host dials again: its old connection is closed. */
	join(b, &(struct join){.id = "first"});
	agent_wait_closed(a);
	rig_until(r, hosts_are(r, "a free"));
}

/* A machine made from an image in which a host's directory was. */
static void a_copy_of_a_host_on_another_machine_may_not_join(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);

	join(a, &(struct join){.id = "same"});
	say_join(b, &(struct join){.id = "same", .machine = "other"});
	assert_refused(b, "\"conflict\"", "is a copy of that of 'a' on another machine (10.0.0.9)");
	/* /etc/machine-id was in the image, too. */
	say_join(b, &(struct join){.id = "same", .boot_id = "other"});
	assert_refused(b, "\"conflict\"", "start it with an empty directory (--dir)");
	rig_until(r, hosts_are(r, "a free"));
	/* The directory has moved, or the machine has booted. */
	agent_hang_up(a);
	rig_until(r, hosts_are(r, "a gone"));
	join(b, &(struct join){.id = "same", .machine = "other", .boot_id = "other"});
	rig_until(r, hosts_are(r, "a free"));
}

/* Nobody but the host itself answers for its nodes, also when it is away. */
static void a_copy_of_a_host_that_has_nodes_may_not_take_its_place(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);
	struct host_node node = {"run", "n", 1};

	join(a, &(struct join){.id = "same"});
	rig_until(r, hosts_are(r, "a free"));
	assert_int_equal(host_table_reserve(r->m.services.hosts, &node, 1,
					    &(struct host_want){.slots = 1}, NULL),
			 0);
	agent_hang_up(a);
	rig_until(r, hosts_are(r, "a gone"));
	say_join(b, &(struct join){.id = "same", .machine = "other", .boot_id = "other"});
	assert_refused(b, "\"conflict\"", "is a copy of that of 'a'");
	/* It has booted: it says itself that the node is not there any more. */
	join(b, &(struct join){.id = "same", .boot_id = "other"});
	rig_until(r, !hosts_are(r, "a gone"));
}

/* A copied directory: without a refusal both would dial again for ever. */
static void one_of_two_daemons_with_one_identity_is_sent_away(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);

	join(a, &(struct join){.id = "same"});
	join(b, &(struct join){.id = "same"});
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_REFUSE], 1);
	assert_non_null(strstr(a->last[FRAME_REFUSE], "\"conflict\""));
	assert_non_null(strstr(a->last[FRAME_REFUSE], "has joined as 'a' with a copy"));
	rig_until(r, hosts_are(r, "a free"));
	assert_int_equal(b->seen[FRAME_REFUSE], 0);
}

/* A node is fenced only when its host was silent as well. */
static void every_word_of_a_host_is_heard(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	struct host_table *t = r->m.services.hosts;
	struct host_node node = {"r", "n", 1};
	char name[HOST_NAME_MAX_LEN];
	int64_t joined, heard;

	join(a, &(struct join){0});
	rig_until(r, hosts_are(r, "a free"));
	assert_int_equal(host_table_reserve(t, &node, 1, &(struct host_want){.slots = 1}, NULL), 0);
	assert_int_equal(host_table_place(t, &node, name, &joined), HOST_CONNECTED);
	while (clock_boot_ms() <= joined + 1)
		;
	agent_say(a, FRAME_PING, "{}");
	agent_wait(a, FRAME_PONG);
	assert_int_equal(host_table_place(t, &node, name, &heard), HOST_CONNECTED);
	assert_true(heard > joined);
}

static void each_says_only_what_is_its_own(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	agent_dial(a);
	agent_say(a, FRAME_HOST_NODES, "{\"nodes\":[]}");
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "host_nodes: sent before the hello"));
	join(a, &(struct join){0});
	agent_say(a, FRAME_READY, "{\"ok\":true}");
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "ready: not from a host"));
	say_join(a, &(struct join){.name = "../../etc"});
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "'name' is not a valid host name"));
	agent_dial(a);
	agent_say(a, FRAME_HOST_ASK, "{}");
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "only a master sends this frame"));
}

/* ---- questions ---- */

struct question {
	struct host_table *t;
	struct host_ask ask;
	bool over;
};

static void *ask(void *arg)
{
	struct question *q = arg;
	struct deadline d = deadline_in(RIG_WAIT_MS, NULL);

	host_table_ask(q->t, &q->ask, 1, &d);
	__atomic_store_n(&q->over, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool is_over(struct question *q)
{
	return __atomic_load_n(&q->over, __ATOMIC_SEQ_CST);
}

static struct question question_of(struct rig *r)
{
	struct host_table *t = r->m.services.hosts;
	struct host_node node = {"r", "n", 1};

	assert_int_equal(host_table_reserve(t, &node, 1, &(struct host_want){.slots = 1}, NULL), 0);
	return (struct question){.t = t,
				 .ask = {.op = HOST_CREATE,
					 .node = node,
					 .token = "secret",
					 .id = "",
					 .limit_ms = 1000}};
}

static void a_question_goes_out_and_its_answer_comes_back(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	pthread_t thread;

	join(a, &(struct join){0});
	rig_until(r, hosts_are(r, "a free"));
	struct question q = question_of(r);

	assert_int_equal(pthread_create(&thread, NULL, ask, &q), 0);
	agent_wait(a, FRAME_HOST_ASK);
	assert_non_null(strstr(a->last[FRAME_HOST_ASK], "\"op\":\"create\",\"run\":\"r\""));
	assert_non_null(strstr(a->last[FRAME_HOST_ASK], "\"token\":\"secret\""));
	agent_say(a, FRAME_HOST_ANSWER, "{\"no\":9999,\"outcome\":\"refused\"}"); /* to nobody */
	agent_say(a, FRAME_HOST_ANSWER,
		  "{\"no\":1,\"outcome\":\"held\",\"kind\":\"io\",\"text\":\"why\",\"id\":\"5\"}");
	rig_until(r, is_over(&q));
	pthread_join(thread, NULL);
	assert_int_equal(q.ask.outcome, OUTCOME_HELD);
	assert_int_equal(q.ask.err.kind, ERR_IO);
	assert_string_equal(q.ask.err.msg, "why");
	assert_string_equal(q.ask.ret_id, "5");
}

static void the_token_of_a_node_goes_out_with_its_create_only(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	pthread_t thread;

	join(a, &(struct join){0});
	rig_until(r, hosts_are(r, "a free"));
	struct question q = question_of(r);

	q.ask.op = HOST_OBSERVE;
	assert_int_equal(pthread_create(&thread, NULL, ask, &q), 0);
	agent_wait(a, FRAME_HOST_ASK);
	assert_non_null(strstr(a->last[FRAME_HOST_ASK], "\"op\":\"observe\""));
	assert_null(strstr(a->last[FRAME_HOST_ASK], "secret"));
	agent_say(a, FRAME_HOST_ANSWER, "{\"no\":1,\"outcome\":\"done\"}");
	rig_until(r, is_over(&q));
	pthread_join(thread, NULL);
}

/* It would wait for up to half a minute otherwise. */
static void a_run_that_waits_for_capacity_is_tried_when_a_host_is_free(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	struct live_run *lr;

	r->creating = OUTCOME_REFUSED;
	lr = rig_submit(r, RIG_JOB);
	struct core_resource *res = &lr->core->resources[0];

	rig_until(r, res->state == RES_INTENT && res->retry_at_ms && !res->asked);
	r->creating = OUTCOME_DONE;
	res->why_kind = ERR_CAPACITY;
	res->retry_at_ms += HOUR_MS;
	join(a, &(struct join){0});
	rig_until(r, res->state == RES_LIVE);
}

/* A name that is none is not looked for: it would be part of a path. */
static void what_is_no_name_of_a_host_is_not_forgotten(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	static const char *const names[] = {"", "../a", "a/../a", "a b", ".."};

	join(a, &(struct join){.name = "a"});
	rig_until(r, hosts_are(r, "a free"));
	agent_hang_up(a);
	rig_until(r, hosts_are(r, "a gone"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct err err = {0};

		assert_int_equal(hosts_forget(r->m.hosts, str_from(names[i]), &err), -1);
		assert_int_equal(err.kind, ERR_NOT_FOUND);
		assert_string_equal(err.msg, "no host has joined with that name");
	}
	assert_int_equal(hosts_forget(r->m.hosts, STR("a"), NULL), 0);
	rig_until(r, hosts_are(r, ""));
}

static const char *host_run(struct rig *r, struct arena *a)
{
	const struct doc *l = hosts_list(r->m.hosts, a);

	assert_int_equal(l->array.n, 1);
	return doc_str(l->array.v[0], "run", STR("-")).p;
}

/* The master died when the end of the run was stored, and its reservation was not removed yet. */
static void the_reservation_of_a_run_that_has_ended_is_not_taken_up(void **state)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);
	CLEANUP(freep) char *dir = path_join(r->home, LAYOUT_HOSTS);
	CLEANUP(freep) char *path = path_join(dir, "held.json");
	CLEANUP(freep)
	char *held = xasprintf(
		"[{\"host\":\"a\",\"run\":\"%s\",\"node\":\"worker-0\",\"incarnation\":1}]\n",
		lr->row.id);

	rig_until(r, lr->core->resources[0].state == RES_LIVE);
	rig_crash(r);
	assert_int_equal(file_mkdir_p(dir, 0700, NULL), 0);
	assert_int_equal(file_write_atomic(path, str_from(held), 0600, false, NULL), 0);
	assert_true(rig_start(r));
	assert_string_equal(host_run(r, mem), rig_run(r)->row.id);
	rig_cancel(r, true);
	rig_until(r, !rig_run(r) || rig_run(r)->ended);
	rig_crash(r);
	/* Also if that end is not dealt with yet. */
	for (int k = 0; k < 2; k++) {
		assert_int_equal(file_write_atomic(path, str_from(held), 0600, false, NULL), 0);
		assert_true(rig_start(r));
		assert_string_equal(hosts_text(r), "");
		rig_crash(r);
		rig_damage(r, "UPDATE run SET ended_ms = 0");
	}
}

static void a_host_that_leaves_owes_no_answer(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	pthread_t thread;

	join(a, &(struct join){0});
	rig_until(r, hosts_are(r, "a free"));
	struct question q = question_of(r);

	assert_int_equal(pthread_create(&thread, NULL, ask, &q), 0);
	agent_wait(a, FRAME_HOST_ASK);
	agent_hang_up(a);
	rig_until(r, is_over(&q));
	pthread_join(thread, NULL);
	assert_int_equal(q.ask.outcome, OUTCOME_UNSURE);
	assert_string_equal(q.ask.err.msg, "host 'a' left before it answered");
}

static void a_host_may_say_more_than_a_stranger(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	CLEANUP(buf_release) struct buf text = {0};

	join(a, &(struct join){0});
	buf_init(&text, 64 * 1024);
	buf_addz(&text, "{\"nodes\":[");
	for (int i = 0; text.n <= MESSAGE_HELLO_MAX; i++)
		buf_printf(&text, "%s{\"run\":\"r%d\",\"node\":\"worker-0\",\"incarnation\":1}",
			   i ? "," : "", i);
	buf_addz(&text, "]}");
	agent_say(a, FRAME_HOST_NODES, text.p);
	agent_wait(a, FRAME_HOST_ASK); /* to remove what no run has */
	assert_string_equal(hosts_text(r), "a busy");
}

/* 64 are for the master itself; the next host is let in when another has left. */
static void hosts_leave_descriptors_for_others(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0), *b = rig_agent(r, 1);
	struct rlimit before;

	join(a, &(struct join){0});
	rig_until(r, hosts_are(r, "a free"));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){65, before.rlim_max}), 0);
	say_join(b, &(struct join){.name = "b", .id = "j"});
	assert_refused(b, "\"quota\"",
		       "0 nodes and 2 hosts need 66 open files, and the master may have 65");
	agent_hang_up(a);
	rig_until(r, hosts_are(r, "a gone"));
	join(b, &(struct join){.name = "b", .id = "j"});
	rig_until(r, hosts_are(r, "a gone, b free"));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_make, rig_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_host_joins_and_leaves),
		TEST(a_host_with_a_token_that_is_not_for_hosts_is_refused),
		TEST(another_protocol_and_a_wrong_clock_are_refused),
		TEST(a_name_belongs_to_the_host_that_has_it),
		TEST(a_copy_of_a_host_on_another_machine_may_not_join),
		TEST(a_copy_of_a_host_that_has_nodes_may_not_take_its_place),
		TEST(one_of_two_daemons_with_one_identity_is_sent_away),
		TEST(every_word_of_a_host_is_heard),
		TEST(each_says_only_what_is_its_own),
		TEST(a_question_goes_out_and_its_answer_comes_back),
		TEST(a_host_that_leaves_owes_no_answer),
		TEST(a_host_may_say_more_than_a_stranger),
		TEST(hosts_leave_descriptors_for_others),
		TEST(what_is_no_name_of_a_host_is_not_forgotten),
		TEST(the_reservation_of_a_run_that_has_ended_is_not_taken_up),
		TEST(the_token_of_a_node_goes_out_with_its_create_only),
		TEST(a_run_that_waits_for_capacity_is_tried_when_a_host_is_free),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
