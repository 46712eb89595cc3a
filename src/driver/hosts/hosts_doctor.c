/* Engine hosts: is there a master, and who has joined it. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/engine_tools.h"
#include "fmt/doc.h"

#define LISTEN "start one that hosts can reach: regatta master --listen 0.0.0.0:5436"
#define JOIN                                                                                       \
	"run on each the line that 'regatta master --listen 0.0.0.0:5436' prints: regatta agent --join ..."

static bool is_gone(const struct doc *host)
{
	return str_is(doc_str(host, "state", STR("")), "gone");
}

static bool is_older(const struct doc *host)
{
	struct str version = doc_str(host, "version", STR(""));

	return version.n > 0 && !str_is(version, REGATTA_VERSION);
}

/* The names of those that are so, with commas between them, and their number. */
static const char *names_of(const struct doc *hosts, bool (*is)(const struct doc *),
			    struct arena *a, size_t *ret_n)
{
	const char *names = "";

	*ret_n = 0;
	for (size_t i = 0; i < hosts->array.n; i++) {
		struct str name = doc_str(hosts->array.v[i], "name", STR("?"));

		if (is(hosts->array.v[i]))
			names = arena_printf(a, "%s%s%.*s", names, (*ret_n)++ ? ", " : "",
					     STR_ARG(name));
	}
	return names;
}

static void check_hosts(struct checkup *c, const struct doc *hosts)
{
	size_t all = hosts ? hosts->array.n : 0, gone, older;

	if (all == 0) {
		checkup_add(c, "hosts", CHECK_BAD, "no host has joined the master", JOIN);
		return;
	}
	const char *names = names_of(hosts, is_gone, c->a, &gone);

	if (gone == 0)
		checkup_add(c, "hosts", CHECK_FINE,
			    arena_printf(c->a, "%zu joined: regatta hosts", all), NULL);
	else
		checkup_add(
			c, "hosts", gone == all ? CHECK_BAD : CHECK_WARNING,
			arena_printf(c->a, "%zu of %zu are gone: %s", gone, all, names),
			"start their agents again, or forget them: regatta hosts --forget NAME");
	names = names_of(hosts, is_older, c->a, &older);
	if (older > 0)
		checkup_add(c, "versions", CHECK_WARNING,
			    arena_printf(c->a, "not " REGATTA_VERSION ": %s", names),
			    "install this version there");
}

static void check(struct checkup *c)
{
	struct doc *root = NULL;
	struct err err = {0};

	if (c->ask(c->ctx, "/api/v1/hosts", c->a, &root, &err) < 0) {
		checkup_add(c, "master", CHECK_BAD, err.msg, LISTEN);
		return;
	}
	checkup_add(c, "master", CHECK_FINE, "answers", NULL);
	check_hosts(c, doc_array(root, "hosts"));
}

const struct engine_tools hosts_tools = {
	.engine = "hosts",
	.check = check,
};
