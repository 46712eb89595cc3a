#include "dialect/dialect.h"

#include <ctype.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "dialect/internal.h"
#include "fmt/doc.h"

#define MAX_NAME 40

static const struct dialect *const dialects[] = {
	&dialect_anubis,
	&dialect_kube,
};

const struct dialect *dialect_of(const struct doc *doc)
{
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (dialects[i]->is(doc))
			return dialects[i];
	return NULL;
}

struct doc *dialect_convert(struct doc *doc, struct arena *a, struct problems *ps)
{
	const struct dialect *d = dialect_of(doc);

	return d ? d->convert(doc, a, ps) : doc;
}

const struct doc_entry *dialect_entry(const struct doc *table, const char *key)
{
	for (size_t i = 0; table && table->type == DOC_TABLE && i < table->table.n; i++)
		if (str_is(table->table.v[i].key, key))
			return &table->table.v[i];
	return NULL;
}

void dialect_place_key(struct doc *table, const char *key, struct doc_pos pos)
{
	struct doc_entry *e = (struct doc_entry *)dialect_entry(table, key);

	if (e)
		e->key_pos = pos;
}

const char *dialect_job_name(struct str text, struct arena *a)
{
	char *name = arena_alloc(a, MAX_NAME + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n && n < MAX_NAME; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c < 0x80 && isalnum(c))
			name[n++] = (char)tolower(c);
		else if (n && name[n - 1] != '-')
			name[n++] = '-';
	}
	while (n && name[n - 1] == '-')
		n--;
	name[n] = '\0';
	return name;
}
