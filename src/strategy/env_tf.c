/* env_tf - TF_CONFIG: the cluster by role, and which of it this node is. */
#include "strategy/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"

#define TF_PORT 2222

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

/* A crew that has a role "worker" besides "trainer" keeps both names: the cluster has each once. */
static const char *tf_name(const struct crew *c, int role)
{
	const char *name = c->roles[role].name;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].ours, name) == 0 && !has_role(c, words[i].theirs))
			return words[i].theirs;
	return name;
}

/* Names of roles and addresses hold nothing that JSON would want escaped. */
void env_tf(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	const struct crew *c = in->crew;
	const struct member *me = &c->members[rank];
	CLEANUP(buf_release) struct buf text = {0};
	int role = -1;

	buf_init(&text, ENV_MAX_VALUE);
	buf_addz(&text, "{\"cluster\":{");
	for (int i = 0; i < c->n && !text.overflow; i++) {
		const struct member *m = &c->members[i];

		if (m->role != role)
			buf_printf(&text, "%s\"%s\":[", role >= 0 ? "]," : "", tf_name(c, m->role));
		else
			buf_addc(&text, ',');
		role = m->role;
		buf_addc(&text, '"');
		buf_addz(&text, env_address(in, i));
		env_add_port(&text, env_port(in, i, TF_PORT));
		buf_addc(&text, '"');
	}
	buf_printf(&text, "]},\"task\":{\"type\":\"%s\",\"index\":%d}}", tf_name(c, me->role),
		   me->index);
	env_put_buf(env, a, "TF_CONFIG", &text);
}
