/*
 * gc_shared - role and instance profile of an install's masters.
 *
 * They have no run and cost nothing.  They go when nothing else of the install is left, in any region:
 * a master that runs loses its permissions without them.
 */
#include <string.h>

#include "driver/aws/gc/gc.h"
#include "driver/driver.h"

static const struct gc_kind shared_kinds[] = {{.name = "iam.profile"}, {.name = "iam.role"}};
static const struct driver *const shared_drivers[] = {&iam_profile_driver, &iam_role_driver};
#define NSHARED (sizeof(shared_kinds) / sizeof(shared_kinds[0]))
#define PREFIX "regatta-"

/* The install's own pair, whose names are known. */
static int find_pair(struct gc *g, const char *install, struct err *err)
{
	for (size_t i = 0; i < NSHARED; i++) {
		struct gc_item like = {
			.kind = &shared_kinds[i],
			.is = {.kind = shared_kinds[i].name,
			       .id = arena_printf(g->a, PREFIX "%s", install),
			       .region = "",
			       .install = install,
			       .run = ""},
		};
		struct driver_row row = gc_row(g, &like);
		enum outcome outcome = shared_drivers[i]->find(&row);

		if (outcome == OUTCOME_DONE)
			gc_add(g, &shared_kinds[i], "", like.is.id)->is.install = install;
		else if (outcome != OUTCOME_ABSENT)
			return err_set(err, row.err.kind, "%s", row.err.msg);
	}
	return 0;
}

struct gc_names {
	struct gc *g;
	VEC(const char *) v;
};

static int add_names(void *ctx, const struct xml *root, struct err *err)
{
	struct gc_names *n = ctx;

	(void)err;
	for (const struct xml *x = xml_at(root, "ListRolesResult/Roles/member"); x;
	     x = xml_next(x)) {
		const char *name = xml_text(x, "RoleName");

		if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
			*vec_push(&n->v) = arena_strdup(n->g->a, name + strlen(PREFIX));
	}
	return 0;
}

/* Those of all installs: by their names, and then by their tags. */
static int find_all(struct gc *g, struct err *err)
{
	struct gc_names n = {.g = g};
	struct aws_request r;
	int rc;

	aws_request_init(&r, "iam", "ListRoles");
	rc = aws_query_pages(g->regions.v[0].s, &r, &g->d, add_names, &n, NULL, err);
	aws_request_release(&r);
	for (size_t i = 0; rc == 0 && i < n.v.n; i++)
		rc = find_pair(g, n.v.v[i], err);
	vec_release(&n.v);
	return rc;
}

int gc_shared_find(struct gc *g, struct err *err)
{
	return g->in->install ? find_pair(g, g->in->install, err) : find_all(g, err);
}

bool gc_is_shared(const struct gc_item *item)
{
	return !*item->is.region;
}

static bool is_alone(const struct gc *g)
{
	for (size_t i = 0; i < g->items.n; i++) {
		const struct gc_item *item = g->items.v[i];

		if (item->seen && !gc_is_shared(item) &&
		    strcmp(item->is.install, g->in->install) == 0)
			return false;
	}
	return true;
}

/* -1: it is not known whether another region has something of the install. */
static int find_elsewhere(struct gc *g, struct err *err)
{
	if (g->asked_elsewhere)
		return 0;
	if (gc_find_elsewhere(g, &g->elsewhere, err) < 0)
		return -1;
	g->asked_elsewhere = true;
	return 0;
}

int gc_shared_remove(struct gc *g, struct err *err)
{
	bool asked = g->asked_elsewhere;

	for (size_t i = 0; i < g->items.n; i++) {
		struct gc_item *item = g->items.v[i];

		if (!item->seen || !gc_is_shared(item) || item->is.state != LEFTOVER_FOUND)
			continue;
		if (!is_alone(g)) {
			item->is.why = "something else of the install is left";
			continue;
		}
		if (find_elsewhere(g, err) < 0)
			return -1;
		if (g->elsewhere) {
			item->is.state = LEFTOVER_LIVE;
			item->is.why =
				arena_printf(g->a, "%s has something of the install", g->elsewhere);
			continue;
		}
		if (!asked)
			continue; /* a run may have begun meanwhile: the next look tells */
		struct driver_row row = gc_row(g, item);

		gc_note(g, item, shared_drivers[item->kind - shared_kinds]->destroy(&row),
			&row.err);
	}
	return 0;
}
