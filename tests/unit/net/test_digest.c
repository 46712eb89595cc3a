#include "unit.h"

#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "base/hex.h"
#include "net/digest.h"

static void expect_hex(const uint8_t digest[static SHA256_BYTES], const char *want)
{
	char hex[2 * SHA256_BYTES + 1];

	hex_encode(digest, SHA256_BYTES, hex);
	assert_string_equal(hex, want);
}

static void the_hash_is_sha256(void **state)
{
	uint8_t out[SHA256_BYTES];

	(void)state;
	/* FIPS 180-4 examples. */
	sha256_of("", 0, out);
	expect_hex(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256_of("abc", 3, out);
	expect_hex(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void the_keyed_hash_is_hmac_sha256(void **state)
{
	uint8_t out[SHA256_BYTES];
	char hex[2 * SHA1_BYTES + 1];

	(void)state;
	/* RFC 4231, case 2. */
	hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
	expect_hex(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	/* FIPS 180-4 example of SHA-1. */
	sha1_of("abc", 3, out);
	hex_encode(out, SHA1_BYTES, hex);
	assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
}

static void pieces_hash_like_the_whole(void **state)
{
	struct sha256 *s = sha256_new();
	uint8_t whole[SHA256_BYTES], pieces[SHA256_BYTES];
	char text[1000];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(text); i += 100)
		sha256_add(s, text + i, 100);
	sha256_end(s, pieces);
	sha256_of(text, sizeof(text), whole);
	assert_true(digest_equal(whole, pieces, sizeof(whole)));
	pieces[31] ^= 1;
	assert_false(digest_equal(whole, pieces, sizeof(whole)));
	assert_true(digest_equal(whole, pieces, 31));
}

static void a_file_is_hashed_from_its_beginning(void **state)
{
	int fd = open(unit_path(state, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	size_t n = 600 * 1000;
	char *text = xcalloc(1, n);
	uint8_t want[SHA256_BYTES], got[SHA256_BYTES];
	uint64_t size = 0;
	struct err err = {0};

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	sha256_of(text, n, want);
	/* The descriptor stands at its end; that does not matter. */
	assert_int_equal(sha256_fd(fd, got, &size, &err), 0);
	assert_int_equal(size, n);
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(sha256_fd(fd, got, NULL, &err), 0);
	close(fd);
	free(text);
}

static void what_cannot_be_read_is_an_error(void **state)
{
	uint8_t got[SHA256_BYTES] = {7};
	uint64_t size = 3;
	struct err err = {0};

	(void)state;
	assert_int_equal(sha256_fd(-1, got, &size, &err), -1);
	assert_int_equal(err.kind, ERR_IO);
	assert_int_equal(got[0], 7);
	assert_int_equal(size, 3);
}

static void tokens_are_hex_and_never_the_same(void **state)
{
	char a[65], b[65];
	uint8_t bytes[32];

	(void)state;
	token_new(a);
	token_new(b);
	assert_int_equal(strlen(a), 64);
	assert_true(hex_decode(str_from(a), bytes));
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_sha256),
		cmocka_unit_test(the_keyed_hash_is_hmac_sha256),
		cmocka_unit_test(pieces_hash_like_the_whole),
		cmocka_unit_test_setup_teardown(a_file_is_hashed_from_its_beginning, unit_make_dir,
						unit_remove_dir),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
		cmocka_unit_test(tokens_are_hex_and_never_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
