/* ec2_types - the table, sorted by name. */
#include "plan/ec2_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/suggest.h"

static const struct ec2_type types[] = {
#include "plan/ec2_types.inc"
};
#define NTYPES (sizeof(types) / sizeof(types[0]))

static int compare_name(const void *name, const void *type)
{
	return strcmp(name, ((const struct ec2_type *)type)->name);
}

const struct ec2_type *ec2_type_find(const char *name)
{
	return bsearch(name, types, NTYPES, sizeof(types[0]), compare_name);
}

const char *ec2_type_suggest(const char *name)
{
	const char *words[NTYPES];

	for (size_t i = 0; i < NTYPES; i++)
		words[i] = types[i].name;
	return suggest_word(words, NTYPES, str_from(name));
}
