#include "sys/off_timer.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "sys/child.h"

#define MINUTE_MS 60000

static int run(const char *command, struct err *err)
{
	const char *const argv[] = {"sh", "-c", command, NULL};
	struct child_spec spec = {.file = "/bin/sh",
				  .argv = argv,
				  .env = (const char *const *)environ,
				  .in = -1,
				  .out = -1,
				  .err = 2,
				  .session = true};

	return child_spawn_detached(&spec, err);
}

int off_timer_set(const char *file, int64_t wall_ms, struct err *err)
{
	int64_t left = (wall_ms - clock_wall_ms()) / MINUTE_MS;
	char text[64];

	snprintf(text, sizeof(text), "%" PRId64 "\n", wall_ms / 1000);
	if (file_write_atomic(file, str_from(text), 0644, true, err) < 0)
		return -1;
	snprintf(text, sizeof(text), "shutdown -h +%" PRId64, left > 1 ? left : 1);
	return run(text, err);
}

int off_now(struct err *err)
{
	return run("shutdown -h now", err);
}
