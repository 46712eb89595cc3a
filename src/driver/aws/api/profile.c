#include "driver/aws/api/profile.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"

#define MAX_FILE ((size_t)1024 * 1024)

struct ini_entry {
	const char *section, *key, *value; /* key NULL: the section itself */
	struct ini_entry *next;
};

struct profiles {
	struct ini_entry *first, **last;
};

struct ini {
	struct profiles *p;
	struct arena *a;
	const char *path;
	bool is_config;	     /* its profiles are "[profile x]" */
	const char *section; /* NULL: before the first, or one to be skipped */
	const char *parent;  /* a key without value: what is indented below belongs to it */
	int line;
};

const char *profile_path(const struct env_lookup *env, struct arena *a, const char *path)
{
	const char *home = env_get(env, "HOME");

	if (path[0] != '~' || path[1] != '/' || !home)
		return path;
	return arena_printf(a, "%s%s", home, path + 1);
}

static void add(struct ini *f, const char *key, const char *value)
{
	struct ini_entry *e = arena_new_of(f->a, struct ini_entry);

	*e = (struct ini_entry){.section = f->section, .key = key, .value = value};
	*f->p->last = e;
	f->p->last = &e->next;
}

/* "[default]", "[profile x]", "[x]" -> "profile x"; "[sso-session y]" as it is. */
static void open_section(struct ini *f, struct str name)
{
	struct str rest = str_trim(name), type = str_cut(&rest, ' ');
	struct str own = str_trim(rest);

	f->parent = NULL;
	if (!f->is_config || str_is(type, "default"))
		f->section = arena_printf(f->a, "profile %.*s", STR_ARG(str_trim(name)));
	else if (own.n > 0)
		f->section = arena_printf(f->a, "%.*s %.*s", STR_ARG(type), STR_ARG(own));
	else
		f->section = NULL;
	if (f->section)
		add(f, NULL, NULL);
}

/* A comment after the value begins with a blank. */
static struct str without_comment(struct str value)
{
	for (size_t i = 1; i < value.n; i++)
		if ((value.p[i] == '#' || value.p[i] == ';') &&
		    (value.p[i - 1] == ' ' || value.p[i - 1] == '\t'))
			return str_trim((struct str){value.p, i});
	return value;
}

static int read_property(struct ini *f, struct str line, bool indented, struct err *err)
{
	struct str value = line, key = str_trim(str_cut(&value, '='));

	if (!value.p || key.n == 0)
		return err_set(err, ERR_INVALID, "%s: line %d is neither [section] nor key = value",
			       f->path, f->line);
	if (!f->section)
		return 0;
	value = without_comment(str_trim(value));
	char *name = indented && f->parent ? arena_printf(f->a, "%s.%.*s", f->parent, STR_ARG(key))
					   : arena_strndup(f->a, key.p, key.n);

	if (!indented)
		f->parent = value.n == 0 ? name : NULL;
	add(f, name, arena_strndup(f->a, value.p ? value.p : "", value.n));
	return 0;
}

static int read_line(struct ini *f, struct str line, struct err *err)
{
	struct str text = str_trim(line);
	bool indented = line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t');

	if (text.n == 0 || text.p[0] == '#' || text.p[0] == ';')
		return 0;
	if (text.p[0] != '[' || indented)
		return read_property(f, text, indented, err);
	struct str inside = {text.p + 1, text.n - 1};
	struct str name = str_cut(&inside, ']');

	if (!inside.p)
		return err_set(err, ERR_INVALID, "%s: line %d: a section without ']'", f->path,
			       f->line);
	open_section(f, name);
	return 0;
}

static int read_file(struct profiles *p, const char *path, bool is_config, struct arena *a,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct ini f = {.p = p, .a = a, .path = path, .is_config = is_config};
	struct err own;

	buf_init(&text, MAX_FILE);
	if (file_read(path, &text, &own) < 0) {
		if (own.kind == ERR_NOT_FOUND)
			return 0;
		return err_set(err, ERR_INVALID, "%s", own.msg);
	}
	struct str rest = buf_str(&text);

	while (rest.p) {
		f.line++;
		if (read_line(&f, str_cut(&rest, '\n'), err) < 0)
			return -1;
	}
	return 0;
}

/* NULL: there is no home directory to look in. */
static const char *file_of(const struct env_lookup *env, const char *variable, const char *name,
			   struct arena *a)
{
	const char *given = env_get(env, variable), *home = env_get(env, "HOME");

	if (given)
		return profile_path(env, a, given);
	return home ? arena_printf(a, "%s/.aws/%s", home, name) : NULL;
}

int profiles_read(const struct env_lookup *env, struct arena *a, struct profiles **ret,
		  struct err *err)
{
	const char *credentials = file_of(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials", a);
	const char *config = file_of(env, "AWS_CONFIG_FILE", "config", a);
	struct profiles *p = arena_new_of(a, struct profiles);

	p->last = &p->first;
	if (credentials && read_file(p, credentials, false, a, err) < 0)
		return -1;
	if (config && read_file(p, config, true, a, err) < 0)
		return -1;
	*ret = p;
	return 0;
}

static bool is_section(const struct ini_entry *e, const char *type, const char *name)
{
	size_t n = strlen(type);

	return strncmp(e->section, type, n) == 0 && e->section[n] == ' ' &&
	       strcmp(e->section + n + 1, name) == 0;
}

const char *profiles_get(const struct profiles *p, const char *type, const char *name,
			 const char *key)
{
	for (const struct ini_entry *e = p->first; e; e = e->next)
		if (e->key && strcmp(e->key, key) == 0 && is_section(e, type, name))
			return *e->value ? e->value : NULL;
	return NULL;
}

const char *profile_get(const struct profiles *p, const char *profile, const char *key)
{
	return profiles_get(p, "profile", profile, key);
}

bool profile_exists(const struct profiles *p, const char *profile)
{
	for (const struct ini_entry *e = p->first; e; e = e->next)
		if (is_section(e, "profile", profile))
			return true;
	return false;
}
