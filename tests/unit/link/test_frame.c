/* Frames: the bytes on the wire, and what is refused. */
#include "unit.h"

#include <string.h>

#include "link/frame.h"

static void the_header_is_little_endian(void **state)
{
	static const uint8_t want[FRAME_HEADER] = {0x04,       0x03, 0x02, 0x00,
						   FRAME_DATA, 0x80, 0x0b, 0x0a};
	uint8_t got[FRAME_HEADER];

	(void)state;
	frame_header(got, FRAME_DATA, 0x80, 0x0a0b, 0x020304);
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(frame_size(got), FRAME_HEADER + 0x020304);
}

static void a_frame_comes_back_and_needs_every_byte(void **state)
{
	uint8_t in[FRAME_HEADER + 5 + 3];
	struct frame f;
	size_t used = 99;

	(void)state;
	frame_header(in, FRAME_BYE, 0, 2, 5);
	memcpy(in + FRAME_HEADER, "helloxyz", 8);
	for (size_t n = 0; n < FRAME_HEADER + 5; n++) {
		assert_int_equal(frame_decode((struct str){(char *)in, n}, &f, &used), 0);
		assert_int_equal(used, 99);
	}
	assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used), 1);
	assert_int_equal(used, FRAME_HEADER + 5);
	assert_int_equal(f.type, FRAME_BYE);
	assert_int_equal(f.flags, 0);
	assert_int_equal(f.channel, 2);
	assert_true(str_is(f.payload, "hello"));
}

static void an_empty_payload_is_a_frame(void **state)
{
	uint8_t in[FRAME_HEADER];
	struct frame f;
	size_t used;

	(void)state;
	frame_header(in, FRAME_PING, 0, 0, 0);
	assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used), 1);
	assert_int_equal(used, FRAME_HEADER);
	assert_int_equal(f.payload.n, 0);
}

static void flags_are_refused_at_once(void **state)
{
	uint8_t in[FRAME_HEADER];
	struct frame f;
	size_t used;

	(void)state;
	for (int flag = 1; flag <= 0x80; flag <<= 1) {
		frame_header(in, FRAME_PING, (uint8_t)flag, 0, 5);
		assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used), -1);
	}
}

static void a_length_past_the_limit_is_refused_at_once(void **state)
{
	uint8_t in[FRAME_HEADER];
	struct frame f;
	size_t used;

	(void)state;
	frame_header(in, FRAME_DATA, 0, 0, FRAME_MAX_PAYLOAD);
	assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used), 0);
	frame_header(in, FRAME_DATA, 0, 0, FRAME_MAX_PAYLOAD + 1);
	assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used), -1);
	frame_header(in, FRAME_DATA, 0, 0, UINT32_MAX);
	assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used), -1);
}

static void only_known_types_are_frames(void **state)
{
	uint8_t in[FRAME_HEADER];
	struct frame f;
	size_t used;

	(void)state;
	for (int type = 0; type < 256; type++) {
		bool known = type >= FRAME_HELLO && type <= FRAME_TYPE_MAX;

		frame_header(in, (uint8_t)type, 0, 0, 0);
		assert_int_equal(frame_decode((struct str){(char *)in, sizeof(in)}, &f, &used),
				 known ? 1 : -1);
		assert_true((frame_type_name((uint8_t)type) != NULL) == known);
	}
	assert_string_equal(frame_type_name(FRAME_COLLECTED), "collected");
}

static void data_carries_its_offset(void **state)
{
	uint8_t in[8 + 3];
	uint64_t offset = 1;
	struct str bytes = STR("untouched");

	(void)state;
	data_offset_put(in, UINT64_C(0x0102030405060708));
	assert_int_equal(in[0], 8);
	assert_int_equal(in[7], 1);
	memcpy(in + 8, "abc", 3);
	for (size_t n = 0; n < 8; n++)
		assert_false(data_payload((struct str){(char *)in, n}, &offset, &bytes));
	assert_int_equal(offset, 1);
	assert_true(data_payload((struct str){(char *)in, 8}, &offset, &bytes));
	assert_int_equal(bytes.n, 0);
	assert_true(data_payload((struct str){(char *)in, sizeof(in)}, &offset, &bytes));
	assert_true(offset == UINT64_C(0x0102030405060708));
	assert_true(str_is(bytes, "abc"));
}

static void streams_have_names_and_files(void **state)
{
	(void)state;
	assert_string_equal(stream_name(STREAM_OUT), "out");
	assert_string_equal(stream_suffix(STREAM_OUT), ".log");
	assert_string_equal(stream_name(STREAM_ERR), "err");
	assert_string_equal(stream_suffix(STREAM_ERR), ".err.log");
	assert_string_equal(stream_name(STREAM_METRICS), "metrics");
	assert_string_equal(stream_suffix(STREAM_METRICS), ".metrics.log");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_is_little_endian),
		cmocka_unit_test(a_frame_comes_back_and_needs_every_byte),
		cmocka_unit_test(an_empty_payload_is_a_frame),
		cmocka_unit_test(flags_are_refused_at_once),
		cmocka_unit_test(a_length_past_the_limit_is_refused_at_once),
		cmocka_unit_test(only_known_types_are_frames),
		cmocka_unit_test(data_carries_its_offset),
		cmocka_unit_test(streams_have_names_and_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
