/* env_tf - TF_CONFIG: the cluster by role, and this node's role and index. */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define TF_PORT 2222
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

/* In the order of the ranks.  Names of roles and addresses need no JSON escapes. */
static void put_cluster(const struct crew *c, struct buf *out)
{
	for (int i = 0; i < c->n; i++) {
		int role = c->members[i].role;

		if (i == 0 || role != c->members[i - 1].role)
			buf_printf(out, "%s\"%s\":[\"{list:%s|\",\"|{address}:{port:%d}}\"]",
				   i > 0 ? "," : "", tf_name(c, role), c->roles[role].name,
				   TF_PORT);
	}
}

void env_tf(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, TEMPLATE_MAX);
	buf_addz(&text, "{{\"cluster\":{{");
	put_cluster(in->crew, &text);
	buf_printf(&text, "},\"task\":{{\"type\":\"%s\",\"index\":{index}}}",
		   tf_name(in->crew, role));
	env_put(env, a, "TF_CONFIG", arena_strndup(a, text.p, text.n));
}
