/* Objects of the API as text: at any width, whatever the strings in them. */
#include "spec/golden.h"

#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

static const int widths[] = {20, 40, 80, 200};

static struct doc *load(struct arena *a, const char *name)
{
	CLEANUP(buf_release) struct buf b;
	struct err err;
	struct doc *d = NULL;

	buf_init(&b, GOLDEN_MAX);
	const char *path = golden_path(a, arena_printf(a, "golden/cli/%s.json", name));
	if (file_read(path, &b, &err) < 0 ||
	    reply_parse(arena_str(a, buf_str(&b)), a, &d, &err) < 0)
		fail_msg("%s: %s", path, err.msg);
	return d;
}

/* What reaches a terminal from outside strings is never a control byte. */
static void assert_harmless(const struct buf *b)
{
	assert_false(b->overflow);
	for (size_t i = 0; i < b->n; i++)
		if (((unsigned char)b->p[i] < 0x20 && b->p[i] != '\n' && b->p[i] != '\t') ||
		    b->p[i] == 0x7f)
			fail_msg("byte %02x at %zu of:\n%.*s", (unsigned char)b->p[i], i,
				 STR_ARG(buf_str(b)));
	assert_true(str_is_utf8(buf_str(b)));
	static const char *const bidi[] = {"\u202e", "\u2066", "\xc2\x9b"};
	for (size_t i = 0; i < COUNT(bidi); i++)
		assert_null(memmem(b->p, b->n, bidi[i], strlen(bidi[i])));
}

static void assert_fits(const struct buf *b, int width)
{
	struct str rest = buf_str(b);

	while (rest.p && rest.n) {
		struct str line = str_cut(&rest, '\n');
		if (text_width(line) > width)
			fail_msg("%d columns instead of %d: %.*s", text_width(line), width,
				 STR_ARG(line));
	}
}

static void check(const char *name, const char *kind, int width, const struct buf *got)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	golden_check(golden_path(a, arena_printf(a, "golden/cli/%s.%s.%d.txt", name, kind, width)),
		     buf_str(got));
}

static void check_summary(const char *name, const char *metrics, int width, bool unicode)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct style st = {.width = width, .unicode = unicode};

	buf_init(&b, CLI_MAX_TEXT);
	summary_render(load(a, name), metrics ? load(a, metrics) : NULL, &st, &b);
	assert_harmless(&b);
	check(name, "summary", width, &b);
}

static void a_summary_is_as_in_the_tree_at_every_width(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(widths); i++) {
		check_summary("succeeded", "succeeded.metrics", widths[i], true);
		check_summary("failed", NULL, widths[i], false);
		check_summary("hostile", NULL, widths[i], true);
	}
	check_summary("succeeded", "succeeded.metrics", 0, false);
	check_summary("failed", NULL, 0, false);
	check_summary("hostile", NULL, 0, false);
	check_summary("empty", NULL, 80, false);
	check_summary("elastic", NULL, 80,
		      false); /* the cause says how the node ended: once is enough */
}

static void a_status_is_as_in_the_tree_at_every_width(void **state)
{
	static const char *const names[] = {"succeeded", "failed", "hostile",
					    "running",	 "empty",  "elastic"};

	(void)state;
	for (size_t n = 0; n < COUNT(names); n++) {
		for (size_t i = 0; i < COUNT(widths); i++) {
			CLEANUP(arena_freep) struct arena *a = arena_new();
			CLEANUP(buf_release) struct buf b;
			struct style st = {.width = widths[i]};
			buf_init(&b, CLI_MAX_TEXT);
			status_render(load(a, names[n]), &st, &b);
			assert_harmless(&b);
			check(names[n], "status", widths[i], &b);
		}
	}
}

static void tables_never_leave_the_terminal(void **state)
{
	(void)state;
	for (int width = 1; width < 220; width++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct style st = {.width = width, .unicode = width % 2};
		buf_init(&b, CLI_MAX_TEXT);
		runs_render(load(a, "runs"), 1700000000000, false, &st, &b);
		metrics_render(load(a, "succeeded.metrics"), &st, &b);
		metrics_table_render(load(a, "hostile"), NULL, 16, &st, &b);
		assert_harmless(&b);
		assert_fits(&b, width);
	}
}

static void the_list_of_runs_is_as_in_the_tree(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(widths); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct style st = {.width = widths[i], .unicode = true};
		buf_init(&b, CLI_MAX_TEXT);
		runs_render(load(a, "runs"), 1700000000000, false, &st, &b);
		check("runs", "ps", widths[i], &b);
	}
}

