/* Payloads of the link: strict about what is needed, blind to what is not known. */
#include "unit.h"

#include <string.h>

#include "agent/message.h"
#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"

static int setup(void **state)
{
	*state = arena_new();
	return 0;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static void a_welcome_says_where_each_stream_stands(void **state)
{
	struct err err = {0};
	struct msg_welcome m;

	assert_int_equal(
		msg_welcome(
			STR("{\"lease_ms\":5,\"acks\":[1,2,3],\"scanned\":[4,5,6],\"more\":{}}"),
			*state, &m, &err),
		0);
	assert_int_equal(m.lease_ms, 5);
	assert_int_equal(m.acks[2], 3);
	assert_int_equal(m.scanned[0], 4);
}

static void inputs_have_defaults_for_all_but_the_command(void **state)
{
	struct err err = {0};
	struct msg_inputs m;

	assert_int_equal(msg_inputs(STR("{\"argv0\":\"true\"}"), *state, &m, &err), 0);
	assert_null(m.source);
	assert_int_equal(m.ndata + m.nmetrics + m.nkeep, 0);
	assert_string_equal(m.cwd, "");
	assert_string_equal(m.output_dir, "");
	assert_null(m.metric_prefix);
	assert_int_equal(m.port, 0);
	assert_int_equal(m.sample_ms, 0);
}

static void inputs_are_taken_whole(void **state)
{
	struct err err = {0};
	struct msg_inputs m;

	assert_int_equal(
		msg_inputs(
			STR("{\"source\":{\"path\":\"/s\",\"sha256\":\"ab\"},\"data\":[{\"src\":\"/d\",\"path\":\"x\",\"shard_index\":1,\"shard_count\":3},{\"src\":\"/e\",\"path\":\"y\"}],\"cwd\":\"/w\",\"argv0\":\"a\",\"path\":\"/bin\",\"address\":\"127.0.0.1\",\"port\":80,\"memory\":9,\"metrics\":[{\"name\":\"l\",\"pattern\":\"p\"},{\"pattern\":\"q\"}],\"metric_prefix\":\"##\",\"sample_ms\":7,\"keep\":[\"a\",\"b\"],\"output_dir\":\"/o\"}"),
			*state, &m, &err),
		0);
	assert_string_equal(m.source, "/s");
	assert_int_equal(m.data[0].shard_count, 3);
	assert_int_equal(m.data[1].shard_count, 1);
	assert_int_equal(m.port, 80);
	assert_int_equal(m.memory, 9);
	assert_string_equal(m.metrics[0].name, "l");
	assert_null(m.metrics[1].name);
	assert_string_equal(m.keep[1], "b");
	assert_string_equal(m.metric_prefix, "##");
}

static void a_start_has_a_command_and_an_environment(void **state)
{
	struct err err = {0};
	struct msg_start m;

	assert_int_equal(
		msg_start(
			STR("{\"attempt\":2,\"argv\":[\"a\",\"\",\"c\"],\"env\":{\"A\":\"1\",\"B\":\"x=y\"},\"grace_ms\":3,\"cwd\":\"/w\",\"port\":null,\"deadline_ms\":11,\"hostfile\":\"h\",\"machinefile\":\"m\"}"),
			*state, &m, &err),
		0);
	assert_int_equal(m.attempt, 2);
	assert_string_equal(m.argv[2], "c");
	assert_null(m.argv[3]);
	assert_string_equal(m.env[1], "B=x=y");
	assert_null(m.env[2]);
	assert_int_equal(m.deadline_ms, 11);
	assert_string_equal(m.hostfile, "h");
	assert_string_equal(m.machinefile, "m");
	assert_int_equal(m.memory, 0);
}

static void what_is_wrong_is_named(void **state)
{
	static const struct {
		char type; /* w r i s g */
		const char *json, *says;
	} bad[] = {
		{'w', "", "JSON"},
		{'w', "[]", "object"},
		{'w', "{\"acks\":[0,0,0],\"scanned\":[0,0,0]}", "lease_ms"},
		{'w', "{\"lease_ms\":-1,\"acks\":[0,0,0],\"scanned\":[0,0,0]}", "lease_ms"},
		{'w', "{\"lease_ms\":1,\"acks\":[0,0],\"scanned\":[0,0,0]}", "acks"},
		{'w', "{\"lease_ms\":1,\"acks\":[0,0,-1],\"scanned\":[0,0,0]}", "acks"},
		{'w', "{\"lease_ms\":1,\"acks\":[0,0,0],\"scanned\":[0,0,\"0\"]}", "scanned"},
		{'r', "{\"kind\":5}", "kind"},
		{'r', "{\"kind\":\"denied\",\"reason\":5}", "reason"},
		{'i', "{}", "argv0"},
		{'i', "{\"argv0\":\"a\\u0000b\"}", "argv0"},
		{'i', "{\"argv0\":\"a\",\"source\":{\"path\":\"x\"}}", "sha256"},
		{'i', "{\"argv0\":\"a\",\"data\":[{\"src\":\"x\"}]}", "data[0]"},
		{'i', "{\"argv0\":\"a\",\"data\":[7]}", "data[0]"},
		{'i',
		 "{\"argv0\":\"a\",\"data\":[{\"src\":\"x\",\"path\":\"y\",\"shard_index\":2,\"shard_count\":2}]}",
		 "shard"},
		{'i', "{\"argv0\":\"a\",\"metrics\":[{\"name\":\"x\"}]}", "metrics[0]"},
		{'i', "{\"argv0\":\"a\",\"port\":65536}", "port"},
		{'i', "{\"argv0\":\"a\",\"keep\":\"x\"}", "keep"},
		{'i', "{\"argv0\":\"a\",\"keep\":[1]}", "keep"},
		{'s', "{\"argv\":[\"a\"],\"env\":{},\"grace_ms\":1}", "attempt"},
		{'s', "{\"attempt\":0,\"argv\":[\"a\"],\"env\":{},\"grace_ms\":1}", "attempt"},
		{'s', "{\"attempt\":1,\"argv\":[],\"env\":{},\"grace_ms\":1}", "argv"},
		{'s', "{\"attempt\":1,\"argv\":[\"a\"],\"grace_ms\":1}", "env"},
		{'s', "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{\"A\":1},\"grace_ms\":1}", "env"},
		{'s', "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{\"\":\"x\"},\"grace_ms\":1}",
		 "env"},
		{'s', "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{\"A=B\":\"x\"},\"grace_ms\":1}",
		 "env"},
		{'s', "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{}}", "grace_ms"},
		{'s', "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{},\"grace_ms\":1,\"memory\":-1}",
		 "memory"},
		{'g', "{\"hurry\":\"yes\"}", "hurry"},
		{'g', "x", "JSON"},
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct str json = str_from(bad[i].json);
		struct err err = {0};
		struct msg_welcome w;
		struct msg_refuse r;
		struct msg_inputs in;
		struct msg_start s;
		bool hurry;
		int rc = bad[i].type == 'w'   ? msg_welcome(json, *state, &w, &err)
			 : bad[i].type == 'r' ? msg_refuse(json, *state, &r, &err)
			 : bad[i].type == 'i' ? msg_inputs(json, *state, &in, &err)
			 : bad[i].type == 's' ? msg_start(json, *state, &s, &err)
					      : msg_signal(json, *state, &hurry, &err);

		if (rc != -1 || err.kind != ERR_PROTOCOL || !strstr(err.msg, bad[i].says))
			fail_msg("'%s' gave %d, '%s'", bad[i].json, rc, err.msg);
	}
}

static void a_goodbye_needs_no_reason(void **state)
{
	assert_string_equal(msg_bye(STR("{\"reason\":\"x\"}"), *state), "x");
	assert_string_equal(msg_bye(STR("{}"), *state), "");
	assert_string_equal(msg_bye(STR("not json"), *state), "");
}

static void a_signal_hurries_only_if_it_says_so(void **state)
{
	struct err err = {0};
	bool hurry = true;

	assert_int_equal(msg_signal(STR("{}"), *state, &hurry, &err), 0);
	assert_false(hurry);
	assert_int_equal(msg_signal(STR("{\"hurry\":true}"), *state, &hurry, &err), 0);
	assert_true(hurry);
}

static void a_refusal_of_a_kind_nobody_knows_is_no_reason_to_leave(void **state)
{
	struct err err = {0};
	struct msg_refuse m;

	assert_int_equal(msg_refuse(STR("{\"kind\":\"whatever\"}"), *state, &m, &err), 0);
	assert_int_equal(m.kind, ERR_NONE);
	assert_string_equal(m.reason, "");
}

static void messages_out_have_their_shapes(void **state)
{
	struct exit_report e = {
		.attempt = 1, .code = -1, .signal = 9, .kind = ERR_TIMEOUT, .streams = {1, 2, 3}};
	struct msg_hello h = {.run = "r",
			      .node = "n",
			      .token = "t",
			      .boot_id = "b",
			      .pid = 5,
			      .attempt = 1,
			      .holds = HOLDS_STARTED,
			      .exit = &e};
	struct err none = {0}, why = {.kind = ERR_CONFLICT, .msg = "taken"};
	struct buf b;

	(void)state;
	buf_init(&b, 10000);
	exit_add_reason(&e, "one");
	exit_add_reason(&e, "two");
	e.gaps[e.ngaps++] = (struct gap){STREAM_ERR, 7, 8};
	msg_put_exit(&b, &e);
	assert_string_equal(
		b.p,
		"{\"attempt\":1,\"code\":-1,\"signal\":9,\"oom\":false,\"kind\":\"timeout\",\"reason\":\"one; "
		"two\",\"streams\":[1,2,3],\"gaps\":[{\"stream\":\"err\",\"offset\":7,\"bytes\":8}]}");
	buf_reset(&b);
	e.ngaps = 0;
	msg_put_hello(&b, &h);
	assert_non_null(strstr(
		b.p,
		"{\"proto\":1,\"run\":\"r\",\"node\":\"n\",\"token\":\"t\",\"boot_id\":\"b\",\"pid\":5,\"version\":"));
	assert_non_null(strstr(
		b.p,
		"\"attempt\":1,\"holds\":\"started\",\"streams\":[0,0,0],\"exit\":{\"attempt\":1,"));
	buf_reset(&b);
	msg_put_ready(&b, &none);
	msg_put_ready(&b, &why);
	msg_put_started(&b, 1, 2);
	msg_put_serving(&b, 1);
	msg_put_collected(&b, 1, 2, NULL);
	msg_put_collected(&b, 0, 0, "no");
	msg_put_bye(&b, "end");
	assert_string_equal(
		b.p,
		"{\"ok\":true}{\"ok\":false,\"kind\":\"conflict\",\"reason\":\"taken\"}{\"attempt\":1,\"pid\":2}{\"attempt\":1}{\"files\":1,\"bytes\":2}{\"files\":0,\"bytes\":0,\"error\":\"no\"}{\"reason\":\"end\"}");
	buf_release(&b);
}

static void a_reason_that_is_too_long_is_cut(void **state)
{
	struct exit_report e = {0};

	(void)state;
	for (int i = 0; i < 50; i++)
		exit_add_reason(&e, "a reason");
	assert_int_equal(strlen(e.reason), MESSAGE_REASON - 1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(a_welcome_says_where_each_stream_stands),
		CASE(inputs_have_defaults_for_all_but_the_command),
		CASE(inputs_are_taken_whole),
		CASE(a_start_has_a_command_and_an_environment),
		CASE(what_is_wrong_is_named),
		CASE(a_goodbye_needs_no_reason),
		CASE(a_signal_hurries_only_if_it_says_so),
		CASE(a_refusal_of_a_kind_nobody_knows_is_no_reason_to_leave),
		CASE(messages_out_have_their_shapes),
		CASE(a_reason_that_is_too_long_is_cut),
	};

	return cmocka_run_group_tests_name("agent: message", tests, NULL, NULL);
}
