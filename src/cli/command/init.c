/* regatta init - a commented job file to start from; never overwrites. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "fmt/jsonw.h"
#include "fmt/schema.h"
#include "spec/job.h"
#include "strategy/strategy.h"

#define DEFAULT_FILE "job.toml"
#define DEFAULT_STRATEGY "single"

static int no_template(const char *strategy, struct err *err)
{
	const char *const *names = strategy_names();
	char list[160] = "";
	size_t n = 0, used = 0;

	for (; names[n]; n++) {
		int m = job_template(names[n]) ? snprintf(list + used, sizeof(list) - used, "%s%s",
							  used ? ", " : "", names[n])
					       : 0;
		used += m > 0 && (size_t)m < sizeof(list) - used ? (size_t)m : 0;
	}
	const char *near = suggest_word(names, n, str_from(strategy));
	if (near && job_template(near))
		return err_set(err, ERR_INVALID, "no strategy '%.60s': did you mean '%s'?",
			       strategy, near);
	return err_set(err, ERR_INVALID, "no strategy '%.60s': choose from %s", strategy, list);
}

static int write_new(const char *path, const char *text, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 && errno == EEXIST)
		return err_set(
			err, ERR_CONFLICT,
			"'%.100s' exists and is not overwritten: choose another with -o FILE",
			path);
	if (fd < 0)
		return err_errno(err, errno, "create '%.100s'", path);
	if (file_write_all(fd, text, strlen(text), err) == 0)
		return 0;
	unlink(path);
	return err_wrap(err, "write '%.100s'", path);
}

int command_init(const struct cli_call *c)
{
	const char *strategy = call_arg(c, 0) ? call_arg(c, 0) : DEFAULT_STRATEGY;
	const char *path = call_text(c, "to") ? call_text(c, "to") : DEFAULT_FILE;
	const char *text = job_template(strategy);
	CLEANUP(buf_release) struct buf out = {0};
	struct err err;

	buf_init(&out, CLI_MAX_TEXT);
	if (!text) {
		no_template(strategy, &err);
		return cli_fail(&err);
	}
	if (strcmp(path, "-") == 0) {
		buf_addz(&out, text);
		return cli_print_text(c, "job", &out);
	}
	if (write_new(path, text, &err) < 0)
		return cli_fail(&err);
	if (c->output == OUTPUT_JSON) {
		struct jsonw w;
		jsonw_init(&w, &out);
		jsonw_open(&w, '{');
		jsonw_kz(&w, "file", path);
		jsonw_kz(&w, "strategy", strategy);
		jsonw_close(&w);
		buf_addc(&out, '\n');
		return cli_print(&out);
	}
	cli_say("wrote %s: edit it, then 'regatta run %s'", path, path);
	return 0;
}
