#include "dialect/dialect.h"

#include <stddef.h>

#include "dialect/internal.h"
#include "fmt/doc.h"

static const struct dialect *const dialects[] = {
	&dialect_anubis,
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
