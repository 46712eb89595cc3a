#include "driver/registry_login.h"

#include <stddef.h>
#include <string.h>

#include "base/err.h"

static const struct registry_source *const sources[] = {&ecr_registry};

static const struct registry_source *source_of(const char *login, struct err *err)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (strcmp(sources[i]->login, login) == 0)
			return sources[i];
	err_set(err, ERR_INVALID, "registry: there is no login '%.40s'", login);
	return NULL;
}

int registry_login_ask(const struct registry_question *q, const struct deadline *d, struct arena *a,
		       struct registry_login *ret, struct err *err)
{
	const struct registry_source *s = source_of(q->login, err);

	return s ? s->ask(q, d, a, ret, err) : -1;
}

int registry_login_credentials(const char *login, struct arena *a, struct doc **ret,
			       struct err *err)
{
	const struct registry_source *s = source_of(login, err);

	return s ? s->credentials(a, ret, err) : -1;
}
