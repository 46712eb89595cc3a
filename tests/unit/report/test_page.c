/* report.html and metrics.csv from given values. */
#include "spec/golden.h"

#include <fcntl.h>
#include <math.h>

#include "report/report.h"

#define HOSTILE "<script>alert(1)</script>\"'&\x1b[31m\xff\n\u202e"

static const struct report_phase phases[] = {{"accepted", 0},	{"provisioning", 12},
					     {"gathering", 8},	{"running", 1200},
					     {"collecting", 4}, {"cleaning", -1}};
static const struct report_fact facts[] = {{"regatta", "0"}, {"interface between nodes", "lo"}};

/* Two nodes, a metric on each, and a sample of the machine. */
struct world {
	struct report_node nodes[2];
	struct report_series series[3];
	struct report_event events[2];
	struct report_run run;
};

static struct stats figures(uint64_t n, double from, double step)
{
	struct stats st = {0};

	for (uint64_t i = 0; i < n; i++)
		stats_add(&st, from + (double)i * step);
	return st;
}

static void world_init(struct world *w, const char *text)
{
	*w = (struct world){
		.nodes = {{.name = "worker-0",
			   .role = "worker",
			   .address = "127.1.0.1",
			   .state = "released",
			   .story = "exit code 0",
			   .rank = 0,
			   .attempt = 1,
			   .log_bytes = 898},
			  {.name = text,
			   .role = text,
			   .address = text,
			   .state = text,
			   .story = text,
			   .rank = 1}},
		.series = {{.name = "loss",
			    .node = 0,
			    .better = BETTER_LOWER,
			    .figures = figures(5, 1, -0.125)},
			   {.name = text,
			    .node = 1,
			    .better = BETTER_HIGHER,
			    .figures = figures(2, 10, 1)},
			   {.name = "host.cpu",
			    .node = 0,
			    .host = true,
			    .figures = figures(1, 50, 0)}},
		.events = {{1, 1000, "accepted", NULL, ""}, {2, 1010, text, text, text}},
	};
	w->run = (struct report_run){.id = "job-abcd",
				     .name = text,
				     .engine = "local",
				     .strategy = "single",
				     .state = "failed",
				     .verdict = "failed",
				     .cause = text,
				     .cause_node = text,
				     .tail_node = text,
				     .tail = text,
				     .created_ms = 1000,
				     .ended_ms = 2224,
				     .elapsed_ms = 1224,
				     .phases = phases,
				     .nphases = COUNT(phases),
				     .nodes = w->nodes,
				     .nnodes = 2,
				     .series = w->series,
				     .nseries = 3,
				     .events = w->events,
				     .nevents = 2,
				     .more_events = 7,
				     .bad_values = 3,
				     .job = text,
				     .environment = facts,
				     .nenvironment = COUNT(facts)};
}

static int make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		fail_msg("open %s", path);
	return fd;
}

static void feed(struct report *r, const struct report_run *run)
{
	for (size_t i = 0; i < run->nseries; i++)
		for (uint64_t k = 0; k < run->series[i].figures.count; k++) {
			struct report_point p = {1100 + (int64_t)k * 250, i == 0 ? (int64_t)k : -1,
						 run->series[i].figures.first +
							 (double)k * (i == 0 ? -0.125 : 1)};
			report_points(r, i, &p, 1);
		}
}

static void produce(void **state, const struct report_run *run, struct buf *html, struct buf *csv)
{
	CLEANUP(close_fdp) int h = make(unit_path(state, "r.html"));
	CLEANUP(close_fdp) int c = make(unit_path(state, "m.csv"));
	struct report *r = report_new(run, h, c);
	struct err err = {0};

	feed(r, run);
	assert_int_equal(report_end(r, &err), 0);
	report_free(r);
	buf_init(html, GOLDEN_MAX);
	buf_init(csv, GOLDEN_MAX);
	assert_int_equal(file_read(unit_path(state, "r.html"), html, &err), 0);
	assert_int_equal(file_read(unit_path(state, "m.csv"), csv, &err), 0);
}

