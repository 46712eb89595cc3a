#include "cli/client/find_masters.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/contexts.h"
#include "cli/client/interrupt.h"
#include "driver/engine_tools.h"

static void keep(const char *home, struct running_master *m, struct arena *a)
{
	const struct context c = {.url = m->url,
				  .pin = m->pin,
				  .token = m->token,
				  .run = m->run,
				  .region = m->region};
	struct err err = {0};

	if (m->url && context_write(home, m->run, &c, &err) < 0)
		m->why = arena_strdup(a, err.msg);
}

static bool has_run(const struct running_masters *all, const char *run)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].run, run) == 0)
			return true;
	return false;
}

/* The contexts of masters that were found in this region, and are not there any more. */
static void forget_gone(const char *home, const struct running_masters *all, struct arena *a)
{
	const char **names;
	struct context c;
	size_t n;

	if (context_list(home, a, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (context_read(home, names[i], a, &c, NULL) == 0 && c.run && c.region &&
		    strcmp(c.region, all->region) == 0 && !has_run(all, c.run))
			(void)context_remove(home, names[i], NULL);
}

static const struct engine_tools *tools_of(const char *provider)
{
	const struct engine_tools *tools;

	for (unsigned i = 0; (tools = engine_tools_at(i)); i++)
		if (tools->provider && strcmp(provider, tools->provider) == 0)
			break;
	return tools;
}

int masters_find(const char *home, const char *provider, const struct masters_input *where,
		 struct arena *a, struct running_masters *ret, struct err *err)
{
	const struct engine_tools *tools = tools_of(provider);
	struct masters_input in = *where;

	in.stop = interrupt_flag;
	if (!tools)
		return err_set(err, ERR_NOT_FOUND, "no provider '%.40s' has masters", provider);
	if (tools->masters(&in, a, ret, err) < 0)
		return -1;
	forget_gone(home, ret, a);
	for (size_t i = 0; i < ret->n; i++)
		keep(home, &ret->v[i], a);
	return 0;
}
