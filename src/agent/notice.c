#include "agent/notice.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/env.h"
#include "fmt/doc.h"
#include "net/imds.h"

/* {"action": "terminate", "time": "2026-11-16T20:00:00Z"}, about two minutes before; not found
 * otherwise. */
static int64_t ask_imds(const struct deadline *d)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct env_lookup env = {0};
	struct doc *doc = NULL;
	int64_t at_ms = 0;

	buf_init(&text, 4096);
	if (imds_get(&env, "spot/instance-action", d, &text, NULL) < 0 ||
	    json_parse(buf_str(&text), a, &doc, NULL) < 0)
		return 0;
	return clock_parse(doc_str(doc, "time", STR("")), &at_ms) && at_ms > 0 ? at_ms : 0;
}

static const struct {
	const char *from;
	int64_t (*ask)(const struct deadline *d);
} sources[] = {{"imds", ask_imds}};

int64_t notice_ask(const char *from, const struct deadline *d)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (strcmp(sources[i].from, from) == 0)
			return sources[i].ask(d);
	return 0;
}
