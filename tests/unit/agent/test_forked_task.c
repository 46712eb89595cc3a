/* Work in a forked child: its text comes back whatever its sockets do. */
#include "unit.h"

#include <sys/socket.h>

#include "agent/forked_task.h"
#include "base/buf.h"
#include "base/clock.h"
#include "sys/loop.h"

struct seen {
	struct loop *loop;
	char text[64];
};

static void write_to_nobody(void *ctx, struct buf *out)
{
	int pair[2];

	(void)ctx;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return;
	close(pair[1]);
	buf_addz(out, write(pair[0], "x", 1) < 0 ? "an error" : "written");
}

static void take(void *ctx, struct str text)
{
	struct seen *s = ctx;

	snprintf(s->text, sizeof(s->text), "%.*s", STR_ARG(text));
	loop_stop(s->loop);
}

static void a_peer_that_hangs_up_does_not_end_the_task(void **state)
{
	struct seen s = {.loop = loop_new()};
	struct forked_task *t;

	(void)state;
	assert_int_equal(forked_task_start(s.loop, write_to_nobody, take, &s, &t, NULL), 0);
	loop_run(s.loop);
	assert_string_equal(s.text, "an error");
	forked_task_free(t);
	loop_free(s.loop);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_hangs_up_does_not_end_the_task),
	};

	return cmocka_run_group_tests_name("agent: forked task", tests, NULL, NULL);
}
