#include "unit.h"

#include <string.h>
#include "base/buf.h"
#include "metrics/literal.h"

/* The set as "one|two", "-" for none. */
static void expect(const char *pattern, const char *want)
{
	struct literal_set set = literal_required(pattern);
	struct buf b;

	buf_init(&b, 4096);
	for (size_t i = 0; i < set.n; i++) {
		if (i > 0)
			buf_addc(&b, '|');
		buf_add(&b, set.v[i].b, set.v[i].n);
	}
	if (set.n == 0)
		buf_addc(&b, '-');
	if (strcmp(b.p, want) != 0)
		fail_msg("pattern %s: literals %s, expected %s", pattern, b.p, want);
	buf_release(&b);
}

struct row {
	const char *pattern, *want;
};

static void expect_all(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect(rows[i].pattern, rows[i].want);
}

static void plain_text_is_its_own_literal_in_lower_case(void **state)
{
	static const struct row rows[] = {
		{"loss=(\\S+)", "loss="},
		{"Loss: (?<value>[0-9.]+)", "loss: "},
		{"(?<value>[\\d.]+) images/sec", " images/sec"},
		{"\\bacc=(\\d+\\.\\d+)", "acc="},
		{"^Epoch \\[(\\d+)/\\d+\\]", "epoch ["},
		{"a very long literal text (\\d+)", "literal text"},
		{"(\\d+)%", "%"},
		{"{}=(.*)", "{}="},
		{"a{x}(.)", "a{x}"},
		{"a{(.)", "a{"},
	};

	(void)state;
	expect_all(rows, COUNT(rows));
}

static void what_may_be_absent_is_no_literal(void **state)
{
	static const struct row rows[] = {
		{"loss=?(\\d+)", "loss"},	{"(?:loss)?(\\d+)", "-"},
		{"(?:loss)*(\\d+)", "-"},	{"(?:loss){0}(\\d+)", "-"},
		{"(?:loss){0,3}(\\d+)", "-"},	{"(?:loss){00,3}(\\d+)", "-"},
		{"(?:loss){10}(\\d+)", "loss"}, {"(?:loss){1,}(\\d+)", "loss"},
		{"(?:loss)+(\\d+)", "loss"},	{"(?:loss)++(\\d+)", "loss"},
		{"(?:loss)+?(\\d+)", "loss"},	{"(?:loss)?\?(\\d+)", "-"},
		{"(?:loss){2}{0}(\\d+)", "-"},	{"ab*cd(\\d)", "cd"},
		{"abc{0}d(\\d)", "ab"},		{"abx+cd(\\d)", "abx"},
		{"ax+bcd(\\d)", "xbcd"},	{"\\.?\\.\\.(\\d)", ".."},
	};

	(void)state;
	expect_all(rows, COUNT(rows));
}

static void alternatives_count_only_if_each_has_one(void **state)
{
	static const struct row rows[] = {
		{"loss=(\\d)|acc=(\\d)", "loss=|acc="},
		{"loss=(\\d)|(\\d+)", "-"},
		{"loss=(\\d)|", "-"},
		{"(?:train|val)_loss=(\\d)", "_loss="},
		{"(?:train|val)(\\d)", "train|val"},
		{"(?:train|v(?:al|x))(\\d)", "train|v"},
		{"(?:a|)bc(\\d)", "bc"},
		{"(?|ab(\\d)|cd(\\d))", "ab|cd"},
		{"a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|(q)", "-"},
		{"ab|b|c|d|e|f|g|h|i|j|k|l|m|n|o|(p)", "ab|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p"},
	};

	(void)state;
	expect_all(rows, COUNT(rows));
}

static void classes_and_escapes_are_understood_or_skipped(void **state)
{
	static const struct row rows[] = {
		{"[Ll]oss(\\d)", "loss"},
		{"loss[=:](\\d)", "loss"},
		{"a[.]b(\\d)", "a.b"},
		{"[^=]ab(\\d)", "ab"},
		{"[]x]ab(\\d)", "ab"},
		{"[^]x]ab(\\d)", "ab"},
		{"[[:alpha:]x]ab(\\d)", "ab"},
		{"[[:^alpha:]]ab(\\d)", "ab"},
		{"[\\]]ab(\\d)", "]ab"},
		{"[\\d\\-a-z]ab(\\d)", "ab"},
		{"[a-a]b(\\d)", "b"},
		{"[[]ab(\\d)", "[ab"},
		{"[\\x41\\x{42}\\p{Lu}]ab(\\d)", "ab"},
		{"\\tab\\x3d(\\d)", "\tab="},
		{"ab\\x{3d}c(\\d)", "ab"},
		{"\\pLab\\p{Lu}(\\d)", "ab"},
		{"(a)\\1bc\\g{1}\\g1\\g<1>\\k'x'(?'x'.)", "bc"},
		{"\\Qa.b\\E(\\d)", "a.b"},
		{"\\Qa.bc\\E?d(\\d)", "a.b"},
		{"ab\\ncd(\\d)", "ab"},
		{"\\x0aab(\\d)", "ab"},
		{"a\\o{101}bc(\\d)", "bc"},
		{"\\A\\Gab\\Kcd\\b\\B(\\d)\\z", "ab"},
		{"a.bc(\\d)$", "bc"},
	};

	(void)state;
	expect_all(rows, COUNT(rows));
}

