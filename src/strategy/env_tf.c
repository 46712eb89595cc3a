/*
 * env_tf - TF_CONFIG: the cluster by role, and the role and index of this process.
 *
 * Several processes of a node are tasks of their own, with ports that follow each other.
 */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define TEMPLATE_MAX (4 * 1024 * 1024) /* a hundred bytes and two names for each role */

/* TensorFlow's own words for the roles. */
static const struct {
	const char *ours, *theirs;
} words[] = {
	{"pserver", "ps"},
	{"trainer", "worker"},
};

static bool has_role(const struct crew *c, const char *name)
{
	for (int i = 0; i < c->nroles; i++)
		if (strcmp(c->roles[i].name, name) == 0)
			return true;
	return false;
}

/* With a role "worker" besides "trainer" both keep their names: a name of TF_CONFIG must be unique. */
static const char *tf_name(const struct crew *c, int role)
{
	const char *name = c->roles[role].name;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].ours, name) == 0 && !has_role(c, words[i].theirs))
			return words[i].theirs;
	return name;
}

/* The evaluator is a task, but none of the cluster: TensorFlow refuses one that is in it. */
static bool is_in_cluster(const struct strategy_role *r)
{
	return strcmp(r->name, EVALUATOR) != 0;
}

/* In the order of the ranks.  Names of roles and addresses need no JSON escapes. */
static void put_cluster(const struct crew *c, struct arena *a, struct buf *out)
{
	bool first = true;

	for (int i = 0; i < c->n; i++) {
		int role = c->members[i].role;

		if ((i > 0 && role == c->members[i - 1].role) || !is_in_cluster(&c->roles[role]))
			continue;
		buf_printf(out, "%s\"%s\":[\"%s\"]", first ? "" : ",", tf_name(c, role),
			   env_endpoints(c, a, c->roles[role].name, "\",\"", TF_PORT));
		first = false;
	}
}

void env_tf(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, TEMPLATE_MAX);
	buf_addz(&text, "{{\"cluster\":{{");
	put_cluster(in->crew, a, &text);
	buf_printf(&text, "},\"task\":{{\"type\":\"%s\",\"index\":%s}}", tf_name(in->crew, role),
		   strategy_has_processes(in->crew) ? "{task}" : "{index}");
	env_put(env, a, "TF_CONFIG", arena_strndup(a, text.p, text.n));
}
