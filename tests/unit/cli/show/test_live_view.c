/* The live view of a run fits the terminal, and can be removed from it. */
#include "spec/golden.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/show/live_view.h"
#include "cli/show/screen.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

static const struct style plain = {.width = 80};

static struct doc *load(struct arena *a, const char *name)
{
	CLEANUP(buf_release) struct buf b;
	struct err err;
	struct doc *d = NULL;

	buf_init(&b, GOLDEN_MAX);
	if (file_read(golden_path(a, arena_printf(a, "golden/cli/%s.json", name)), &b, &err) < 0 ||
	    reply_parse(arena_str(a, buf_str(&b)), a, &d, &err) < 0)
		fail_msg("%s", err.msg);
	return d;
}

static void check_view(const char *name, struct view *v, int width, int height, bool unicode)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct style st = {.width = width, .unicode = unicode};
	int lines = 0;

	buf_init(&b, CLI_MAX_TEXT);
	v->elapsed_ms = 4210;
	view_render(v, load(a, name), height, &st, &b);
	struct str rest = buf_str(&b);
	while (rest.p && rest.n) {
		assert_true(text_width(str_cut(&rest, '\n')) < (width > 1 ? width : 2));
		lines++;
	}
	assert_true(lines < (height > 1 ? height : 2));
	assert_null(memchr(b.p, '\x1b', b.n));
	golden_check(golden_path(a, arena_printf(a, "golden/cli/%s.view.%dx%d.txt", name, width,
						 height)),
		     buf_str(&b));
}

static void the_live_view_fits_the_terminal(void **state)
{
	struct view v;

	(void)state;
	view_init(&v);
	check_view("empty", &v, 80, 24, false);
	view_line(&v, STR("trainer-0"), STR("epoch 1 loss=0.31"));
	view_line(&v, STR("pserver-0"), STR("\x1b[2J\x1b]0;evil\a step 3 / 12"));
	view_line(&v, STR("trainer-1"), STR("Step: 450/500 done"));
	for (int i = 0; i < 4; i++)
		view_line(&v, STR("trainer-0"),
			  STR("a long line of output that does not fit everywhere \xff\xfe"));
	check_view("running", &v, 80, 24, true);
	check_view("running", &v, 40, 10, false);
	check_view("running", &v, 20, 5, false);
	check_view("running", &v, 1, 1, false);
	check_view("running", &v, 200, 50, false);
	check_view("hostile", &v, 80, 24, false);
	v.hide_tail = true;
	v.notice = "(no master: starting it again)";
	check_view("succeeded", &v, 100, 24, false);
	view_release(&v);
}

static void what_the_run_waits_for_is_shown(void **state)
{
	static const char run[] = "{\"id\":\"job-a\",\"state\":\"%s\",\"nodes\":[],\"waiting\":"
				  "[{\"why\":\"no host for 2 nodes\"},{\"why\":\"later\"}]}";
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct view v;
	struct doc *d;

	(void)state;
	view_init(&v);
	buf_init(&b, CLI_MAX_TEXT);
	assert_int_equal(reply_parse(str_from(arena_printf(a, run, "provisioning")), a, &d, NULL),
			 0);
	view_render(&v, d, 24, &plain, &b);
	assert_non_null(strstr(b.p, "\n  waiting: no host for 2 nodes\n"));
	assert_null(strstr(b.p, "later"));
	buf_reset(&b);
	view_render(&v, d, 2, &plain, &b); /* there is room for the headline only */
	assert_null(strstr(b.p, "waiting"));
	buf_reset(&b);
	assert_int_equal(reply_parse(str_from(arena_printf(a, run, "failed")), a, &d, NULL), 0);
	view_render(&v, d, 24, &plain, &b);
	assert_null(strstr(b.p, "waiting"));
	view_release(&v);
}

static void steps_are_found_in_lines(void **state)
{
	static const struct {
		const char *line, *bar;
	} cases[] = {
		{"step 5/10", "50% 5/10"},
		{"STEPS=20/10", "100% 20/10"},
		{"step 1 / 4 loss", "25% 1/4"},
		{"step 5", NULL},
		{"step /10", NULL},
		{"step 5/0", NULL},
		{"misstep 9/10 step 1/2", "90% 9/10"},
		{"step 99999999999999999/2", NULL},
		{"step", NULL},
		{"step 5/x step 7/10", "70% 7/10"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct view v;
		buf_init(&b, CLI_MAX_TEXT);
		view_init(&v);
		v.hide_tail = true;
		view_line(&v, STR("pserver-0"), str_from(cases[i].line));
		view_render(&v, load(a, "running"), 24, &plain, &b);
		const char *row = strstr(b.p, "pserver-0");
		bool found = row && strchr(row, '[');
		if (found != (cases[i].bar != NULL) || (found && !strstr(row, cases[i].bar)))
			fail_msg("'%s' gives: %s", cases[i].line, b.p);
		view_release(&v);
	}
}

static void a_redraw_takes_the_old_view_away(void **state)
{
	CLEANUP(buf_release) struct buf seen;
	char path[] = "/tmp/regatta-screen-XXXXXX";
	struct screen s;

	(void)state;
	int fd = mkostemp(path, O_CLOEXEC);
	screen_init(&s, fd);
	screen_clear(&s, 80); /* nothing there: nothing written */
	screen_draw(&s, STR("one\n\x1b[1mtwo\x1b[0m\n"), 80);
	screen_draw(&s, STR("0123456789abcdefghij\nx\n"), 80);
	/* 20 columns on a terminal of 8 have become three rows. */
	screen_draw(&s, STR("new\n"), 8);
	screen_clear(&s, 8);
	screen_release(&s);
	close(fd);
	buf_init(&seen, 4096);
	assert_int_equal(file_read(path, &seen, NULL), 0);
	assert_string_equal(
		seen.p,
		"\rone\x1b[K\n\x1b[1mtwo\x1b[0m\x1b[K\n\x1b[J\x1b[2A\r0123456789abcdefghij\x1b[K\nx\x1b[K\n\x1b[J\x1b[4A\rnew\x1b[K\n\x1b[J\x1b[1A\r\x1b[J");
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_live_view_fits_the_terminal),
		cmocka_unit_test(what_the_run_waits_for_is_shown),
		cmocka_unit_test(steps_are_found_in_lines),
		cmocka_unit_test(a_redraw_takes_the_old_view_away),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("live_view", tests, NULL, NULL);
}