static void a_small_run_gives_the_page_and_the_table_of_the_golden_files(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf html, csv;
	struct world w;

	world_init(&w, "speed");
	produce(state, &w.run, &html, &csv);
	golden_check(golden_path(a, "golden/report/small.html"), buf_str(&html));
	golden_check(golden_path(a, "golden/report/small.csv"), buf_str(&csv));
}

/* Rule: nothing from outside becomes markup, and the page fetches and runs nothing. */
static void hostile_names_stay_text(void **state)
{
	CLEANUP(buf_release) struct buf html, csv;
	struct world w;
	static const char *const never[] = {
		"<script",     "http://", "https://", " src=",	"url(",	 "@import",
		"javascript:", "\x1b",	  "\xff",     "\u202e", "<link", "<iframe"};

	world_init(&w, HOSTILE);
	produce(state, &w.run, &html, &csv);
	for (size_t i = 0; i < COUNT(never); i++)
		if (memmem(html.p, html.n, never[i], strlen(never[i])))
			fail_msg("'%s' is in the page", never[i]);
	assert_non_null(strstr(html.p, "default-src 'none'; style-src 'unsafe-inline'"));
	assert_non_null(strstr(html.p, "&lt;script&gt;alert(1)"));
	assert_true(str_is_utf8(buf_str(&html)));
}

static void a_run_without_anything_has_a_page_too(void **state)
{
	CLEANUP(buf_release) struct buf html, csv;
	struct report_run run = {
		.id = "x-abcd", .name = "x", .state = "cleaning", .verdict = "cancelled"};

	produce(state, &run, &html, &csv);
	assert_non_null(strstr(html.p, "The run gave no metrics."));
	assert_non_null(strstr(html.p, "so far"));
	assert_non_null(strstr(html.p, "<span class=\"badge off\">cancelled</span>"));
	assert_string_equal(csv.p, "time,node,role,rank,name,step,value\r\n");
}

/* Rule: lists are bounded, and what is left out is said. */
static void a_large_run_has_a_small_page(void **state)
{
	enum { NODES = 3000 };
	CLEANUP(buf_release) struct buf html, csv;
	struct report_node *nodes = xcalloc(NODES, sizeof(*nodes));
	struct report_series *series = xcalloc(NODES, sizeof(*series));
	struct report_run run = {.id = "x-abcd",
				 .state = "succeeded",
				 .nodes = nodes,
				 .nnodes = NODES,
				 .series = series,
				 .nseries = NODES};

	for (int i = 0; i < NODES; i++) {
		nodes[i] = (struct report_node){.name = "n", .role = "r", .rank = i};
		series[i] = (struct report_series){
			.name = "loss", .node = i, .figures = figures(3, 1, 1)};
	}
	produce(state, &run, &html, &csv);
	assert_non_null(strstr(html.p, "and 2000 more: see summary.json"));
	assert_non_null(strstr(html.p, "16 of 3000 nodes are drawn"));
	assert_non_null(strstr(html.p, "32 of 3000 nodes are listed"));
	assert_true(html.n < 400000);
	free(nodes);
	free(series);
}

static void a_full_disk_is_told_at_the_end(void **state)
{
	CLEANUP(close_fdp) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct err err = {0};
	struct world w;

	(void)state;
	if (full < 0)
		skip();
	world_init(&w, "x");
	for (int i = 0; i < 2; i++) {
		struct report *r = report_new(&w.run, i ? full : -1, i ? -1 : full);
		feed(r, &w.run);
		assert_int_equal(report_end(r, &err), -1);
		assert_int_equal(err.kind, ERR_CAPACITY);
		assert_int_equal(report_end(r, NULL), -1);
		report_free(r);
	}
	assert_null(report_free(NULL));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_small_run_gives_the_page_and_the_table_of_the_golden_files, unit_make_dir,
			unit_remove_dir),
		cmocka_unit_test_setup_teardown(hostile_names_stay_text, unit_make_dir,
						unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_run_without_anything_has_a_page_too,
						unit_make_dir, unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_large_run_has_a_small_page, unit_make_dir,
						unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_full_disk_is_told_at_the_end, unit_make_dir,
						unit_remove_dir),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
