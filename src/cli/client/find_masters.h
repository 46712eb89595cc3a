#pragma once
/*
 * find_masters - masters on machines of a provider (engine_tools.masters), found by whoever may look at the
 * provider and written into this home as contexts with the names of their runs.
 */
struct arena;
struct err;
struct running_masters;

/* provider NULL: all.  ERR_NOT_FOUND: there is no such provider.  One whose context cannot be written gets
 * a reason. */
int masters_find(const char *home, const char *provider, const char *region, struct arena *a,
		 struct running_masters *ret, struct err *err);
