#pragma once
/*
 * find_masters - masters on machines of a provider (engine_tools.masters), found by whoever may look at the
 * provider and written into this home as contexts with the names of their runs.
 */
struct arena;
struct err;
struct masters_input;
struct running_masters;

/* ERR_NOT_FOUND: there is no such provider.  One whose context cannot be written gets a reason.  A context that was
 * found in the same place before, and whose master is not there any more, is removed.  `stop` of where: not heeded. */
int masters_find(const char *home, const char *provider, const struct masters_input *where,
		 struct arena *a, struct running_masters *ret, struct err *err);
