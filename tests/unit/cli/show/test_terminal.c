/* Text is measured in columns, and what is drawn can be taken away again. */
#include "spec/golden.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/show/live_view.h"
#include "cli/show/screen.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

static const struct style plain = {.width = 80};

static void width_counts_columns_not_bytes(void **state)
{
	static const struct {
		const char *text;
		int width;
	} cases[] = {
		{"", 0},	   {"abc", 3},	{"\u00e9", 1}, {"e\u0301", 1}, {"\u4f60\u597d", 4},
		{"\U0001f600", 2}, {"a\tb", 9}, {"\xff", 1},   {"\u2026", 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(text_width(str_from(cases[i].text)), cases[i].width);
}

static void a_cut_is_marked_and_fits(void **state)
{
	const char *text = "ab\u4f60\u597dcd";

	(void)state;
	for (int width = 0; width < 12; width++) {
		for (int unicode = 0; unicode < 2; unicode++) {
			CLEANUP(buf_release) struct buf b;
			struct style st = {.unicode = unicode};
			buf_init(&b, 4096);
			int used = text_clip(&b, str_from(text), width, &st);
			assert_true(used <= width);
			assert_int_equal(text_width(buf_str(&b)), used);
			assert_int_equal(str_is(buf_str(&b), text), width >= 8);
			assert_true(width == 0 || width >= 8 ||
				    str_ends(buf_str(&b), unicode ? STR("\u2026") : STR("~")));
		}
	}
}

static void lines_are_fitted_one_by_one(void **state)
{
	CLEANUP(buf_release) struct buf b;
	struct style narrow = {.width = 4}, none = {0};

	(void)state;
	buf_init(&b, 4096);
	text_fit(&b, STR("abcdef\nab\n"), &narrow);
	text_fit(&b, STR("abcdef"), &none);
	assert_string_equal(b.p, "abc~\nab\nabcdef\n");
}

static void numbers_are_short(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {{0, "0"},		{0.0213, "0.0213"},	 {1250, "1250"},
		     {1e300, "1e+300"}, {-1.5, "-1.5"},		 {123456789, "123456789"},
		     {1e9, "1e+09"},	{0.123456789, "0.12346"}};
	static const struct {
		int64_t v;
		const char *text;
	} sizes[] = {{0, "0 B"},	{1023, "1023 B"},     {1024, "1.0 KiB"},
		     {1536, "1.5 KiB"}, {1048575, "1.0 MiB"}, {INT64_MAX, "8.0 EiB"}};
	char out[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		number_format(cases[i].v, out);
		assert_string_equal(out, cases[i].text);
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		bytes_format(sizes[i].v, out);
		assert_string_equal(out, sizes[i].text);
	}
}

static void what_is_no_terminal_is_neither_cut_nor_coloured(void **state)
{
	int fd = open("/dev/null", O_WRONLY);

	(void)state;
	setenv("TERM", "xterm", 1);
	setenv("LANG", "C.UTF-8", 1);
	struct style st = style_detect(fd);
	assert_int_equal(st.width, 0);
	assert_false(st.colour);
	assert_false(st.unicode);
	assert_false(term_live(fd));
	close(fd);
}

static void a_terminal_tells_its_size_and_the_user_decides_on_colours(void **state)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY);
	struct winsize ws = {.ws_col = 33, .ws_row = 7};
	int width, height;

	(void)state;
	assert_true(fd >= 0);
	ioctl(fd, TIOCSWINSZ, &ws);
	setenv("TERM", "xterm", 1);
	setenv("LC_ALL", "", 1);
	setenv("LC_CTYPE", "C", 1);
	setenv("LANG", "en_US.utf8", 1);
	unsetenv("NO_COLOR");
	struct style st = style_detect(fd);
	assert_int_equal(st.width, 33);
	assert_true(st.colour);
	assert_false(st.unicode);
	unsetenv("LC_CTYPE");
	setenv("NO_COLOR", "1", 1);
	st = style_detect(fd);
	assert_false(st.colour);
	assert_true(st.unicode);
	setenv("NO_COLOR", "", 1);
	assert_true(style_detect(fd).colour);
	setenv("TERM", "dumb", 1);
	assert_false(style_detect(fd).colour);
	assert_false(term_live(fd));
	unsetenv("LANG");
	assert_false(style_detect(fd).unicode);
	/* A terminal that does not know its size: COLUMNS, then the usual one. */
	ws = (struct winsize){0};
	ioctl(fd, TIOCSWINSZ, &ws);
	setenv("COLUMNS", "55", 1);
	term_size(fd, &width, &height);
	assert_int_equal(width, 55);
	assert_int_equal(height, 24);
	setenv("COLUMNS", "-5", 1);
	term_size(fd, &width, &height);
	assert_int_equal(width, 80);
	unsetenv("COLUMNS");
	close(fd);
}

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
		cmocka_unit_test(width_counts_columns_not_bytes),
		cmocka_unit_test(a_cut_is_marked_and_fits),
		cmocka_unit_test(lines_are_fitted_one_by_one),
		cmocka_unit_test(numbers_are_short),
		cmocka_unit_test(what_is_no_terminal_is_neither_cut_nor_coloured),
		cmocka_unit_test(a_terminal_tells_its_size_and_the_user_decides_on_colours),
		cmocka_unit_test(the_live_view_fits_the_terminal),
		cmocka_unit_test(steps_are_found_in_lines),
		cmocka_unit_test(a_redraw_takes_the_old_view_away),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