static void metrics_are_as_in_the_tree_with_their_course(void **state)
{
	(void)state;
	for (int unicode = 0; unicode < 2; unicode++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct style st = {.width = 100, .unicode = unicode};
		buf_init(&b, CLI_MAX_TEXT);
		metrics_render(load(a, "succeeded.metrics"), &st, &b);
		check(unicode ? "succeeded.unicode" : "succeeded.ascii", "metrics", 100, &b);
	}
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct style st = {0};
	buf_init(&b, CLI_MAX_TEXT);
	metrics_render(load(a, "empty"), &st, &b);
	assert_string_equal(b.p, "METRIC  NODE  FIRST  LAST  BEST  MEAN  COUNT\n");
}

static void events_are_one_harmless_line_each(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct style st = {0};
	struct doc *events = load(a, "events");

	(void)state;
	buf_init(&b, CLI_MAX_TEXT);
	for (size_t i = 0; i < events->array.n; i++)
		event_render(events->array.v[i], &st, &b);
	assert_harmless(&b);
	check("events", "lines", 0, &b);
}

/* A run of n nodes, each with one metric. */
static struct doc *large_run(struct arena *a, int n, struct doc **ret_metrics)
{
	CLEANUP(buf_release) struct buf b;
	struct jsonw w;
	struct err err;
	struct doc *run;

	buf_init(&b, 64u << 20);
	jsonw_init(&w, &b);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", "large-abcd");
	jsonw_kz(&w, "state", "succeeded");
	jsonw_kz(&w, "dir", "/r");
	jsonw_key(&w, "counts");
	jsonw_open(&w, '{');
	jsonw_kint(&w, "nodes", n);
	jsonw_kint(&w, "released", n);
	jsonw_close(&w);
	jsonw_key(&w, "nodes");
	jsonw_open(&w, '[');
	for (int i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "worker-%d", i);
		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", name);
		jsonw_kz(&w, "state", "released");
		jsonw_kint(&w, "rank", i);
		jsonw_kz(&w, "address", "127.1.0.1");
		jsonw_kint(&w, "exit_code", 0);
		jsonw_key(&w, "metrics");
		jsonw_open(&w, '{');
		jsonw_kdouble(&w, "loss", i / 10.0);
		jsonw_close(&w);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_close(&w);
	if (reply_parse(arena_str(a, buf_str(&b)), a, &run, &err) < 0)
		fail_msg("%s", err.msg);
	buf_reset(&b);
	buf_addz(
		&b,
		"{\"metrics\":{\"loss\":{\"all\":{\"last\":1,\"best\":1,\"mean\":1,\"count\":1},\"nodes\":{");
	for (int i = 0; i < n; i++)
		buf_printf(&b, "%s\"worker-%d\":{\"last\":%d,\"best\":%d,\"mean\":%d,\"count\":3}",
			   i ? "," : "", i, i, i, i);
	buf_addz(&b, "}}}}");
	if (reply_parse(arena_str(a, buf_str(&b)), a, ret_metrics, &err) < 0)
		fail_msg("%s", err.msg);
	return run;
}

static void a_summary_of_many_nodes_stays_short(void **state)
{
	static const int sizes[] = {1, 16, 17, 1000, 10000};

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct style st = {.width = 80};
		struct doc *metrics, *run = large_run(a, sizes[i], &metrics);
		buf_init(&b, CLI_MAX_TEXT);
		summary_render(run, metrics, &st, &b);
		check(arena_printf(a, "large-%d", sizes[i]), "summary", 80, &b);
	}
}

static void a_status_has_a_row_for_every_node(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct style st = {.width = 80};
	struct doc *metrics;
	int rows = 0;

	(void)state;
	buf_init(&b, CLI_MAX_TEXT);
	status_render(large_run(a, 10000, &metrics), &st, &b);
	assert_fits(&b, 80);
	struct str rest = buf_str(&b);
	while (rest.p)
		rows += str_starts(str_cut(&rest, '\n'), STR("worker-"));
	assert_int_equal(rows, 10000);
}

