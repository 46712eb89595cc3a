#include "agent/environ.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/proctree.h"

extern char **environ;

#define METRICS_NAME "REGATTA_METRICS"

static const struct {
	const char *name, *fallback;
	bool pty;     /* only with a terminal */
	bool machine; /* means something on this machine only */
} filled_in[] = {
	{"PATH", ENVIRON_PATH, false, true},
	{"HOME", "/", false, true},
	/* Standard output is a pipe: Python would buffer it until the end. */
	{"PYTHONUNBUFFERED", "1", false, false},
	{"TERM", "xterm", true, false},
};
#define FILLED_IN (sizeof(filled_in) / sizeof(filled_in[0]))

static bool is_name(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

const char *environ_get(const char *const *env, const char *name)
{
	for (; *env; env++)
		if (is_name(*env, name))
			return *env + strlen(name) + 1;
	return "";
}

static bool has(const char *const *env, const char *name)
{
	for (; *env; env++)
		if (is_name(*env, name))
			return true;
	return false;
}

/* How many variables of this process the job may get. */
static size_t own_count(enum environ_rest rest)
{
	size_t n = 0;

	while (rest == ENVIRON_OWN && environ[n])
		n++;
	return n;
}

/* Has it a variable of the entry's name? */
static bool has_same(const char *const *env, const char *entry)
{
	size_t n = strcspn(entry, "=");

	for (; *env; env++)
		if (strncmp(*env, entry, n) == 0 && (*env)[n] == '=')
			return true;
	return false;
}

const char **environ_make(const struct message_start *m, const char *mark, const char *metrics_fifo,
			  enum environ_rest rest)
{
	const char **env = xcalloc(m->nenv + FILLED_IN + own_count(rest) + 3, sizeof(*env));
	size_t n = 0;

	/* The mark is first, because the search reads only the beginning of an environment. */
	if (mark[0])
		env[n++] = xasprintf("%s=%s", PROC_MARK, mark);
	for (size_t i = 0; i < m->nenv; i++)
		if (strcmp(m->env[i].name, PROC_MARK) != 0 &&
		    strcmp(m->env[i].name, METRICS_NAME) != 0)
			env[n++] = xasprintf("%s=%s", m->env[i].name, m->env[i].value);
	for (size_t i = 0; i < own_count(rest); i++)
		if (strncmp(environ[i], "REGATTA_", 8) != 0 && !has_same(env, environ[i]))
			env[n++] = xstrdup(environ[i]);
	for (size_t i = 0; i < FILLED_IN; i++) {
		const char *own = getenv(filled_in[i].name);

		if (!has(env, filled_in[i].name) && (m->pty || !filled_in[i].pty) &&
		    !(rest == ENVIRON_IMAGE && filled_in[i].machine))
			env[n++] = xasprintf("%s=%s", filled_in[i].name,
					     own ? own : filled_in[i].fallback);
	}
	env[n++] = xasprintf("%s=%s", METRICS_NAME, metrics_fifo);
	return env;
}

void environ_freep(const char ***env)
{
	for (const char **e = *env; e && *e; e++)
		free((char *)(uintptr_t)*e);
	free(*env);
}
