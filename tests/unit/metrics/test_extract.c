#include "samples.h"

#include <string.h>

#define NUMBER "(?<value>[-+.0-9a-zA-Z]+)"

static const struct metric_pattern loss[] = {{"loss", "loss=" NUMBER}};

/* The samples of a text, and how many were bad. */
static void expect_of(const struct metric_pattern *pats, size_t n, struct str text,
		      const char *want, uint64_t bad)
{
	struct extract *ex = samples_extractor(pats, n);
	struct buf got;

	buf_init(&got, 1u << 20);
	extract_block(ex, text, samples_note, &got);
	samples_equal(&got, want);
	assert_int_equal(extract_bad(ex), bad);
	buf_release(&got);
	assert_null(extract_free(ex));
}

static void expect(const struct metric_pattern *pats, size_t n, const char *text, const char *want,
		   uint64_t bad)
{
	expect_of(pats, n, str_from(text), want, bad);
}

static void a_line_may_match_several_patterns_and_one_several_times(void **state)
{
	static const struct metric_pattern pats[] = {
		{"loss", "loss=" NUMBER},
		{"acc", "acc=([.0-9]+)"},
		{"any", "[a-z]+=(?<value>[0-9]+)$"},
	};

	(void)state;
	expect(pats, 3, "acc=0.5 loss=1 loss=2\nnothing\nacc=7",
	       "loss=1@- loss=2@- acc=0.5@- any=2@- acc=7@- any=7@- ", 0);
}

static void lines_come_in_order_and_are_matched_apart(void **state)
{
	static const struct metric_pattern pats[] = {
		{"a", "^a=(\\d+)$"},
		{"b", "b=(\\d+).*!"},
		{"c", "c\\s*=(\\d+)"},
	};

	(void)state;
	expect(pats, 3, "a=1\r\n a=2\nb=3\n!\nb=4!\nc\n=5\na=6\r\nc =7", "a=1@- b=4@- a=6@- c=7@- ",
	       0);
	expect(pats, 3, "", "", 0);
	expect(pats, 3, "\n\n\r\n", "", 0);
}

static void a_pattern_without_a_literal_sees_every_line(void **state)
{
	static const struct metric_pattern pats[] = {
		{"n", "^(\\d+)$"},
		{"loss", "loss=(\\d+)"},
	};

	(void)state;
	expect(pats, 2, "1\nloss=2\n3\n\nx\n4", "n=1@- loss=2@- n=3@- n=4@- ", 0);
	expect(pats, 1, "**metrics_data: a=1\n5", "a=1@- n=5@- ", 0);
}

