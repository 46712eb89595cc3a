#pragma once
/* unit - what every cmocka test needs, in the order that cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* REGATTA_TEST_ONLY names the one test of the program that is to run. */
__attribute__((constructor)) static void unit_only(void)
{
	const char *name = getenv("REGATTA_TEST_ONLY");

	if (name && *name)
		cmocka_set_test_filter(name);
}

/* A setup and teardown pair: *state is the path of a new empty directory. */
static inline int unit_make_dir(void **state)
{
	const char *base = getenv("TMPDIR");
	char *dir = xasprintf("%s/regatta-unit-XXXXXX", base && *base ? base : "/tmp");

	if (!mkdtemp(dir)) {
		free(dir);
		return -1;
	}
	*state = dir;
	return 0;
}

static inline int unit_remove_dir(void **state)
{
	int rc = file_remove_tree(*state, NULL);

	free(*state);
	return rc;
}

/* A path below the directory of *state, in a ring of static buffers. */
static inline const char *unit_path(void **state, const char *name)
{
	static char ring[16][512];
	static unsigned next;
	char *out = ring[next++ % COUNT(ring)];

	snprintf(out, sizeof(ring[0]), "%s/%s", (const char *)*state, name);
	return out;
}
