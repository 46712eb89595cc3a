#include "sys/command_list.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "sys/child_run.h"

#define CODE_MAX_BYTES (64 * 1024)

/* The exit code is printed: another thread of the process may have reaped the child. */
static const char script[] =
	"(cd \"$1\" && exec /bin/sh -c \"$2\") >>\"$3\" 2>&1 </dev/null; echo $?";

/* True if the command failed. */
static bool run_one(struct command_list *c, const char *command, const struct deadline *d)
{
	const char *argv[] = {"sh", "-c", script, "sh", c->dir, command, c->log, NULL};
	const struct child_spec spec = {.file = "/bin/sh",
					.argv = argv,
					.env = c->env,
					.in = -1,
					.out = CHILD_KEPT,
					.err = -1,
					.session = true};
	const struct deadline limit = deadline_within(d, c->each_ms);
	CLEANUP(buf_release) struct buf out = {0};
	struct err err = {0};
	int64_t code = -1;
	int status;

	buf_init(&out, CODE_MAX_BYTES);
	int rc = child_run(spec, &limit, &out, &status, &err);

	if (rc < 0 && err.kind == ERR_CANCELLED)
		return false;
	if (rc == 0 && !str_to_i64(str_trim(buf_str(&out)), &code))
		err_set(&err, ERR_IO, "it was killed");
	if (rc == 0 && code == 0)
		return false;
	if (!*c->failed && code > 0)
		snprintf(c->failed, sizeof(c->failed), "'%.100s': exit code %lld", command,
			 (long long)code);
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
