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
static void forget_gone(const char *home, const struct running_masters *all, const char *region,
			struct arena *a)
{
	const char **names;
	struct context c;
	size_t n;

	if (context_list(home, a, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (context_read(home, names[i], a, &c, NULL) == 0 && c.run && c.region &&
		    strcmp(c.region, region) == 0 && !has_run(all, c.run))
			(void)context_remove(home, names[i], NULL);
}

static void add(struct running_masters *all, const struct running_masters *more, struct arena *a)
{
	struct running_master *v = arena_array(a, struct running_master, all->n + more->n + 1);

	for (size_t i = 0; i < all->n; i++)
		v[i] = all->v[i];
	for (size_t i = 0; i < more->n; i++)
		v[all->n + i] = more->v[i];
	*all = (struct running_masters){v, all->n + more->n};
}

int masters_find(const char *home, const char *provider, const char *region, struct arena *a,
		 struct running_masters *ret, struct err *err)
{
	struct running_masters all = {0}, found;
	const struct engine_tools *tools;
	bool known = false;

	for (unsigned i = 0; (tools = engine_tools_at(i)); i++) {
		struct masters_input in = {.region = region, .stop = interrupt_flag};

		if (!tools->provider || (provider && strcmp(provider, tools->provider) != 0))
			continue;
		known = true;
		if (tools->masters(&in, a, &found, err) < 0)
			return -1;
		add(&all, &found, a);
		forget_gone(home, &found, found.region, a);
	}
	if (!known)
		return err_set(err, ERR_NOT_FOUND, "no provider '%.40s' has masters",
			       provider ? provider : "");
	for (size_t i = 0; i < all.n; i++)
		keep(home, &all.v[i], a);
	*ret = all;
	return 0;
}
