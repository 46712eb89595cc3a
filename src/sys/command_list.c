#include "sys/command_list.h"

#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "base/err.h"
#include "sys/child_run.h"

/* True if the command failed. */
static bool run_one(struct command_list *c, const char *command, const struct deadline *d)
{
	const char *argv[] = {"/bin/sh", "-c", command, NULL};
	const struct child_job job = {
		.dir = c->dir, .in = "/dev/null", .log = c->log, .argv = argv, .env = c->env};
	const struct deadline limit = deadline_within(d, c->each_ms);
	struct err err = {0};
	int code = -1;
	int rc = child_run_job(&job, &limit, &code, &err);

	if ((rc < 0 && err.kind == ERR_CANCELLED) || code == 0)
		return false;
	if (!*c->failed && rc == 0)
		snprintf(c->failed, sizeof(c->failed), "'%.100s': exit code %d", command, code);
	else if (!*c->failed)
		snprintf(c->failed, sizeof(c->failed), "'%.80s': %.80s", command, err.msg);
	return true;
}

void command_list_run(struct command_list *c, const struct deadline *d)
{
	struct err ignored;
	size_t failed = 0;

	for (size_t i = 0; i < c->n; i++)
		if (deadline_check(d, "on_exit", &ignored) == 0)
			failed += run_one(c, c->commands[i], d);
	if (failed > 1) {
		size_t len = strlen(c->failed);

		snprintf(c->failed + len, sizeof(c->failed) - len, ", and %zu more", failed - 1);
	}
	c->done = deadline_check(d, "on_exit", &ignored) == 0;
}
