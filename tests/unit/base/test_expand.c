/* Templates: every placeholder, what is not there, what is too long, what is no template. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/expand.h"
#include "base/rand.h"

static const struct expand_role roles[] = {
	{.name = "trainer", .first = 0, .count = 2, .counted = true},
	{.name = "eval", .first = 2, .count = 1, .port = 7, .counted = true},
	{.name = "ps", .first = 3, .count = 2, .port = 5436, .processes = 3},
};
static const char *const addresses[] = {"10.0.0.1", NULL, "10.0.0.3", "10.0.0.4", "10.0.0.5"};
static const struct expand_members members = {
	.roles = roles, .nroles = 3, .addresses = addresses, .n = 5};

static struct expand_here here_of(int rank)
{
	return (struct expand_here){
		.members = &members,
		.rank = rank,
		.attempt = 3,
		.interface = "eth0",
		.output = "/o",
		.work = "/w",
		.hostfile = "/h",
		.machinefile = "/m",
		.metrics = "/f",
	};
}

static void is(int rank, const char *template, const char *want)
{
	struct expand_here here = here_of(rank);
	struct err err = {0};
	struct buf out;

	buf_init(&out, 4096);
	if (expand_text(template, &here, &out, &err) != EXPAND_OK)
		fail_msg("'%s': %s", template, err.msg);
	assert_string_equal(buf_str(&out).p, want);
	buf_release(&out);
}

/* Nodes 0 to 2 have one process each, 3 and 4 have three. */
static void a_process_is_counted_after_those_of_the_nodes_before_it(void **state)
{
	struct expand_here here = here_of(4);
	struct buf out;

	(void)state;
	is(0, "{process} {local} {processes}", "0 0 1");
	is(2, "{process} {local} {processes}", "2 0 1");
	is(3, "{process} {local} {processes}", "3 0 3");
	here.local = 2;
	buf_init(&out, 4096);
	assert_int_equal(expand_text("{process} {local}: {list:ps|,|{process}}", &here, &out, NULL),
			 EXPAND_OK);
	assert_string_equal(buf_str(&out).p, "8 2: 3,6");
	buf_release(&out);
}

/* The two nodes of "ps" have three processes each; the others have one. */
static void each_process_of_a_list_has_a_number_and_a_port(void **state)
{
	struct expand_here here = here_of(4);
	struct buf out;

	(void)state;
	is(0, "{each:ps|,|{address}:{process_port:1}}",
	   "10.0.0.4:5436,10.0.0.4:5437,10.0.0.4:5438,10.0.0.5:5436,10.0.0.5:5437,10.0.0.5:5438");
	is(0, "{each:*|,|{process}}", "0,1,2,3,4,5,6,7,8");
	is(0, "{each:ps| |{task}.{local}}", "0.0 1.1 2.2 3.0 4.1 5.2");
	is(0, "{each:trainer|,|{address}:{process_port:2222}}", "10.0.0.1:2222,trainer-1:2222");
	is(0, "{each:nobody|,|{rank}}", "");
	here.local = 2;
	buf_init(&out, 4096);
	assert_int_equal(
		expand_text("{task} {process_port:1} {port:1} {list:ps|,|{process_port:1}}", &here,
			    &out, NULL),
		EXPAND_OK);
	assert_string_equal(buf_str(&out).p, "5 5438 5436 5436,5436");
	buf_release(&out);
}

static void a_node_names_itself(void **state)
{
	(void)state;
	is(0, "", "");
	is(0, "plain } text", "plain } text");
	is(0, "{rank} {index} {name} {address}", "0 0 trainer-0 10.0.0.1");
	is(4, "{rank} {index} {name} {address}", "4 1 ps-1 10.0.0.5");
	is(1, "{address}", "trainer-1"); /* its own is not known */
	is(0, "a{attempt}b", "a3b");
	is(0, "{interface} {output} {work} {hostfile} {machinefile} {metrics}",
	   "eth0 /o /w /h /m /f");
}

static void a_table_with_names_decides_how_nodes_are_called(void **state)
{
	static const char *const names[] = {"trainer-1", "trainer-0", "eval-0", "ps-1", "ps-0"};
	const struct expand_members named = {
		.roles = roles, .nroles = 3, .addresses = addresses, .names = names, .n = 5};
	const struct expand_here here = {.members = &named, .rank = 0};
	struct buf out;

	(void)state;
	buf_init(&out, 200);
	assert_int_equal(expand_text("{rank} {index} {name}: {list:*|,|{name}={address}}", &here,
				     &out, NULL),
			 EXPAND_OK);
	assert_string_equal(
		buf_str(&out).p,
		"0 0 trainer-1: trainer-1=10.0.0.1,trainer-0=trainer-0,eval-0=10.0.0.3,ps-1=10.0.0.4,ps-0=10.0.0.5");
	buf_release(&out);
}

static void a_node_names_others(void **state)
{
	(void)state;
	is(4, "{address:0}:29500", "10.0.0.1:29500");
	is(4, "{address:1}", "trainer-1");
}

static void a_port_is_that_of_the_role(void **state)
{
	(void)state;
	is(0, "{port:6170}{:port}", "6170");
	is(3, "{port:6170}{:port}", "5436:5436");
}

