#include "spec/secret.h"

#include "base/arena.h"
#include "fmt/doc.h"
#include "spec/params.h"
#include "spec/variable.h"

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c & ~0x20) : c;
}

static bool same_word(const char *p, const char *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (upper(p[i]) != word[i])
			return false;
	return true;
}

static bool ends_with(struct str name, const char *word)
{
	size_t n = strlen(word);

	return name.n >= n && same_word(name.p + name.n - n, word, n);
}

static bool contains(struct str name, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= name.n; i++)
		if (same_word(name.p + i, word, n))
			return true;
	return false;
}

bool secret_name(const struct job *job, struct str name)
{
	for (size_t i = 0; i < job->secrets.n; i++)
		if (str_is(name, job->secrets.v[i]))
			return true;
	if (job->registry.password_env && str_is(name, job->registry.password_env))
		return true;
	return ends_with(name, "_KEY") || ends_with(name, "_TOKEN") || contains(name, "PASSWORD") ||
	       contains(name, "SECRET");
}

static bool env_has(const struct env_list *env, const char *name)
{
	for (size_t i = 0; i < env->n; i++)
		if (strcmp(env->v[i].name, name) == 0)
			return true;
	return false;
}

const char *secret_unused(const struct job *job)
{
	for (size_t i = 0; i < job->secrets.n; i++) {
		bool used = env_has(&job->env, job->secrets.v[i]) ||
			    variable_matches(&job->pass, str_from(job->secrets.v[i]));

		for (size_t r = 0; !used && r < job->roles.n; r++)
			used = env_has(&job_role(job, r)->env, job->secrets.v[i]);
		if (!used)
			return job->secrets.v[i];
	}
	return NULL;
}

static struct env_list mask_env(const struct job *job, const struct env_list *env, struct arena *a)
{
	struct env_list to = {.v = arena_array(a, struct env_pair, env->n), .n = env->n};

	for (size_t i = 0; i < env->n; i++) {
		to.v[i] = env->v[i];
		if (secret_name(job, str_from(to.v[i].name)))
			to.v[i].value = SECRET_SHOWN;
	}
	return to;
}

struct job job_masked(const struct job *job, struct arena *a)
{
	struct job to = *job;
	struct role *roles = arena_array(a, struct role, job->roles.n);

	to.env = mask_env(job, &job->env, a);
	for (size_t i = 0; i < job->roles.n; i++) {
		roles[i] = *job_role(job, i);
		roles[i].env = mask_env(job, &roles[i].env, a);
	}
	to.roles.v = roles;
	return to;
}

/* The secrets of one table of variables; NULL if there are none. */
static struct doc *take_table(const struct job *job, struct doc *env, struct arena *a)
{
	struct doc *taken = NULL;

	for (size_t i = 0; env && env->type == DOC_TABLE && i < env->table.n; i++) {
		struct doc_entry *e = &env->table.v[i];

		if (!secret_name(job, e->key))
			continue;
		if (!taken)
			taken = doc_new(a, DOC_TABLE);
		doc_set(a, taken, e->key,
			doc_copy(a, params_expand_value(job->params, e->value, a)));
		e->value = doc_new_str(a, STR(SECRET_SHOWN));
	}
	return taken;
}

static struct doc *with(struct arena *a, struct doc *to, struct str key, struct doc *value)
{
	if (!value)
		return to;
	if (!to)
		to = doc_new(a, DOC_TABLE);
	doc_set(a, to, key, value);
	return to;
}

struct doc *secrets_take(const struct job *job, struct doc *job_doc, struct doc *client_env,
			 struct arena *a)
{
	const struct doc *roles = doc_table(job_doc, "roles");
	struct doc *taken = NULL, *of_roles = NULL;

	taken = with(a, taken, STR("env"),
		     take_table(job, (struct doc *)doc_get(job_doc, "env"), a));
	for (size_t i = 0; roles && i < roles->table.n; i++) {
		const struct doc_entry *e = &roles->table.v[i];
		struct doc *env = take_table(job, (struct doc *)doc_get(e->value, "env"), a);

		of_roles = with(a, of_roles, e->key, with(a, NULL, STR("env"), env));
	}
	taken = with(a, taken, STR("roles"), of_roles);
	return with(a, taken, STR("client_env"), take_table(job, client_env, a));
}

/* The text that schema_load() makes of the value of a variable. */
static const char *value_text(const struct doc *d, struct arena *a)
{
	return d->type == DOC_STRING ? arena_str(a, d->s).p : doc_json_text(a, d);
}

static bool put_env(const struct job *job, const struct doc *from, struct env_list *env,
		    struct arena *a)
{
	bool all = true;

	for (size_t i = 0; i < env->n; i++) {
		if (!secret_name(job, str_from(env->v[i].name)))
			continue;
		const struct doc *value = doc_get(from, env->v[i].name);

		if (value)
			env->v[i].value = value_text(value, a);
		all = all && value;
	}
	return all;
}

bool secrets_put(const struct doc *secrets, struct job *job, struct doc *client_env,
		 struct arena *a)
{
	const struct doc *client = doc_table(secrets, "client_env");
	bool all = put_env(job, doc_table(secrets, "env"), &job->env, a);

	for (size_t i = 0; i < job->roles.n; i++) {
		struct role *r = job_role(job, i);
		const struct doc *from = doc_table(doc_table(secrets, "roles"), r->name);

		all = put_env(job, doc_table(from, "env"), &r->env, a) && all;
	}
	for (size_t i = 0; client && client_env && i < client->table.n; i++)
		doc_set(a, client_env, client->table.v[i].key, client->table.v[i].value);
	return all;
}
