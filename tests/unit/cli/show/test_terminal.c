/* Text is measured in columns and cut to fit them. */
#include "spec/golden.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "cli/cli.h"
#include "cli/show/terminal.h"

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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(width_counts_columns_not_bytes),
		cmocka_unit_test(a_cut_is_marked_and_fits),
		cmocka_unit_test(lines_are_fitted_one_by_one),
		cmocka_unit_test(numbers_are_short),
		cmocka_unit_test(what_is_no_terminal_is_neither_cut_nor_coloured),
		cmocka_unit_test(a_terminal_tells_its_size_and_the_user_decides_on_colours),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
