/* Event files as TensorBoard writes them: the bytes are those of the writer of TensorBoard 2.21. */
#include "unit.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "fmt/tfevents.h"

static void assert_bytes(const struct buf *b, const char *hex)
{
	char text[1024];

	assert_true(b->n * 2 < sizeof(text));
	hex_encode(b->p, b->n, text);
	assert_string_equal(text, hex);
}

static void the_sum_is_that_of_the_standard(void **state)
{
	(void)state;
	assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c("", 0), 0);
}

static void a_file_begins_with_its_version(void **state)
{
	CLEANUP(buf_release) struct buf b = {0};
	(void)state;

	buf_init(&b, 1024);
	tfevents_begin(&b, 1.5);
	assert_bytes(&b, "1800000000000000a37f4b22"
			 "09000000000000f83f1a0d627261696e2e4576656e743a32"
			 "2a28646c");
}

static void a_scalar_is_one_record(void **state)
{
	CLEANUP(buf_release) struct buf b = {0};
	(void)state;

	buf_init(&b, 1024);
	tfevents_scalar(&b, 2, 300, STR("loss"), 0.5);
	assert_bytes(&b, "1b000000000000001a0d9e13"
			 "09000000000000004010ac022a0d0a0b0a046c6f7373150000003f"
			 "dfc52b60");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_is_that_of_the_standard),
		cmocka_unit_test(a_file_begins_with_its_version),
		cmocka_unit_test(a_scalar_is_one_record),
	};

	return cmocka_run_group_tests_name("tfevents", tests, NULL, NULL);
}
