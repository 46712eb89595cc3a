/* How long a host keeps what jobs left for a master that does not come back. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "host/internal.h"
#include "sys/loop.h"

#define PIN "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)

static int64_t now_ms;
static int expired;
int64_t __wrap_clock_boot_ms(void);
void __real_loop_timer_set(struct loop_timer *t, int64_t delay_ms);
void __wrap_loop_timer_set(struct loop_timer *t, int64_t delay_ms);
void __wrap_host_nodes_expire(struct host_daemon *h);

int64_t __wrap_clock_boot_ms(void)
{
	return now_ms;
}

/* An hour is a millisecond. */
void __wrap_loop_timer_set(struct loop_timer *t, int64_t delay_ms)
{
	__real_loop_timer_set(t, delay_ms >= HOUR_MS ? delay_ms / HOUR_MS : delay_ms);
}

void __wrap_host_nodes_expire(struct host_daemon *h)
{
	(void)h;
	expired++;
}

/* The daemon looks every hour: so many rounds of up to 2 ms, or until it has expired. */
static bool expires_at(struct host_daemon *h, int64_t at_ms, int rounds)
{
	now_ms = at_ms;
	expired = 0;
	for (int i = 0; i < rounds && !expired; i++)
		loop_round(h->loop, 2);
	return expired;
}

static void nodes_are_kept_for_seven_days_without_a_master(void **state)
{
	/* Nobody listens there. */
	const struct host_options o = {.url = "https://127.0.0.1:1", .pin = PIN};
	struct host_daemon h = {.o = &o, .loop = loop_new()};
	struct err err = {0};

	(void)state;
	list_init(&h.asks);
	now_ms = DAY_MS;
	assert_int_equal(host_link_init(&h, &err), 0);
	assert_false(expires_at(&h, DAY_MS, 20));
	assert_false(expires_at(&h, 8 * DAY_MS - 1, 20));
	assert_true(expires_at(&h, 8 * DAY_MS, 10000));
	h.joined = true;
	assert_false(expires_at(&h, 80 * DAY_MS, 20));
	host_link_release(&h);
	loop_free(h.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_kept_for_seven_days_without_a_master),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
