#include "cli/command/each_run.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"

void each_run_add(struct each_run *e, struct str json)
{
	buf_addz(&e->out, e->printed++ ? ",\n " : "[");
	buf_addstr(&e->out, str_trim(json));
}

int each_run_do(const struct cli_call *c,
		int (*one)(struct each_run *e, const char *run, struct err *err))
{
	CLEANUP(api_release) struct api api = {0};
	struct each_run e = {.c = c, .api = &api};
	struct err err;
	int code = 0;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	buf_init(&e.out, CLI_MAX_TEXT);
	for (size_t i = 0; i < c->nargs; i++) {
		if (c->args[i][0] == 0)
			err_set(&err, ERR_INVALID, "the name of a run is empty");
		else if (one(&e, c->args[i], &err) == 0)
			continue;
		int failed = api_fail(&api, &err);
		code = code ? code : failed;
	}
	if (c->output == OUTPUT_JSON)
		buf_addz(&e.out, e.printed ? "]\n" : "[]\n");
	int printed = cli_print(&e.out);
	buf_release(&e.out);
	return code ? code : printed;
}
