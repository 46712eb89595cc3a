/* An agent that does not know which node it is, and what it makes of the answer. */
#include "unit.h"

#include "fake_master.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/enrol_config.h"
#include "base/path.h"
#include "link/layout.h"
#include "link/message.h"

#define ANSWER "{\"node\":\"trainer-3\",\"token\":\"of-the-node\",\"incarnation\":2}"
#define AGAIN "{\"node\":\"trainer-3\",\"token\":\"of-the-node\",\"incarnation\":2,\"again\":true}"

/* The file that all machines of the role have, with what this test changes at its end. */
static const char *file_with(struct fake *f, const char *more)
{
	return arena_printf(f->arena,
			    "{\"run\":\"r-abcd\",\"role\":\"trainer\",\"token\":\"1.2.3.aa\","
			    "\"link_dir\":\"%s\",\"link_name\":\"link.sock\",\"dir\":\"%s\"%s}",
			    f->dir, f->node, more);
}

/* What it keeps; its mark is the test's from here on. */
static const struct doc *kept(struct fake *f)
{
	struct doc *d;

	assert_int_equal(json_parse(str_from(fake_file(f, fake_in_node(f, LAYOUT_AGENT_CONFIG))),
				    f->arena, &d, NULL),
			 0);
	f->mark = doc_str(d, "mark", STR("")).p;
	return d;
}

static int exit_code(struct fake *f)
{
	int status = fake_agent_gone(f);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool logged(struct fake *f, const char *words)
{
	return strstr(fake_file(f, fake_below(f, "agent.log")), words) != NULL;
}

static void enrol(struct fake *f, const char *answer)
{
	f->enrol = file_with(f, ",\"identity\":\"i-0abc\",\"place\":3");
	fake_agent(f);
	const struct doc *q = fake_accept_enrol(f);

	assert_string_equal(fake_str(q, "run"), "r-abcd");
	assert_string_equal(fake_str(q, "role"), "trainer");
	assert_string_equal(fake_str(q, "token"), "1.2.3.aa");
	assert_string_equal(fake_str(q, "identity"), "i-0abc");
	assert_int_equal(fake_int(q, "place"), 3);
	fake_send(f, FRAME_ENROLLED, answer);
}

static void it_says_hello_as_the_node_that_it_is(void **state)
{
	struct fake *f = *state;
	struct stat st;

	enrol(f, ANSWER);
	const struct doc *hello = fake_meet(f);

	assert_string_equal(fake_str(hello, "run"), "r-abcd");
	assert_string_equal(fake_str(hello, "node"), "trainer-3");
	assert_string_equal(fake_str(hello, "token"), "of-the-node");
	assert_string_equal(fake_str(hello, "holds"), "nothing");
	assert_int_equal(fake_int(hello, "incarnation"), 2);
	kept(f);
	/* Nobody else reads its credential. */
	assert_int_equal(stat(fake_in_node(f, LAYOUT_AGENT_CONFIG), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(f->node, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	fake_release(f);
}

static void started_again_it_asks_nobody(void **state)
{
	struct fake *f = *state;

	enrol(f, ANSWER);
	fake_meet(f);
	kept(f);
	fake_kill(f->agent);
	fake_agent(f);
	assert_string_equal(fake_str(fake_meet(f), "node"), "trainer-3");
	assert_int_equal(f->count[FRAME_ENROL], 0);
	fake_release(f);
}

static void it_runs_a_job_as_any_agent(void **state)
{
	struct fake *f = *state;

	enrol(f, ANSWER);
	fake_meet(f);
	kept(f);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/usr/bin:/bin\"}");
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	fake_start(f, "echo here");
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	assert_memory_equal(f->out[STREAM_OUT].p, "here\n", 5);
	fake_release(f);
}

/* Its answer was lost, or everything that it had: what may have run here is not started again. */
static void told_again_it_does_not_claim_that_nothing_has_run(void **state)
{
	struct fake *f = *state;

	enrol(f, AGAIN);
	const struct doc *hello = fake_meet(f);

	assert_string_equal(fake_str(hello, "holds"), "other_boot");
	kept(f);
	fake_release(f);
}

static void a_lost_answer_is_asked_for_again(void **state)
{
	struct fake *f = *state;

	f->enrol = file_with(f, ",\"identity\":\"i-0abc\"");
	fake_agent(f);
	fake_accept_enrol(f);
	fake_hang_up(f);
	const struct doc *q = fake_accept_enrol(f);

	assert_null(doc_get(q, "place")); /* it does not know it */
	fake_send(f, FRAME_REFUSE, "{\"kind\":\"unavailable\",\"reason\":\"come again later\"}");
	fake_accept_enrol(f);
	fake_send(f, FRAME_ENROLLED, ANSWER);
	fake_meet(f);
	kept(f);
	fake_release(f);
}

static void a_machine_that_is_not_wanted_says_so_and_leaves(void **state)
{
	struct fake *f = *state;

	f->enrol = file_with(f, ",\"identity\":\"i-0abc\"");
	fake_agent(f);
	fake_accept_enrol(f);
	fake_send(f, FRAME_REFUSE, "{\"kind\":\"denied\",\"reason\":\"this one is not needed\"}");
	assert_int_equal(exit_code(f), 4);
	assert_true(logged(f, "the master does not take machine i-0abc: this one is not needed"));
	assert_false(file_exists(fake_in_node(f, LAYOUT_AGENT_CONFIG)));
}

static void without_a_master_it_gives_up_in_the_end(void **state)
{
	struct fake *f = *state;

	f->enrol =
		arena_printf(f->arena,
			     "{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"identity\":\"i\","
			     "\"link_dir\":\"%s\",\"link_name\":\"nobody.sock\",\"limit_ms\":300}",
			     f->dir);
	fake_agent(f);
	assert_int_equal(exit_code(f), 8);
	assert_true(logged(f, "no master has enrolled this machine in time"));
}

static void the_directory_of_another_run_is_not_taken(void **state)
{
	struct fake *f = *state;

	enrol(f, ANSWER);
	fake_meet(f);
	kept(f);
	fake_kill(f->agent);
	f->enrol = arena_printf(
		f->arena,
		"{\"run\":\"r-wxyz\",\"role\":\"t\",\"token\":\"x\",\"identity\":\"i\","
		"\"link_dir\":\"%s\",\"link_name\":\"link.sock\",\"dir\":\"%s\"}",
		f->dir, f->node);
	fake_agent(f);
	assert_int_equal(exit_code(f), 2);
	assert_true(logged(f, "belongs to run r-abcd, not to r-wxyz"));
}

/* ---- its file ---- */

static int load(struct fake *f, const char *text, struct enrol_config *c, struct err *err)
{
	char *path = fake_below(f, "enrol.json");

	assert_int_equal(file_write(path, str_from(text), 0600, NULL), 0);
	return enrol_config_load(path, f->arena, c, err);
}

static void an_identity_comes_from_the_file_or_from_where_it_says(void **state)
{
	struct fake *f = *state;
	struct enrol_config c;
	char name[65] = "", *path = fake_below(f, "uid");

	assert_int_equal(load(f, file_with(f, ",\"identity\":\"i-0abc\""), &c, NULL), 0);
	assert_string_equal(c.identity, "i-0abc");
	assert_int_equal(c.place, -1);
	assert_int_equal(file_write(path, STR("8f14e45f-ceea\n"), 0600, NULL), 0);
	const char *more =
		arena_printf(f->arena, ",\"identity\":{\"from\":\"file\",\"path\":\"%s\"}", path);

	assert_int_equal(load(f, file_with(f, more), &c, NULL), 0);
	assert_string_equal(c.identity, "8f14e45f-ceea");
	gethostname(name, sizeof(name) - 1);
	assert_int_equal(load(f, file_with(f, ",\"identity\":{\"from\":\"hostname\"}"), &c, NULL),
			 0);
	assert_string_equal(c.identity, name);
}

static void what_is_wrong_with_its_file_is_said_by_key(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"", "enrol.json"},
		{"{\"role\":\"t\"}", "key 'run' is missing"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"identity\":\"i\"}",
		 "key 'urls' is missing"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[],\"identity\":\"i\"}",
		 "key 'urls' is empty"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"http://h:1\"],\"pin\":\"p\","
		 "\"identity\":\"i\"}",
		 "https://HOST:PORT"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://h:1\"],"
		 "\"identity\":\"i\"}",
		 "key 'pin' is missing"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://h:1\"],\"pin\":\"p\"}",
		 "key 'identity' is missing"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://h:1\"],\"pin\":\"p\","
		 "\"identity\":\"two words\"}",
		 "is not the identity of a machine"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://h:1\"],\"pin\":\"p\","
		 "\"identity\":{\"from\":\"memory\"}}",
		 "cannot be had from 'memory'"},
		{"{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://h:1\"],\"pin\":\"p\","
		 "\"identity\":\"i\",\"place\":-7}",
		 "key 'place' is out of its range"},
	};
	struct fake *f = *state;
	struct enrol_config c;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};

		assert_int_equal(load(f, cases[i].text, &c, &err), -1);
		assert_int_equal(err.kind, ERR_INVALID);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("%s", err.msg);
	}
}

