#include "agent/members.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "link/message.h"

void members_release(struct members *m)
{
	arena_free(m->arena);
	*m = (struct members){0};
}

bool members_have(const struct members *m, int rank)
{
	return m->arena && m->next == m->table.n && rank < m->table.n;
}

static void begin(struct members *m, const struct message_members *part)
{
	members_release(m);
	m->arena = arena_new();
	struct expand_role *roles = arena_array(m->arena, struct expand_role, part->nroles);

	for (size_t i = 0; i < part->nroles; i++)
		roles[i] = (struct expand_role){
			.name = arena_strdup(m->arena, part->roles[i].name),
			.first = part->roles[i].first,
			.count = part->roles[i].count,
			.port = part->roles[i].port,
			.counted = part->roles[i].counted,
		};
	m->addresses = arena_array(m->arena, const char *, (size_t)part->total);
	m->table = (struct expand_members){.roles = roles,
					   .nroles = part->nroles,
					   .addresses = m->addresses,
					   .n = part->total};
}

/* Split the text, a copy in m->arena, at its spaces. */
static int add_addresses(struct members *m, char *text, struct err *err)
{
	for (char *next; text; text = next) {
		next = strchr(text, ' ');
		if (next)
			*next++ = '\0';
		if (m->next == m->table.n)
			return err_set(err, ERR_PROTOCOL, "members: more than %d addresses",
				       m->table.n);
		m->addresses[m->next++] = strcmp(text, MESSAGE_NO_ADDRESS) == 0 ? NULL : text;
	}
	return 0;
}

int members_take(struct members *m, struct str json, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct message_members part;

	if (message_members_get(json, a, &part, err) < 0)
		return -1;
	if (part.first == 0)
		begin(m, &part);
	if (!m->arena || part.first != m->next || part.total != m->table.n)
		return err_set(err, ERR_PROTOCOL,
			       "members: key 'first' does not continue the previous part");
	return add_addresses(m, arena_strdup(m->arena, part.addresses), err);
}