static void a_list_has_each_once_in_the_order_of_ranks(void **state)
{
	(void)state;
	is(0, "{list:*|,|{name}={address}{:port}}",
	   "trainer-0=10.0.0.1,trainer-1=trainer-1,eval-0=10.0.0.3:7,ps-0=10.0.0.4:5436,ps-1=10.0.0.5:5436");
	is(4, "<{list:+|, |{address}:{port:1}}>", "<10.0.0.1:1, trainer-1:1, 10.0.0.3:7>");
	is(4, "{list:ps|,|{rank}.{index}}", "3.0,4.1");
	is(0, "{list:nobody|,|{rank}}", "");
	is(2, "{list:+||{address} slots=1\n}",
	   "10.0.0.1 slots=1\ntrainer-1 slots=1\n10.0.0.3 slots=1\n");
	is(0, "{list:ps|\",\"|x}", "x\",\"x");
}

static void braces_stand_for_themselves_when_doubled(void **state)
{
	(void)state;
	is(3, "{{\"a\":{{\"b\":{index}}}", "{\"a\":{\"b\":0}}");
	is(0, "{{rank}", "{rank}");
}

static void what_was_quoted_comes_back(void **state)
{
	static const char letters[] = "{}:|,-ab$\\\"\n";
	struct rng rng;

	(void)state;
	rng_seed(&rng, 9);
	for (int i = 0; i < 2000; i++) {
		char text[24];
		struct buf quoted;
		size_t n = rng_below(&rng, sizeof(text));

		for (size_t k = 0; k < n; k++)
			text[k] = letters[rng_below(&rng, sizeof(letters) - 1)];
		text[n] = '\0';
		buf_init(&quoted, 100);
		expand_quote(text, &quoted);
		is(0, buf_str(&quoted).p, text);
		buf_release(&quoted);
	}
}

static enum expanded how(const char *template, const struct expand_here *here, struct err *err)
{
	struct buf out;

	buf_init(&out, 64);
	enum expanded how = expand_variable("V", template, here, &out, err);

	buf_release(&out);
	return how;
}

static void what_is_not_here_leaves_the_variable_out(void **state)
{
	struct expand_here here = here_of(0);
	struct err err = {0};

	(void)state;
	here.interface = NULL;
	here.work = "";
	assert_int_equal(how("{interface}", &here, &err), EXPAND_NONE);
	assert_int_equal(how("at {work}", &here, &err), EXPAND_NONE);
	assert_int_equal(how("{output}", &here, &err), EXPAND_OK);
	assert_int_equal(err.kind, ERR_NONE);
}

static void what_is_no_template_is_named(void **state)
{
	static const char *const bad[] = {
		"{",
		"{rank",
		"{nonsense}",
		"{port}",
		"{port:x}",
		"{:port",
		"{:prot}",
		"{address:5}",
		"{address:-1}",
		"{address:99999999999}",
		"{list:*}",
		"{list:*|,}",
		"{list:*|,|{nonsense}}",
		"{list:*|,|{list:*|,|{rank}}}",
	};
	struct expand_here here = here_of(0);

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = {0};

		if (how(bad[i], &here, &err) != EXPAND_BAD)
			fail_msg("'%s' is taken", bad[i]);
		assert_int_equal(err.kind, ERR_PROTOCOL);
		assert_non_null(strstr(err.msg, "variable V: placeholder '"));
	}
}

static void a_rank_that_is_no_member_is_refused(void **state)
{
	struct expand_here here = here_of(5);
	struct err err = {0};

	(void)state;
	assert_int_equal(how("x", &here, &err), EXPAND_BAD);
	assert_non_null(strstr(err.msg, "rank 5 is none of the 5 members"));
}

static void a_text_longer_than_its_buffer_is_refused(void **state)
{
	struct expand_here here = here_of(0);
	struct err err = {0};

	(void)state;
	assert_int_equal(how("{list:*||0123456789abcdef}", &here, &err), EXPAND_BAD);
	assert_int_equal(err.kind, ERR_CAPACITY);
}

/* Name, '=', value and NUL are what the kernel counts. */
static void the_longest_variable_is_as_long_as_the_kernel_takes(void **state)
{
	struct expand_here here = here_of(0);
	struct buf text, out;

	(void)state;
	buf_init(&text, EXPAND_MAX_TEXT);
	buf_init(&out, EXPAND_MAX_TEXT);
	while (text.n < EXPAND_MAX_VARIABLE - strlen("NAME=") - 1)
		buf_addc(&text, 'x');
	assert_int_equal(expand_variable("NAME", text.p, &here, &out, NULL), EXPAND_OK);
	assert_int_equal(expand_variable("NAMES", text.p, &here, &out, NULL), EXPAND_LONG);
	assert_int_equal(out.n, text.n); /* whole, for a file */
	buf_release(&text);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_process_of_a_list_has_a_number_and_a_port),
		cmocka_unit_test(each_process_of_a_list_has_a_number_and_a_port),
		cmocka_unit_test(a_node_names_itself),
		cmocka_unit_test(a_process_is_counted_after_those_of_the_nodes_before_it),
		cmocka_unit_test(a_table_with_names_decides_how_nodes_are_called),
		cmocka_unit_test(a_node_names_others),
		cmocka_unit_test(a_port_is_that_of_the_role),
		cmocka_unit_test(a_list_has_each_once_in_the_order_of_ranks),
		cmocka_unit_test(braces_stand_for_themselves_when_doubled),
		cmocka_unit_test(what_was_quoted_comes_back),
		cmocka_unit_test(what_is_not_here_leaves_the_variable_out),
		cmocka_unit_test(what_is_no_template_is_named),
		cmocka_unit_test(a_rank_that_is_no_member_is_refused),
		cmocka_unit_test(a_text_longer_than_its_buffer_is_refused),
		cmocka_unit_test(the_longest_variable_is_as_long_as_the_kernel_takes),
	};

	return cmocka_run_group_tests_name("expand", tests, NULL, NULL);
}