static void colours_come_only_when_asked_for(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf plain, colour;
	struct style st = {.width = 80};

	(void)state;
	buf_init(&plain, CLI_MAX_TEXT);
	buf_init(&colour, CLI_MAX_TEXT);
	summary_render(load(a, "failed"), NULL, &st, &plain);
	st.colour = true;
	summary_render(load(a, "failed"), NULL, &st, &colour);
	assert_null(memchr(plain.p, '\x1b', plain.n));
	assert_non_null(memmem(colour.p, colour.n, "\x1b[31m", 5));
	assert_non_null(memmem(colour.p, colour.n, "\x1b[0m", 4));
}

static void the_exit_code_is_the_runs_own(void **state)
{
	static const struct {
		const char *json;
		int code;
		bool ended;
	} cases[] = {
		{"{\"state\":\"succeeded\",\"exit_code\":0}", 0, true},
		{"{\"state\":\"failed\",\"exit_code\":6}", 6, true},
		{"{\"state\":\"failed\",\"exit_code\":null}", 1, true},
		{"{\"state\":\"cancelled\"}", 7, true},
		{"{\"state\":\"succeeded\",\"exit_code\":256}", 0, true},
		{"{\"state\":\"running\"}", 8, false},
		{"{}", 8, false},
		{"[]", 8, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		struct doc *d;
		assert_int_equal(reply_parse(str_from(cases[i].json), a, &d, NULL), 0);
		assert_int_equal(run_exit_code(d), cases[i].code);
		assert_int_equal(run_ended(d), cases[i].ended);
	}
}

#define NODES                                                                                      \
	"\"nodes\":[{\"name\":\"a\",\"signal\":9},{\"name\":\"b\",\"exit_code\":3},{\"name\":\"c\"}]"
static void the_jobs_code_is_that_of_the_node_that_failed(void **state)
{
	static const struct {
		const char *json;
		int code;
	} cases[] = {
		{"{\"state\":\"failed\",\"exit_code\":1,\"cause_node\":\"b\"," NODES "}", 3},
		{"{\"state\":\"failed\",\"exit_code\":1,\"cause_node\":\"a\"," NODES "}", 137},
		{"{\"state\":\"failed\",\"exit_code\":1,\"cause_node\":\"c\"," NODES "}", 1},
		{"{\"state\":\"failed\",\"exit_code\":1,\"cause_node\":null," NODES "}", 1},
		{"{\"state\":\"failed\",\"exit_code\":6,\"cause_node\":\"b\"," NODES "}", 6},
		{"{\"state\":\"succeeded\",\"exit_code\":0," NODES "}", 0},
		{"{\"state\":\"cancelled\",\"exit_code\":7,\"cause_node\":\"b\"}", 7},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		struct doc *d;
		assert_int_equal(reply_parse(str_from(cases[i].json), a, &d, NULL), 0);
		assert_int_equal(run_job_code(d), cases[i].code);
	}
}

static void the_end_of_a_node_is_told_in_words(void **state)
{
	static const struct {
		const char *json, *story;
	} cases[] = {
		{"{\"exit_code\":3}", "exit code 3"},
		{"{\"exit_code\":null,\"signal\":9,\"oom\":true}",
		 "killed by SIGKILL, out of memory"},
		{"{\"signal\":34}", "killed by signal 34"},
		{"{\"state\":\"lost\",\"reason\":\"gone\"}", "lost: gone"},
		{"{\"reason\":\"not started\"}", "not started"},
		{"{\"oom\":true}", "out of memory"},
		{"{\"state\":\"running\"}", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct doc *d;
		buf_init(&b, 4096);
		assert_int_equal(reply_parse(str_from(cases[i].json), a, &d, NULL), 0);
		node_describe_end(d, &b);
		assert_true(str_is(buf_str(&b), cases[i].story));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_summary_is_as_in_the_tree_at_every_width),
		cmocka_unit_test(a_status_is_as_in_the_tree_at_every_width),
		cmocka_unit_test(tables_never_leave_the_terminal),
		cmocka_unit_test(the_list_of_runs_is_as_in_the_tree),
		cmocka_unit_test(metrics_are_as_in_the_tree_with_their_course),
		cmocka_unit_test(events_are_one_harmless_line_each),
		cmocka_unit_test(a_summary_of_many_nodes_stays_short),
		cmocka_unit_test(a_status_has_a_row_for_every_node),
		cmocka_unit_test(colours_come_only_when_asked_for),
		cmocka_unit_test(the_exit_code_is_the_runs_own),
		cmocka_unit_test(the_jobs_code_is_that_of_the_node_that_failed),
		cmocka_unit_test(the_end_of_a_node_is_told_in_words),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
