#include "base/path.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

char *path_join(const char *a, const char *b)
{
	size_t n = strlen(a);

	if (*b == '/' || n == 0)
		return xstrdup(b);
	if (*b == '\0')
		return xstrdup(a);
	return xasprintf("%s%s%s", a, a[n - 1] == '/' ? "" : "/", b);
}

/* Drop the last part of out[0..n), unless there is none to drop. */
static bool drop_last(const char *out, size_t root, size_t *n)
{
	size_t at = *n;

	while (at > root && out[at - 1] != '/')
		at--;
	if (at == *n || (*n - at == 2 && memcmp(out + at, "..", 2) == 0))
		return false;
	*n = at > root ? at - 1 : root;
	return true;
}

char *path_clean(const char *p)
{
	size_t root = *p == '/' ? 1 : 0, n = root;
	struct str rest = str_from(p);
	char *out = xmalloc(rest.n + 2);

	out[0] = '/';
	while (rest.p) {
		struct str part = str_cut(&rest, '/');

		if (part.n == 0 || str_is(part, "."))
			continue;
		if (str_is(part, "..") && (drop_last(out, root, &n) || root))
			continue;
		if (n > root)
			out[n++] = '/';
		memcpy(out + n, part.p, part.n);
		n += part.n;
	}
	if (n == 0)
		out[n++] = '.';
	out[n] = '\0';
	return out;
}

bool path_is_below(struct str p)
{
	if (p.n == 0 || memchr(p.p, '\0', p.n))
		return false;
	while (p.p) {
		struct str part = str_cut(&p, '/');

		if (part.n == 0 || str_is(part, ".."))
			return false;
	}
	return true;
}

struct str path_source_name(struct str src)
{
	if (str_starts(src, STR("https://")))
		src = str_cut(&src, '?');
	while (src.n > 0 && src.p[src.n - 1] == '/')
		src.n--;
	size_t from = src.n;
	while (from > 0 && src.p[from - 1] != '/')
		from--;
	return (struct str){src.p + from, src.n - from};
}

const char *path_base(const char *p)
{
	const char *slash = strrchr(p, '/');

	return slash ? slash + 1 : p;
}

/* One character off *p: a code point, or a byte that is not UTF-8 as itself above Unicode. */
static uint32_t next_char(const char **p)
{
	uint32_t cp;
	size_t len = utf8_decode(*p, strnlen(*p, 4), &cp);

	if (!len) {
		cp = 0x110000u + (unsigned char)**p;
		len = 1;
	}
	*p += len;
	return cp;
}

/* The character after '[' up to and with ']', or NULL if there is no ']' in this part. */
static const char *class_end(const char *p)
{
	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	while (*p && *p != ']' && *p != '/')
		p++;
	return *p == ']' ? p + 1 : NULL;
}

static bool in_class(const char *p, const char *end, uint32_t c)
{
	bool negated = *p == '!' || *p == '^', found = false;

	if (negated)
		p++;
	end--;
	while (p < end) {
		uint32_t first = next_char(&p), last = first;

		if (end - p >= 2 && *p == '-') {
			p++;
			last = next_char(&p);
		}
		found = found || (c >= first && c <= last);
	}
	return found != negated;
}

/* Match one character of *name with one item of *pattern that is not a star; advance both. */
static bool match_one(const char **pattern, const char **name)
{
	const char *p = *pattern, *n = *name, *end;
	uint32_t c = next_char(&n);

	if (*p == '?') {
		p++;
		if (c == '/')
			return false;
	} else if (*p == '[' && (end = class_end(p + 1))) {
		if (c == '/' || !in_class(p + 1, end, c))
			return false;
		p = end;
	} else {
		if (*p == '\\' && p[1])
			p++;
		if (!*p || next_char(&p) != c)
			return false;
	}
	*pattern = p;
	*name = n;
	return true;
}

/* A whole part of "**": any number of parts, none included. */
static bool is_any_depth(const char *pattern, const char *p)
{
	return p[0] == '*' && p[1] == '*' && (p[2] == '/' || p[2] == '\0') &&
	       (p == pattern || p[-1] == '/');
}

/*
 * Only the last star of each kind is ever retried: what an earlier one could
 * still take, a later "**" can take as well, and "*" ends at its '/'.  So the
 * time is bounded by the product of the lengths, whatever the pattern.
 */
bool path_match(const char *pattern, const char *name)
{
	const char *p = pattern, *n = name;
	const char *star_p = NULL, *star_n = NULL, *deep_p = NULL, *deep_n = NULL;

	for (;;) {
		if (is_any_depth(pattern, p)) {
			if (!p[2])
				return *n != '\0';
			deep_p = p += 3;
			deep_n = n;
			star_p = NULL;
			continue;
		}
		if (*p == '*') {
			while (*p == '*')
				p++;
			star_p = p;
			star_n = n;
			continue;
		}
		if (!*p && !*n)
			return true;
		if (*n && *p && match_one(&p, &n))
			continue;
		if (star_p && *star_n && *star_n != '/') {
			next_char(&star_n);
			p = star_p;
			n = star_n;
			continue;
		}
		const char *slash = deep_p ? strchr(deep_n, '/') : NULL;
		if (!slash)
			return false;
		p = deep_p;
		n = deep_n = slash + 1;
		star_p = NULL;
	}
}
