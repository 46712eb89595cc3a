#include "unit.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/rand.h"

static void bytes_become_hex_and_back(void **state)
{
	unsigned char all[256], back[256];
	char text[513];

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	hex_encode(all, sizeof(all), text);
	assert_int_equal(strlen(text), 512);
	assert_memory_equal(text, "000102", 6);
	assert_string_equal(text + 506, "fdfeff");
	assert_true(hex_decode((struct str){text, 512}, back));
	assert_memory_equal(all, back, sizeof(all));
	assert_true(hex_decode(STR("AbCdEfFf"), back));
	assert_memory_equal(back, "\xab\xcd\xef\xff", 4);
	hex_encode("", 0, text);
	assert_string_equal(text, "");
	assert_true(hex_decode(STR(""), back));
}

static void what_is_not_hex_is_refused_and_writes_nothing(void **state)
{
	static const char *const bad[] = {"a", "abc", "0g", "0x", " a", "a ", "00zz", "\xff\xff"};
	unsigned char out[4] = {9, 9, 9, 9};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (hex_decode(str_from(bad[i]), out))
			fail_msg("'%s' was taken", bad[i]);
	assert_memory_equal(out, "\t\t\t\t", 4);
}

/* RFC 4648, section 10. */
static void base64_follows_the_published_vectors(void **state)
{
	static const struct {
		const char *plain, *coded;
	} cases[] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
		{"\xfb\xff\xbe", "+/++"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf b;

		buf_init(&b, 100);
		b64_encode(&b, cases[i].plain, strlen(cases[i].plain));
		assert_string_equal(buf_str(&b).p, cases[i].coded);
		buf_release(&b);
	}
}

static void base64_keeps_to_the_maximum(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 7);
	b64_encode(&b, "foob", 4);
	assert_true(b.overflow);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

static void base64_is_read_up_to_what_is_none(void **state)
{
	static const struct {
		const char *coded, *plain;
	} cases[] = {
		{"Zm9vYmFy", "foobar"}, {"Zm9v\nYg==\n", "foob"}, {"Zm9vYmE=", "fooba"}, {"", ""},
		{"Zm9v!Zm9v", "foo"},
	};
	struct buf b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_init(&b, 100);
		b64_decode(&b, str_from(cases[i].coded));
		assert_string_equal(buf_str(&b).p, cases[i].plain);
		buf_release(&b);
	}
	buf_init(&b, 2);
	b64_decode(&b, STR("Zm9v"));
	assert_true(b.overflow);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_become_hex_and_back),
		cmocka_unit_test(what_is_not_hex_is_refused_and_writes_nothing),
		cmocka_unit_test(base64_follows_the_published_vectors),
		cmocka_unit_test(base64_keeps_to_the_maximum),
		cmocka_unit_test(base64_is_read_up_to_what_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
