#include "cli/command/engine_input.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "driver/engine_tools.h"

static void say_unknown(const char *command, const char *name,
			bool (*does)(const struct engine_tools *))
{
	const struct engine_tools *t;
	CLEANUP(buf_release) struct buf all = {0};

	buf_init(&all, 400);
	for (unsigned i = 0; (t = engine_tools_at(i)); i++)
		if (does(t))
			buf_printf(&all, "%s%s", all.n ? ", " : "", t->engine);
	cli_say("%s: there is no engine '%.80s': it can be %s", command, name, buf_str(&all).p);
}

static const char *engine_with_contexts(void)
{
	const struct engine_tools *t;

	for (unsigned i = 0; (t = engine_tools_at(i)); i++)
		if (t->has_contexts)
			return t->engine;
	return "none";
}

/* Options of one engine must not be lost on another: gc would remove things elsewhere. */
static const struct engine_tools *with_options(const struct cli_call *c,
					       const struct engine_tools *t)
{
	static const char *const options[] = {"kube-context", "namespace"};

	for (size_t i = 0; !t->has_contexts && i < sizeof(options) / sizeof(options[0]); i++) {
		if (!call_text(c, options[i]))
			continue;
		cli_say("%s: --%s goes with --engine %s", c->command->name, options[i],
			engine_with_contexts());
		return NULL;
	}
	return t;
}

const struct engine_tools *engine_input(const struct cli_call *c,
					bool (*does)(const struct engine_tools *))
{
	const struct engine_tools *t, *one = NULL;
	const char *name = call_text(c, "engine");
	bool known = false;

	for (unsigned i = 0; (t = engine_tools_at(i)); i++) {
		bool named = !name || strcmp(t->engine, name) == 0;

		if (named && does(t))
			return with_options(c, t);
		known |= named;
		if (does(t))
			one = t;
	}
	if (known)
		cli_say("%s: engine '%.80s' does not do that: %s does", c->command->name, name,
			one ? one->engine : "none");
	else
		say_unknown(c->command->name, name, does);
	return NULL;
}