static void groups_of_every_kind_are_followed(void **state)
{
	static const struct row rows[] = {
		{"(?<value>loss)", "loss"},
		{"(?P<value>loss)", "loss"},
		{"(?'value'loss)", "loss"},
		{"(?>loss)(\\d)", "loss"},
		{"(?i)LOSS(\\d)", "loss"},
		{"(?i:LOSS)x(\\d)", "loss"},
		{"lo(?i)SS(\\d)", "loss"},
		{"(?-i)ab(?s-m:cd)(\\d)", "ab"},
		{"(?=loss)(.)", "loss"},
		{"(?<=loss=)(.)", "loss="},
		{"(?!loss)(.)", "-"},
		{"(?<!loss)ab(.)", "ab"},
		{"(?*loss)(.)", "loss"},
		{"(?<*loss)(.)", "loss"},
		{"(x)(?1)(?R)?(?-1)(?P>n)(?&n)(?P=n)(?+1)(?<n>yz)", "yz"},
		{"((((loss))))", "loss"},
	};

	(void)state;
	expect_all(rows, COUNT(rows));
}

static void what_is_not_understood_gives_nothing(void **state)
{
	static const struct row rows[] = {
		{"loss(*ACCEPT)=(\\d)", "-"},
		{"(*UTF)loss=(\\d)", "-"},
		{"(?x) lo ss=(\\d)", "-"},
		{"(?x: lo ss)=(\\d)", "-"},
		{"(?^i)loss=(\\d)", "-"},
		{"(?(1)loss|acc)(\\d)", "-"},
		{"loss=(?#comment)?(\\d)", "-"},
		{"loss=(?C1)(\\d)", "-"},
		{"loss=\\Q\\E+(\\d)", "-"},
		{"loss=\\E(\\d)", "-"},
		{"loss=\\cA(\\d)", "-"},
		{"loss=\\N{U+41}(\\d)", "-"},
		{"loss={,3}(\\d)", "-"},
		{"loss={ 1}(\\d)", "-"},
		{"loss={1,2,3}(\\d)", "-"},
		{"loss=[\\Qab\\E](\\d)", "-"},
		{"loss=[[.x.]](\\d)", "-"},
		{"loss=[[:<:]](\\d)", "-"},
		{"(\\d+)", "-"},
		{"", "-"},
	};

	(void)state;
	expect_all(rows, COUNT(rows));
}

static void text_that_no_compiler_would_accept_is_survived(void **state)
{
	static const char *const broken[] = {
		"(",   ")",    "[",  "[^",  "[[:",   "\\",  "(?", "(?<", "(?P", "(?'",	"(?-",
		"\\Q", "\\g{", "a{", "a{1", "(?P<n", "[\\", "*",  "|",	 "x)y", "\\x{",
	};
	char deep[400];

	(void)state;
	for (size_t i = 0; i < COUNT(broken); i++)
		literal_required(
			broken[i]); /* under the sanitizers: no byte beyond its end is read */
	memset(deep, '(', 200);
	memset(deep + 200, ')', 199);
	deep[399] = '\0';
	expect(deep, "-");
	expect("ab)", "-");
	expect("(ab", "-");
}

static void exact_text_is_folded_and_cut(void **state)
{
	struct literal_set set = literal_exactly("**Metrics_data:", 15);

	(void)state;
	assert_int_equal(set.n, 1);
	assert_int_equal(set.v[0].n, LITERAL_MAX_BYTES);
	assert_memory_equal(set.v[0].b, "**metrics_da", LITERAL_MAX_BYTES);
	assert_int_equal(literal_exactly("", 0).n, 0);
	assert_int_equal(literal_exactly("a\nb", 3).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_is_its_own_literal_in_lower_case),
		cmocka_unit_test(what_may_be_absent_is_no_literal),
		cmocka_unit_test(alternatives_count_only_if_each_has_one),
		cmocka_unit_test(classes_and_escapes_are_understood_or_skipped),
		cmocka_unit_test(groups_of_every_kind_are_followed),
		cmocka_unit_test(what_is_not_understood_gives_nothing),
		cmocka_unit_test(text_that_no_compiler_would_accept_is_survived),
		cmocka_unit_test(exact_text_is_folded_and_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