static void values_are_finite_decimals_and_others_are_counted(void **state)
{
	static const struct {
		const char *line, *want;
		uint64_t bad;
	} rows[] = {
		{"loss=0.25", "loss=0.25@- ", 0},
		{"loss=-1", "loss=-1@- ", 0},
		{"loss=1e-3", "loss=0.001@- ", 0},
		{"loss=+.5", "loss=0.5@- ", 0},
		{"loss=12.", "loss=12@- ", 0},
		{"loss=1E+2", "loss=100@- ", 0},
		{"loss=1e400", "", 1},
		{"loss=-1e400", "", 1},
		{"loss=nan", "", 1},
		{"loss=NaN", "", 1},
		{"loss=inf", "", 1},
		{"loss=-Infinity", "", 1},
		{"loss=0x10", "", 1},
		{"loss=1.2.3", "", 1},
		{"loss=e", "", 1},
		{"loss=-", "", 1},
		{"loss=1,000", "loss=1@- ", 0},
		{"loss=nan loss=2 loss=x", "loss=2@- ", 2},
		{"loss=1e-400", "loss=0@- ", 0},
		{"loss=", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		expect(loss, 1, rows[i].line, rows[i].want, rows[i].bad);
}

static void thousands_separators_are_no_number(void **state)
{
	static const struct metric_pattern pats[] = {{"rate", "rate ([0-9,.]+)"}};

	(void)state;
	expect(pats, 1, "rate 1,234.5", "", 1);
}

static void a_step_is_taken_where_the_pattern_gives_one(void **state)
{
	static const struct metric_pattern pats[] = {
		{"loss", "step=(?<step>\\S+) loss=(?<value>\\S+)"},
		{"acc", "(?:step=(?<step>\\d+) )?acc=(\\S+)"},
	};

	(void)state;
	expect(pats, 2, "step=7 loss=0.5\n", "loss=0.5@7 ", 0);
	expect(pats, 2, "step=x loss=0.5\nstep=-3 loss=1\nstep=99999999999999999999 loss=2\n",
	       "loss=0.5@- loss=1@- loss=2@- ", 0);
	expect(pats, 2, "step=9 acc=1\nacc=2\n", "acc=1@9 acc=2@- ", 0);
}

static void the_number_of_steps_is_taken_where_it_makes_sense(void **state)
{
	static const struct metric_pattern pats[] = {
		{"loss", "(?<step>\\d+)/(?<total>\\S+) (\\S+)"}};

	(void)state;
	expect(pats, 1, "3/10 0.5\n", "loss=0.5@3/10 ", 0);
	expect(pats, 1, "3/2 0.5\n3/x 1\n3/0 2\n", "loss=0.5@3 loss=1@3 loss=2@3 ", 0);
}

static void the_name_may_come_from_the_line(void **state)
{
	static const struct metric_pattern pats[] = {
		{NULL, "METRIC (?<name>[\\w ]+)=(?<value>\\S*)"}};
	char text[400], want[400];

	(void)state;
	expect(pats, 1, "METRIC loss=1 METRIC val_acc =2", "loss=1@- val_acc=2@- ", 0);
	expect(pats, 1, "METRIC val acc=2", "", 1);
	expect(pats, 1, "METRIC  =1 METRIC x=", "", 2);
	snprintf(text, sizeof(text), "METRIC %0200d=1", 7);
	expect(pats, 1, text, "", 1);
	snprintf(text, sizeof(text), "METRIC %0*d=1", EXTRACT_MAX_NAME, 7);
	snprintf(want, sizeof(want), "%0*d=1@- ", EXTRACT_MAX_NAME, 7);
	expect(pats, 1, text, want, 0);
}

static void a_given_name_wins_and_the_value_group_is_neither_step_nor_name(void **state)
{
	static const struct metric_pattern pats[] = {
		{"mine", "(?<name>\\w+)#(?<step>\\d+) (\\d+)"}};

	(void)state;
	expect(pats, 1, "loss#3 4", "mine=4@3 ", 0);
}

static void of_groups_with_one_name_the_matching_one_counts(void **state)
{
	static const struct metric_pattern pats[] = {
		{"v", "(?J)(?:a=(?<value>\\d+)|b:(?<value>\\d+)|c(?<x>))"}};

	(void)state;
	expect(pats, 1, "a=1 b:2", "v=1@- v=2@- ", 0);
	expect(pats, 1, "c", "", 1); /* matched, yet no value took part */
}

static void empty_matches_end_and_are_no_samples(void **state)
{
	static const struct metric_pattern pats[] = {
		{"n", "(\\d*)"},
		{"ahead", "(?=loss=(\\d+))"},
		{"keep", "x\\K(?=(\\d))|(?<!.)q*"},
	};

	(void)state;
	expect(pats, 1, "ab12c3", "n=12@- n=3@- ", 0);
	expect(pats + 1, 1, "loss=1 loss=2", "ahead=1@- ahead=2@- ", 0);
	expect(pats + 2, 1, "x1x2", "keep=1@- keep=2@- ", 0);
}

/* PCRE2 10.42 loses these when it is left to its own devices. */
static void matches_that_begin_in_an_unusual_way_are_not_lost(void **state)
{
	static const struct metric_pattern pats[] = {
		{"alternatives", "(?:..|=)\\w\\d*l(\\d)"},
		{"atomic", "(?>.+?2)(3)"},
		{"ahead", "(?=(?:x){0})(4)"},
	};

	(void)state;
	expect(pats, 3, "=1l5\n1223\n14", "alternatives=5@- atomic=3@- ahead=4@- ", 0);
}

static void case_flags_are_obeyed_although_the_prefilter_folds(void **state)
{
	static const struct metric_pattern pats[] = {
		{"any", "(?i)loss=(\\d+)"},
		{"lower", "loss=(\\d+)"},
		{"upper", "LOSS=(\\d+)"},
	};

	(void)state;
	expect(pats, 3, "loss=1\nLOSS=2\nLoss=3", "any=1@- lower=1@- any=2@- upper=2@- any=3@- ",
	       0);
}

static void bytes_need_not_be_text(void **state)
{
	static const struct metric_pattern pats[] = {{"v", "\xff\xfe=(\\d+)"},
						     {"w", "\\x00w=(\\d+)"}};

	(void)state;
	expect_of(pats, 2, STR("\0\xff\xfe=1\0\0w=2\n\x80\xff\xfe=3"), "v=1@- w=2@- v=3@- ", 0);
}

static void the_data_prefix_gives_pairs_wherever_it_stands(void **state)
{
	static const struct {
		const char *line, *want;
		uint64_t bad;
	} rows[] = {
		{"**metrics_data: loss=0.5,acc=1", "loss=0.5@- acc=1@- ", 0},
		{"  12:00 INFO **metrics_data:  loss = 0.5 , acc= 1 \r", "loss=0.5@- acc=1@- ", 0},
		{"**metrics_data:loss=1", "loss=1@- ", 0},
		{"**metrics_data: loss=nan,acc=2,x,=3,,y=", "acc=2@- ", 4},
		{"**metrics_data: a=1=2,b=2", "b=2@- ", 1},
		{"**metrics_data: ", "", 0},
		{"**metrics_data: a=1,", "a=1@- ", 0},
		{"**metrics_data: step=12,loss=2", "step=12@12 loss=2@12 ", 0},
		{"**metrics_data: step=1.5,loss=2", "step=1.5@- loss=2@- ", 0},
		{"**METRICS_DATA: a=1", "", 0},
		{"**metrics_dat: a=1", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		expect(NULL, 0, rows[i].line, rows[i].want, rows[i].bad);
}

static void another_prefix_may_be_chosen_or_none(void **state)
{
	struct extract *ex;
	struct err err;
	struct buf got;

	(void)state;
	buf_init(&got, 4096);
	assert_int_equal(extract_new(NULL, 0, "@@ ", &ex, &err), 0);
	extract_block(ex, STR("**metrics_data: a=1\nx @@ b=2\n"), samples_note, &got);
	samples_equal(&got, "b=2@- ");
	extract_free(ex);

	buf_reset(&got);
	assert_int_equal(extract_new(loss, 1, " ", &ex, &err), 0);
	extract_block(ex, STR("**metrics_data: a=1\nloss=2\n"), samples_note, &got);
	samples_equal(&got, "loss=2@- ");
	extract_free(ex);

	buf_reset(&got);
	assert_int_equal(extract_new(NULL, 0, "", &ex, &err), 0);
	extract_block(ex, STR("**metrics_data: a=1\n"), samples_note, &got);
	samples_equal(&got, "");
	extract_free(ex);
	buf_release(&got);
}

/* Rule: a name in the output is one that the job file could have. */
static void a_name_that_the_job_file_could_not_have_is_bad(void **state)
{
	static const char *const bad[] = {"l oss", "a@1",  "\xc3\xa9", "<b>",
					  "a\"b",  "100%", "a\x1b",    "a:b"};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		char line[64];

		snprintf(line, sizeof(line), "**metrics_data: %s=1,ok_./-2=3", bad[i]);
		expect_of(NULL, 0, str_from(line), "ok_./-2=3@- ", 1);
	}
}

static void json_lines_of_every_form_are_read(void **state)
{
	static const struct {
		const char *line, *want;
		uint64_t bad;
	} rows[] = {
		{"{\"loss\":0.5,\"step\":3}", "loss=0.5@3 ", 0},
		{"{\"step\":3,\"loss\":1,\"acc\":2}\r\n", "loss=1@3 acc=2@3 ", 0},
		{"{\"name\":\"loss\",\"value\":0.5,\"step\":3,\"unit\":\"nat\"}", "loss=0.5@3 ", 0},
		{"{\"name\":\"loss\",\"value\":\"x\"}", "", 1},
		{"{\"name\":\"\",\"value\":1}", "", 1},
		{"{\"metrics\":{\"a\":1,\"b\":2.5},\"step\":4,\"host\":\"n0\"}", "a=1@4 b=2.5@4 ",
		 0},
		{"{\"metrics\":{\"a\":1,\"step\":6}}", "a=1@6 ", 0},
		{"{\"metrics\":7}", "metrics=7@- ", 0},
		{"{\"value\":7,\"name\":1}", "value=7@- name=1@- ", 0},
		{"{\"images/sec\":\"812.5\"}", "images/sec=812.5@- ", 0},
		{"{\"a\":true,\"b\":null,\"c\":[1],\"d\":{\"e\":1},\"f\":\"x\",\"g\":1}", "g=1@- ",
		 5},
		{"{\"a\":1,\"step\":3.0}", "a=1@3 ", 0},
		{"{\"a\":1,\"step\":3.5}", "a=1@- ", 1},
		{"{\"a\":1,\"step\":-1}", "a=1@- ", 1},
		{"{\"a\":1,\"step\":\"x\"}", "a=1@- ", 1},
		{"{\"a\":1,\"step\":1e300}", "a=1@- ", 1},
		{"{}", "", 0},
		{"", "", 0},
		{"  \t ", "", 0},
		{"[1]", "", 1},
		{"7", "", 1},
		{"{\"a\":NaN}", "", 1},
		{"{\"a\":1", "", 1},
		{"{\"a\":1e999}", "", 1},
		{"loss=1", "", 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct extract *ex = samples_extractor(NULL, 0);
		struct buf got;

		buf_init(&got, 4096);
		extract_json_line(ex, str_from(rows[i].line), samples_note, &got);
		samples_equal(&got, rows[i].want);
		if (extract_bad(ex) != rows[i].bad)
			fail_msg("%s: %llu bad", rows[i].line, (unsigned long long)extract_bad(ex));
		extract_free(ex);
		buf_release(&got);
	}
}

static void bad_patterns_are_refused_by_name_with_the_place(void **state)
{
	static const struct {
		struct metric_pattern pat;
		const char *message;
	} rows[] = {
		{{"loss", "loss=(\\d+"},
		 "metric 'loss': missing closing parenthesis at offset 9 of its pattern"},
		{{NULL, "(?<name>a)(["},
		 "metric pattern 2: missing terminating ] for character class at offset 12 of its pattern"},
		{{"loss", "(\\C)"}, "metric 'loss': using \\C is disabled"},
		{{"loss", "(*UTF)(.)"}, "metric 'loss': using UTF is disabled"},
		{{"loss", "a(?C1)(.)"}, "metric 'loss': callouts, (?C...), are not supported"},
		{{"loss", "loss=\\d+"}, "metric 'loss': its pattern captures no value"},
		{{"loss", "(?<step>\\d+)"}, "metric 'loss': its pattern captures no value"},
		{{NULL, "loss=(\\d+)"}, "metric pattern 2: it has no name"},
		{{"", "loss=(\\d+)"}, "metric pattern 2: its name must have 1 to 64 bytes"},
		{{"loss", ""}, "metric 'loss': it has no pattern"},
		{{"loss", NULL}, "metric 'loss': it has no pattern"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct metric_pattern pats[] = {{"fine", "fine=(\\d+)"}, rows[i].pat};
		struct extract *ex = (struct extract *)&pats;
		struct err err = {0};

		assert_int_equal(extract_new(pats, 2, NULL, &ex, &err), -1);
		assert_ptr_equal(ex, &pats); /* set only on success */
		assert_int_equal(err.kind, ERR_INVALID);
		if (strncmp(err.msg, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("got '%s', expected '%s'", err.msg, rows[i].message);
	}
}

static void limits_of_number_and_length_are_kept(void **state)
{
	struct metric_pattern pats[EXTRACT_MAX_PATTERNS + 1];
	struct extract *ex;
	struct err err;
	char name[EXTRACT_MAX_NAME + 2], pattern[5000];

	(void)state;
	for (size_t i = 0; i < COUNT(pats); i++)
		pats[i] = loss[0];
	assert_int_equal(extract_new(pats, COUNT(pats), NULL, &ex, &err), -1);
	assert_string_equal(err.msg, "65 metric patterns: at most 64 are allowed");
	ex = samples_extractor(pats, EXTRACT_MAX_PATTERNS);
	extract_free(ex);

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	pats[0].name = name;
	assert_int_equal(extract_new(pats, 1, NULL, &ex, &err), -1);
	name[EXTRACT_MAX_NAME] = '\0';
	extract_free(samples_extractor(pats, 1));

	memset(pattern, 'x', sizeof(pattern));
	memcpy(pattern, "(.)", 3);
	pattern[4096] = '\0';
	pats[0].pattern = pattern;
	extract_free(samples_extractor(pats, 1));
	pattern[4096] = 'x';
	pattern[4097] = '\0';
	assert_int_equal(extract_new(pats, 1, NULL, &ex, &err), -1);
	assert_non_null(strstr(err.msg, "longer than 4096 bytes"));
	assert_int_equal(extract_new(loss, 1, "a\nb", &ex, &err), -1);
	assert_string_equal(err.msg, "the metric prefix holds a newline");
}

static void all_64_patterns_and_the_prefix_find_their_lines(void **state)
{
	struct metric_pattern pats[EXTRACT_MAX_PATTERNS];
	struct buf text, want;

	(void)state;
	buf_init(&text, 1u << 20);
	buf_init(&want, 1u << 20);
	for (size_t i = 0; i < COUNT(pats); i++) {
		pats[i].name = xasprintf("m%zu", i);
		pats[i].pattern = xasprintf("\\bkey%zu=(\\d+)", i);
		buf_printf(&text, "some words key%zu=%zu and more\nno figure on this line\n", i,
			   i * 3);
		buf_printf(&want, "m%zu=%zu@- ", i, i * 3);
	}
	buf_addz(&text, "**metrics_data: last=1");
	buf_addz(&want, "last=1@- ");
	expect_of(pats, COUNT(pats), buf_str(&text), want.p, 0);
	for (size_t i = 0; i < COUNT(pats); i++) {
		free((void *)(uintptr_t)pats[i].name);
		free((void *)(uintptr_t)pats[i].pattern);
	}
	buf_release(&text);
	buf_release(&want);
}

/* n bytes of `fill` around nothing, then `tail`. */
static void repeat(struct buf *b, const char *fill, size_t n, const char *tail)
{
	buf_init(b, 4u << 20);
	while (b->n < n)
		buf_addz(b, fill);
	buf_addz(b, tail);
}

static void a_catastrophic_pattern_is_stopped_and_counted(void **state)
{
	static const struct metric_pattern pats[] = {
		{"boom", "(a|aa)+[^a]"},
		{"boom2", "(*NO_JIT)(a|aa)+[^a]"}, /* the interpreter has the same limits */
		{"fine", "end=(\\d+)"},
	};
	struct buf line, got;
	struct extract *ex = samples_extractor(pats, COUNT(pats));

	(void)state;
	buf_init(&got, 1u << 20);
	repeat(&line, "a", 2000, "\n");
	extract_block(ex, buf_str(&line), samples_note, &got);
	assert_int_equal(extract_bad(ex), 2);
	extract_block(ex, STR("end=5\n"), samples_note, &got);
	samples_equal(&got, "fine=5@- ");
	buf_release(&line);
	buf_release(&got);
	extract_free(ex);
}

static void a_pattern_that_always_blows_up_is_rested_and_comes_back(void **state)
{
	static const struct metric_pattern pats[] = {{"v", "(?:a|aa)+b=(\\d)|z(?:a|aa)+[^a]"}};
	struct extract *ex = samples_extractor(pats, 1);
	struct buf bad, got;

	(void)state;
	buf_init(&got, 1u << 20);
	repeat(&bad, "a", 200, "\n");
	bad.p[0] = 'z';
	/* "b=" is missing, yet the second branch has the literal: every one of these lines is tried. */
	for (int i = 0; i < 200; i++)
		extract_block(ex, buf_str(&bad), samples_note, &got);
	assert_int_equal(extract_bad(ex), 200);
	extract_block(ex, STR("ab=1\n"), samples_note, &got);
	samples_equal(&got, ""); /* resting */
	for (int i = 0; i < 5000; i++)
		extract_block(ex, STR("ab=1\n"), samples_note, &got);
	assert_true(got.n > 0);
	buf_reset(&got);
	extract_block(ex, STR("ab=1\n"), samples_note, &got);
	samples_equal(&got, "v=1@- ");
	buf_release(&bad);
	buf_release(&got);
	extract_free(ex);
}

static void a_long_line_is_matched_in_pieces_that_lose_nothing(void **state)
{
	static const struct metric_pattern pats[] = {
		{"loss", "loss=(\\d+)"}, {"bol", "^s(\\d)"}, {"eol", "(\\d)t$"}};
	static const struct metric_pattern slow[] = {{"eight", "([8])"}};
	struct buf text, want;

	(void)state;
	/* A progress bar: returns, no newline. */
	buf_init(&text, 4u << 20);
	buf_init(&want, 4u << 20);
	for (int i = 0; i < 5000; i++) {
		buf_printf(&text, "%s12/90 loss=%d\r", i % 3 ? "" : "epoch one ", i);
		buf_printf(&want, "loss=%d@- ", i);
	}
	expect_of(pats, 1, buf_str(&text), want.p, 0);
	buf_release(&text);
	buf_release(&want);

	/* Blanks only; ^ and $ mean the ends of the line, not of a piece. */
	repeat(&text, "s1 2t ", 3 * EXTRACT_PIECE_BYTES, "9t");
	expect_of(pats + 1, 2, buf_str(&text), "bol=1@- eol=9@- ", 0);
	buf_release(&text);

	/* Nothing to cut at, and a pattern without a literal that the prefilter knows. */
	repeat(&text, "x", 3 * EXTRACT_PIECE_BYTES - 1, "8\n8");
	expect_of(slow, 1, buf_str(&text), "eight=8@- eight=8@- ", 0);
	buf_release(&text);
}

static void the_pairs_of_a_long_line_are_all_read(void **state)
{
	struct buf text, want;

	(void)state;
	buf_init(&text, 4u << 20);
	buf_init(&want, 4u << 20);
	buf_addz(&text, "x **metrics_data: ");
	for (int i = 0; i < 2000; i++) {
		buf_printf(&text, "%sk%d=%d", i ? ", " : "", i, i);
		buf_printf(&want, "k%d=%d@- ", i, i);
	}
	expect_of(NULL, 0, buf_str(&text), want.p, 0);
	expect_of(loss, 1, buf_str(&text), want.p, 0);
	buf_release(&text);
	buf_release(&want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_may_match_several_patterns_and_one_several_times),
		cmocka_unit_test(lines_come_in_order_and_are_matched_apart),
		cmocka_unit_test(a_pattern_without_a_literal_sees_every_line),
		cmocka_unit_test(values_are_finite_decimals_and_others_are_counted),
		cmocka_unit_test(thousands_separators_are_no_number),
		cmocka_unit_test(a_step_is_taken_where_the_pattern_gives_one),
		cmocka_unit_test(the_number_of_steps_is_taken_where_it_makes_sense),
		cmocka_unit_test(the_name_may_come_from_the_line),
		cmocka_unit_test(a_given_name_wins_and_the_value_group_is_neither_step_nor_name),
		cmocka_unit_test(of_groups_with_one_name_the_matching_one_counts),
		cmocka_unit_test(empty_matches_end_and_are_no_samples),
		cmocka_unit_test(matches_that_begin_in_an_unusual_way_are_not_lost),
		cmocka_unit_test(case_flags_are_obeyed_although_the_prefilter_folds),
		cmocka_unit_test(bytes_need_not_be_text),
		cmocka_unit_test(the_data_prefix_gives_pairs_wherever_it_stands),
		cmocka_unit_test(another_prefix_may_be_chosen_or_none),
		cmocka_unit_test(a_name_that_the_job_file_could_not_have_is_bad),
		cmocka_unit_test(json_lines_of_every_form_are_read),
		cmocka_unit_test(bad_patterns_are_refused_by_name_with_the_place),
		cmocka_unit_test(limits_of_number_and_length_are_kept),
		cmocka_unit_test(all_64_patterns_and_the_prefix_find_their_lines),
		cmocka_unit_test(a_catastrophic_pattern_is_stopped_and_counted),
		cmocka_unit_test(a_pattern_that_always_blows_up_is_rested_and_comes_back),
		cmocka_unit_test(a_long_line_is_matched_in_pieces_that_lose_nothing),
		cmocka_unit_test(the_pairs_of_a_long_line_are_all_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
