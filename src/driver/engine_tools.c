#include "driver/engine_tools.h"

#include <stddef.h>

#include "base/arena.h"

static const struct engine_tools *const tools[] = {
	&local_tools,
	&hosts_tools,
	&aws_ec2_tools,
	&kube_tools,
};

const struct engine_tools *engine_tools_at(unsigned i)
{
	return i < sizeof(tools) / sizeof(tools[0]) ? tools[i] : NULL;
}

void checkup_add(struct checkup *c, const char *name, enum check_state state, const char *what,
		 const char *todo)
{
	if (c->n < MOST_CHECKS)
		c->v[c->n++] = (struct engine_check){
			.name = name,
			.state = state,
			.what = arena_strdup(c->a, what),
			.todo = todo ? arena_strdup(c->a, todo) : NULL,
		};
}