static void it_keeps_the_master_that_has_answered(void **state)
{
	struct fake *f = *state;
	struct enrol_config c;

	assert_int_equal(
		load(f,
		     "{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://a:1\","
		     "\"https://b:2\"],\"pin\":\"p\",\"identity\":\"i\",\"cache\":\"/c\"}",
		     &c, NULL),
		0);
	assert_string_equal(c.dir, f->node); /* beside the file */
	assert_int_equal(
		enrol_config_keep(&c, 1, &(struct message_enrolled){"t-0", "y", 1, false}, NULL),
		0);
	const struct doc *d = kept(f);

	assert_string_equal(fake_str(d, "master"), "https://b:2");
	assert_string_equal(fake_str(d, "pin"), "p");
	assert_string_equal(fake_str(d, "cache"), "/c");
	assert_int_equal(fake_int(d, "proto"), LINK_PROTO);
	f->mark = NULL;
}

int main(int argc, char **argv)
{
	int role = fake_role(argc, argv);
#define CASE(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		CASE(it_says_hello_as_the_node_that_it_is),
		CASE(started_again_it_asks_nobody),
		CASE(it_runs_a_job_as_any_agent),
		CASE(told_again_it_does_not_claim_that_nothing_has_run),
		CASE(a_lost_answer_is_asked_for_again),
		CASE(a_machine_that_is_not_wanted_says_so_and_leaves),
		CASE(without_a_master_it_gives_up_in_the_end),
		CASE(the_directory_of_another_run_is_not_taken),
		CASE(an_identity_comes_from_the_file_or_from_where_it_says),
		CASE(what_is_wrong_with_its_file_is_said_by_key),
		CASE(it_keeps_the_master_that_has_answered),
	};

	return role >= 0 ? role : cmocka_run_group_tests_name("agent enrol", tests, NULL, NULL);
}
