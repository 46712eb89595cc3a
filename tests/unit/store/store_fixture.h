#pragma once
/* store_fixture - small worlds to store: a plan, a run with its state, and all of it as text. */
#include "unit.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/rand.h"
#include "store/store.h"

#define FIXTURE_NODES 3
#define FIXTURE_RESOURCES 2

/* Opens a store that must open. */
struct store *fixture_open(const char *home);
void fixture_commit(struct store *st);
const char *fixture_home(const struct store *st);
/* True if something was written since store_begin(). */
bool fixture_dirty(const struct store *st);
int fixture_count(struct store *st, bool active);
/* A run added inside the open transaction; its number. */
int64_t fixture_add(struct store *st, const char *id);

/* A core_run with its plan, made by hand: zeroed rows for FIXTURE_NODES and FIXTURE_RESOURCES. */
struct core_run *fixture_run(void);
void fixture_run_free(struct core_run *r);

/* Everything that the store tells about its runs, one line each; owned. */
char *fixture_dump(struct store *st);

/* The seed of a random test: $REGATTA_TEST_SEED, or a new one; printed. */
uint64_t fixture_seed(const char *test);

#define assert_ok(call, e)                                                                         \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, (e)->msg);                                       \
	} while (0)
#define assert_fails(call, e, wanted_kind, text)                                                   \
	do {                                                                                       \
		memset((e), 0, sizeof(*(e)));                                                      \
		assert_int_equal((call), -1);                                                      \
		if (!strstr((e)->msg, (text)))                                                     \
			fail_msg("'%s' lacks '%s'", (e)->msg, (text));                             \
		assert_string_equal(err_kind_name((e)->kind), err_kind_name(wanted_kind));         \
	} while (0)
