#pragma once
/*
 * env - variables read through whoever has them.
 *
 * A master acts for many people and must not read its own environment for them: what they set
 * comes with the run.  {0} is this process's own environment.
 */
#include <stdlib.h>

struct env_lookup {
	/* NULL: getenv.  Returns NULL if there is no such variable; the text outlives the lookup. */
	const char *(*get)(void *ctx, const char *name);
	void *ctx;
};

/* NULL if it is not set, or empty. */
static inline const char *env_get(const struct env_lookup *e, const char *name)
{
	const char *value = e->get ? e->get(e->ctx, name) : getenv(name);

	return value && *value ? value : NULL;
}
