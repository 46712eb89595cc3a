#include "fmt/ignore.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/vec.h"

struct ignore_rule {
	char *base;    /* "a/b/": where it holds */
	char *pattern; /* below it */
	bool whole;    /* the pattern is that of a path, not of a name */
	bool dirs;     /* it is for directories */
	bool keep;     /* it takes back what an earlier rule left out */
};

struct ignore {
	VEC(struct ignore_rule) rules;
};

struct ignore *ignore_new(void)
{
	return xcalloc(1, sizeof(struct ignore));
}

struct ignore *ignore_free(struct ignore *ig)
{
	if (!ig)
		return NULL;
	ignore_cut(ig, 0);
	vec_release(&ig->rules);
	free(ig);
	return NULL;
}

size_t ignore_count(const struct ignore *ig)
{
	return ig->rules.n;
}

void ignore_cut(struct ignore *ig, size_t count)
{
	while (ig->rules.n > count) {
		struct ignore_rule *r = &ig->rules.v[--ig->rules.n];

		free(r->base);
		free(r->pattern);
	}
}

/* Without the blanks at its end, unless the last one is escaped. */
static struct str trim_end(struct str line)
{
	while (line.n &&
	       (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == '\t' ||
		(line.p[line.n - 1] == ' ' && !(line.n > 1 && line.p[line.n - 2] == '\\'))))
		line.n--;
	return line;
}

static void add_line(struct ignore *ig, struct str line, const char *base)
{
	struct ignore_rule r = {0};

	line = trim_end(line);
	if (!line.n || line.p[0] == '#')
		return;
	if (line.p[0] == '!') {
		r.keep = true;
		line = (struct str){line.p + 1, line.n - 1};
	}
	if (line.n && line.p[line.n - 1] == '/') {
		r.dirs = true;
		line.n--;
	}
	r.whole = line.n && memchr(line.p, '/', line.n);
	if (line.n && line.p[0] == '/')
		line = (struct str){line.p + 1, line.n - 1};
	if (!line.n)
		return;
	r.base = xstrdup(base);
	r.pattern = xstrndup(line.p, line.n);
	*vec_push(&ig->rules) = r;
}

void ignore_add(struct ignore *ig, struct str text, const char *base)
{
	while (text.p)
		add_line(ig, str_cut(&text, '\n'), base);
}

static bool rule_matches(const struct ignore_rule *r, const char *path, bool is_dir)
{
	size_t n = strlen(r->base);

	if ((r->dirs && !is_dir) || strncmp(path, r->base, n) != 0)
		return false;
	return path_match(r->pattern, r->whole ? path + n : path_base(path));
}

bool ignore_matches(const struct ignore *ig, const char *path, bool is_dir)
{
	for (size_t i = ig->rules.n; i > 0; i--)
		if (rule_matches(&ig->rules.v[i - 1], path, is_dir))
			return !ig->rules.v[i - 1].keep;
	return false;
}
