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
			.processes = part->roles[i].processes,
			.counted = part->roles[i].counted,
		};
	m->addresses = arena_array(m->arena, const char *, (size_t)part->total);
	m->names = part->names ? arena_array(m->arena, const char *, (size_t)part->total) : NULL;
	m->table = (struct expand_members){.roles = roles,
					   .nroles = part->nroles,
					   .addresses = m->addresses,
					   .names = m->names,
					   .n = part->total};
}

/* Splits the text, a copy in m->arena, at its spaces: the values of the ranks from `first` on.  Returns the rank
 * after the last. */
static int split(const struct members *m, const char *what, const char *list, int first,
		 const char **values, struct err *err)
{
	char *text = arena_strdup(m->arena, list);

	for (char *next; text; text = next) {
		next = strchr(text, ' ');
		if (next)
			*next++ = '\0';
		if (first == m->table.n)
			return err_set(err, ERR_PROTOCOL, "members: more than %d %s", m->table.n,
				       what);
		values[first++] = text;
	}
	return first;
}

static int add_part(struct members *m, const struct message_members *part, struct err *err)
{
	int next = split(m, "addresses", part->addresses, m->next, m->addresses, err);

	if (next < 0)
		return -1;
	if (!part->names != !m->names)
		return err_set(err, ERR_PROTOCOL,
			       "members: all parts have the key 'names' or none");
	if (m->names && split(m, "names", part->names, m->next, m->names, err) != next)
		return err_set(err, ERR_PROTOCOL,
			       "members: key 'names' must have %d of them, as 'addresses' has",
			       next - m->next);
	for (; m->next < next; m->next++)
		if (strcmp(m->addresses[m->next], MESSAGE_NO_ADDRESS) == 0)
			m->addresses[m->next] = NULL;
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
	return add_part(m, &part, err);
}
