/* Engines as the commands about engines see them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "driver/driver.h"
#include "driver/engine_tools.h"
#include "driver/master_way.h"
#include "driver/results.h"
#include "web/page.h"

static void fake_policy(const char *bucket, const char *metrics, struct buf *out)
{
	(void)metrics;
	buf_printf(out, "{\"bucket\":\"%s\"}", bucket ? bucket : "any");
}

/* Install "aaaa" has a machine, and "bbbb" has one that cannot be removed. */
static int fake_collect(const struct collect_input *in, struct arena *a, struct collection *ret,
			struct err *err)
{
	static const char *const installs[] = {"aaaa", "bbbb"};

	if (in->region && strcmp(in->region, "nowhere") == 0)
		return err_set(err, ERR_DENIED, "nobody may look there");
	ret->v = arena_array(a, struct leftover, 2);
	for (ret->n = 0; ret->n < 2; ret->n++) {
		struct leftover *l = &ret->v[ret->n];
		bool ours = in->install && strcmp(in->install, installs[ret->n]) == 0;

		*l = (struct leftover){.kind = "fake.machine",
				       .id = "m-1",
				       .region = "here",
				       .install = installs[ret->n],
				       .run = "r1",
				       .expires_ms = 1000};
		if (ours && ret->n == 1)
			l->why = "it is bolted down";
		l->state = !ours			? LEFTOVER_OTHER
			   : in->dry_run || ret->n == 1 ? LEFTOVER_FOUND
							: LEFTOVER_REMOVED;
	}
	return 0;
}

static void fine(struct checkup *c)
{
	c->v[c->n++] = (struct engine_check){"disk", CHECK_FINE, "large", NULL};
	c->v[c->n++] = (struct engine_check){"quota", CHECK_WARNING, "nobody says", "nothing"};
}

static void bad(struct checkup *c)
{
	fine(c);
	c->v[c->n++] = (struct engine_check){"keys", CHECK_BAD, "there are none", "set some"};
}

static void chosen(struct checkup *c)
{
	c->v[c->n++] = (struct engine_check){"place", CHECK_FINE,
					     arena_printf(c->a, "%s/%s",
							  c->context ? c->context : "current",
							  c->region ? c->region : "own"),
					     NULL};
}

/* The master that TEST_MASTER names by URL, pin and token; and one that cannot be spoken to. */
static int fake_masters(const struct masters_input *in, struct arena *a,
			struct running_masters *ret, struct err *err)
{
	const char *given = getenv("TEST_MASTER");
	char *text = arena_strdup(a, given ? given : "");
	const char *part[3];

	if (!given)
		return err_set(err, ERR_DENIED, "nobody may look there");
	*ret = (struct running_masters){.v = arena_array(a, struct running_master, 2),
					.region = in->region ? in->region : "here"};
	if (!*given)
		return 0;
	for (int i = 0; i < 3; i++) {
		part[i] = text;
		text += strcspn(text, " ");
		if (*text)
			*text++ = '\0';
	}
	ret->v[ret->n++] = (struct running_master){
		.run = "job-abcd",
		.install = "i1",
		.region = ret->region,
		.state = "running",
		.url = part[0],
		.pin = part[1],
		.token = part[2],
	};
	ret->v[ret->n++] = (struct running_master){
		.run = "job-efgh",
		.install = "i1",
		.region = "here",
		.state = "pending",
		.why = "it has not said where it is",
	};
	return 0;
}

const struct engine_tools *engine_tools_at(unsigned i)
{
	static const struct engine_tools all[] = {
		{.engine = "plain", .check = fine},
		{.engine = "cloudy",
		 .policy = fake_policy,
		 .collect = fake_collect,
		 .check = bad,
		 .provider = "aws",
		 .masters = fake_masters},
		{.engine = "clustered",
		 .has_contexts = true,
		 .collect = fake_collect,
		 .check = chosen,
		 .provider = "kubernetes",
		 .masters = fake_masters},
	};

	return i < sizeof(all) / sizeof(all[0]) ? &all[i] : NULL;
}

/* A run of a name that begins with "afar" is there, "refused" cannot be looked for, "nothing" is looked for
 * nowhere. */
int results_find(const char *word, const struct deadline *d, struct arena *a,
		 struct results_found *ret, struct err *err)
{
	(void)d;
	*ret = (struct results_found){0};
	if (strcmp(word, "refused") == 0)
		return err_set(err, ERR_DENIED,
			       "s3://there/runs/: AccessDenied: no (request id R1)");
	if (strcmp(word, "nothing") == 0)
		return 0;
	ret->url = "s3://there/runs/";
	if (strncmp(word, "afar", 4) == 0) {
		ret->run = arena_strdup(a, word);
		ret->credentials = "{\"access_key\":\"k\"}";
	}
	return 0;
}

/* No browser asks in these tests. */
const struct page_asset *page_find(struct str path)
{
	(void)path;
	return NULL;
}

/* No master of these tests is reached through a provider. */
bool master_way_is(const char *url)
{
	(void)url;
	return false;
}

int master_way_dial(const struct driver_master *at, const char *credentials,
		    const struct deadline *d, struct http_client **ret, struct err *err)
{
	(void)at, (void)credentials, (void)d, (void)ret;
	return err_set(err, ERR_INVALID, "nobody passes requests on here");
}
