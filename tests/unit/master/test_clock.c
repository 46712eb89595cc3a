/* The master's clock and the wall clock. */
#include "unit.h"

#include "master/clock.h"

#define HOUR INT64_C(3600000)
#define WALL INT64_C(1700000000000)
#define BOOT "5a6c0b4e-8f7f-4a57-9d0e-0f6a5a2d9c11"
#define OTHER "0d1b1c1c-1111-4a57-9d0e-0f6a5a2d9c11"

static int64_t now(void **state, const char *boot_id, int64_t boot_ms, int64_t wall_ms,
		   int64_t last_ms)
{
	return clock_base_for(*state, boot_id, boot_ms, wall_ms, last_ms) + boot_ms;
}

static void it_begins_with_the_wall_clock(void **state)
{
	assert_int_equal(now(state, BOOT, 1000, WALL, 0), WALL);
}

static void a_jump_of_the_wall_clock_between_two_masters_is_not_seen(void **state)
{
	assert_int_equal(now(state, BOOT, 1000, WALL, 0), WALL);
	assert_int_equal(now(state, BOOT, 3000, WALL + 2000 + HOUR, WALL + 500), WALL + 2000);
	assert_int_equal(now(state, BOOT, 4000, WALL - 8766 * HOUR, WALL + 2500), WALL + 3000);
}

static void another_boot_begins_again(void **state)
{
	assert_int_equal(now(state, BOOT, 50000, WALL, 0), WALL);
	assert_int_equal(now(state, OTHER, 1000, WALL + HOUR, WALL + 1), WALL + HOUR);
	assert_int_equal(now(state, OTHER, 2000, WALL, WALL + HOUR), WALL + HOUR + 1000);
}

static void it_never_goes_behind_what_is_written(void **state)
{
	assert_int_equal(now(state, BOOT, 1000, WALL, WALL + HOUR), WALL + HOUR);
	assert_int_equal(now(state, BOOT, 2000, WALL, WALL + 3 * HOUR), WALL + 3 * HOUR);
	assert_int_equal(now(state, BOOT, 3000, WALL, 0), WALL + 3 * HOUR + 1000);
}

static void without_a_boot_id_or_with_a_spoilt_file_it_is_the_wall_clock(void **state)
{
	static const char *const spoilt[] = {"",	" ",	     BOOT,	BOOT " ",
					     BOOT " x", BOOT " 1 2", "\377\377"};

	assert_int_equal(now(state, "", 1000, WALL, 0), WALL);
	assert_false(file_exists(unit_path(state, "clock")));
	for (size_t i = 0; i < COUNT(spoilt); i++) {
		assert_int_equal(
			file_write(unit_path(state, "clock"), str_from(spoilt[i]), 0600, NULL), 0);
		assert_int_equal(now(state, BOOT, 1000, WALL, 0), WALL);
	}
}

int main(void)
{
#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		on_dir(it_begins_with_the_wall_clock),
		on_dir(a_jump_of_the_wall_clock_between_two_masters_is_not_seen),
		on_dir(another_boot_begins_again),
		on_dir(it_never_goes_behind_what_is_written),
		on_dir(without_a_boot_id_or_with_a_spoilt_file_it_is_the_wall_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
