/* problems - what is wrong with a document, collected and printed. */
#include "fmt/schema.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/escape.h"

void problems_add(struct problems *ps, struct arena *a, struct doc_pos pos, const char *fmt, ...)
{
	char small[256];
	va_list ap;

	if (ps->n == PROBLEMS_MAX) {
		ps->more++;
		return;
	}
	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	char *text = arena_strndup(a, small, n < 0 ? 0 : strnlen(small, sizeof(small)));

	if (n >= (int)sizeof(small)) {
		text = arena_alloc(a, (size_t)n + 1);
		va_start(ap, fmt);
		vsnprintf(text, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	ps->v[ps->n++] = (struct problem){.pos = pos, .text = text};
}

static bool comes_after(struct doc_pos a, struct doc_pos b)
{
	return a.line != b.line ? a.line > b.line : a.col > b.col;
}

void problems_print(struct problems *ps, const char *filename, struct buf *out)
{
	/* Insertion sort: it is stable, and there are few problems. */
	for (size_t i = 1; i < ps->n; i++) {
		struct problem p = ps->v[i];
		size_t j = i;

		for (; j > 0 && comes_after(ps->v[j - 1].pos, p.pos); j--)
			ps->v[j] = ps->v[j - 1];
		ps->v[j] = p;
	}
	for (size_t i = 0; i < ps->n; i++) {
		const struct problem *p = &ps->v[i];

		escape_terminal(out, str_from(filename));
		if (p->pos.line > 0)
			buf_printf(out, ":%d:%d", p->pos.line, p->pos.col);
		buf_addz(out, ": ");
		escape_terminal(out, str_from(p->text));
		buf_addc(out, '\n');
	}
	if (ps->more > 0) {
		escape_terminal(out, str_from(filename));
		buf_printf(out, ": and %zu more problem%s\n", ps->more, ps->more == 1 ? "" : "s");
	}
}

void problems_warn(struct problems *ps, struct arena *a, struct doc_pos pos, const char *text)
{
	if (ps->nwarnings < WARNINGS_MAX)
		ps->warnings[ps->nwarnings++] =
			(struct problem){.pos = pos, .text = arena_strdup(a, text)};
}

void problems_print_warnings(const struct problems *ps, const char *filename, struct buf *out)
{
	for (size_t i = 0; i < ps->nwarnings; i++) {
		const struct problem *p = &ps->warnings[i];

		escape_terminal(out, str_from(filename));
		if (p->pos.line > 0)
			buf_printf(out, ":%d:%d", p->pos.line, p->pos.col);
		buf_addz(out, ": warning: ");
		escape_terminal(out, str_from(p->text));
		buf_addc(out, '\n');
	}
}
