#include "cli/show/live_view.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/map.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

#define MAX_NODE_ROWS 10
#define MAX_TRACKED 1000 /* nodes whose steps are read from their output */
#define BAR 20		 /* cells */
#define SHORTEST_BAR 4
#define NAME_COLUMNS 24
#define MAX_VIEW (256 * 1024)

struct view_step {
	int64_t step, total;
};

void view_init(struct view *v)
{
	memset(v, 0, sizeof(*v));
	v->progress = map_new();
}

void view_release(struct view *v)
{
	struct str key;
	void *value;

	for (size_t i = 0; v->progress && map_at(v->progress, &i, &key, &value);)
		free(value);
	v->progress = map_free(v->progress);
}

static size_t digits(struct str s, size_t at, int64_t *ret)
{
	size_t n = 0;

	while (at + n < s.n && s.p[at + n] >= '0' && s.p[at + n] <= '9')
		n++;
	if (n == 0 || n > 15 || !str_to_i64((struct str){s.p + at, n}, ret))
		return 0;
	return n;
}

/* "step 12/500", "Step: 12 / 500", "step=12/500". */
static bool find_step(struct str line, struct view_step *ret)
{
	for (size_t i = 0; i + 4 < line.n; i++) {
		if (strncasecmp(line.p + i, "step", 4) != 0)
			continue;
		size_t at = i + 4;
		while (at < line.n && strchr(" :=sS", line.p[at]) && line.p[at])
			at++;
		struct view_step st;
		size_t n = digits(line, at, &st.step);
		if (n == 0)
			continue;
		at += n;
		while (at < line.n && line.p[at] == ' ')
			at++;
		if (at >= line.n || line.p[at] != '/')
			continue;
		at++;
		while (at < line.n && line.p[at] == ' ')
			at++;
		if (digits(line, at, &st.total) == 0 || st.total <= 0)
			continue;
		*ret = st;
		return true;
	}
	return false;
}

void view_line(struct view *v, struct str node, struct str line)
{
	struct view_step found;

	if (v->ntail == VIEW_TAIL_LINES)
		memmove(&v->tail[0], &v->tail[1], sizeof(v->tail[0]) * --v->ntail);
	snprintf(v->tail[v->ntail].node, sizeof(v->tail[0].node), "%.*s", STR_ARG(node));
	v->tail[v->ntail].n = line.n < VIEW_TAIL_BYTES ? line.n : VIEW_TAIL_BYTES;
	memcpy(v->tail[v->ntail].text, line.p, v->tail[v->ntail].n);
	v->ntail++;
	if (!find_step(line, &found))
		return;
	struct view_step *s = map_get(v->progress, node);
	if (!s && map_count(v->progress) >= MAX_TRACKED)
		return;
	if (!s)
		map_put(v->progress, node, s = xmalloc(sizeof(*s)));
	*s = found;
}

/* The progress of a node, from its metrics "step" and "total", else from its lines. */
static bool node_step(const struct view *v, const struct doc *node, struct view_step *ret)
{
	const struct doc *m = doc_table(node, "metrics");
	double step = doc_num(m, "step", -1), total = doc_num(m, "total", -1);

	if (step >= 0 && total > 0 && total < 1e15) {
		*ret = (struct view_step){(int64_t)(step < total ? step : total), (int64_t)total};
		return true;
	}
	const struct view_step *s = map_get(v->progress, doc_str(node, "name", STR("")));
	if (s)
		*ret = *s;
	return s != NULL;
}

static void add_bar(struct buf *out, const struct view_step *s, int cells, const struct style *st)
{
	int64_t done = s->step < s->total ? s->step : s->total;
	int filled = (int)(done * cells / s->total);

	buf_addc(out, '[');
	for (int i = 0; i < cells; i++)
		buf_addz(out, i < filled ? (st->unicode ? "█" : "#") : (st->unicode ? "░" : "-"));
	buf_addz(out, "] ");
}

/* The progress is at the end of the line.  On a narrow terminal the bar gets shorter,
 * then is left out, then the text before it is cut; the numbers stay. */
static void add_progress(struct buf *line, const struct view_step *s, const struct style *st)
{
	CLEANUP(buf_release) struct buf before = {0};
	int64_t done = s->step < s->total ? s->step : s->total;
	char text[64];
	int n = snprintf(text, sizeof(text), "%3d%% %" PRId64 "/%" PRId64,
			 (int)(done * 100 / s->total), s->step, s->total);
	int room = st->width > 0 ? st->width - 1 - n - 2 : INT_MAX;

	buf_init(&before, RENDER_MAX_LINE);
	if (line->n && line->p[line->n - 1] == ' ')
		line->n--;
	buf_addstr(&before, buf_str(line));
	/* The columns of the nodes' figures stay in line while there is room. */
	while (room - text_width(buf_str(&before)) < BAR + 3 && before.n &&
	       before.p[before.n - 1] == ' ')
		before.n--;
	buf_reset(line);
	room -= text_clip(line, buf_str(&before), room > 0 ? room : 0, st);
	buf_addz(line, "  ");
	if (room >= SHORTEST_BAR + 3)
		add_bar(line, s, room - 3 < BAR ? room - 3 : BAR, st);
	buf_addz(line, text);
}

static void finish_line(struct buf *out, const struct buf *line, enum tint tint,
			const struct style *st)
{
	struct str text = buf_str(line);

	while (text.n && text.p[text.n - 1] == ' ')
		text.n--;
	tint_on(out, st, tint);
	text_clip(out, text, st->width > 1 ? st->width - 1 : 1, st);
	tint_off(out, st, tint);
	buf_addc(out, '\n');
}

static void add_headline(const struct view *v, const struct doc *run, const struct style *st,
			 struct buf *out)
{
	CLEANUP(buf_release) struct buf line = {0};

	buf_init(&line, RENDER_MAX_LINE);
	text_add_escaped(&line, doc_str(run, "id", STR("?")));
	buf_addz(&line, "  ");
	text_add_escaped(&line, doc_str(run, "state", STR("?")));
	if (doc_bool(run, "cancel_asked", false))
		buf_addz(&line, " (cancelling)");
	buf_addz(&line, "  ");
	text_add_span(&line, v->elapsed_ms);
	buf_addz(&line, "  ");
	run_describe_nodes(run, &line);
	if (v->notice)
		buf_printf(&line, "  %s", v->notice);
	finish_line(out, &line, TINT_BOLD, st);
}

static void add_waiting(const struct doc *run, const struct style *st, struct buf *out)
{
	CLEANUP(buf_release) struct buf line = {0};

	buf_init(&line, RENDER_MAX_LINE);
	buf_addz(&line, "  waiting: ");
	text_add_escaped(&line, run_waits_for(run));
	finish_line(out, &line, TINT_NONE, st);
}

static void add_node(const struct view *v, const struct doc *node, int name_width,
		     const struct style *st, struct buf *out)
{
	CLEANUP(buf_release) struct buf line, name;
	const struct doc *m = doc_table(node, "metrics");
	struct view_step step;
	bool has_step = node_step(v, node, &step);

	buf_init(&line, RENDER_MAX_LINE);
	buf_init(&name, RENDER_MAX_LINE);
	text_add_escaped(&name, doc_str(node, "name", STR("?")));
	buf_addz(&line, "  ");
	int used = text_clip(&line, buf_str(&name), name_width, st);
	buf_printf(&line, "%*s  ", name_width - used, "");
	if (!m || m->table.n == 0)
		text_add_escaped(&line, doc_str(node, "state", STR("?")));
	for (size_t i = 0; m && i < m->table.n; i++) {
		const struct doc_entry *e = &m->table.v[i];
		char number[32];
		bool is_number = e->value->type == DOC_INT || e->value->type == DOC_FLOAT;
		if (!is_number || (has_step && (str_is(e->key, "step") || str_is(e->key, "total"))))
			continue;
		number_format(e->value->type == DOC_INT ? (double)e->value->i : e->value->f,
			      number);
		text_add_escaped(&line, e->key);
		buf_printf(&line, " %-9s ", number);
	}
	if (has_step)
		add_progress(&line, &step, st);
	finish_line(out, &line, TINT_NONE, st);
}

static bool worth_showing(const struct view *v, const struct doc *node)
{
	const struct doc *m = doc_table(node, "metrics");
	struct view_step s;

	return (m && m->table.n > 0) || node_step(v, node, &s);
}

/* Nodes with metrics or progress come first; without any, a job of one node needs no row. */
static void add_nodes(const struct view *v, const struct doc *run, int rows, const struct style *st,
		      struct buf *out)
{
	const struct doc *nodes = doc_array(run, "nodes");
	size_t n = nodes ? nodes->array.n : 0, telling = 0, shown = 0;
	int name_width = 0;

	for (size_t i = 0; i < n; i++)
		telling += worth_showing(v, nodes->array.v[i]);
	if (telling == 0 && n <= 1)
		return;
	size_t total = telling ? telling : n;
	size_t room = rows < MAX_NODE_ROWS ? (rows > 0 ? (size_t)rows : 0) : MAX_NODE_ROWS;
	size_t take = total > room && room > 0 ? room - 1 : total < room ? total : room;
	for (int pass = 0; pass < 2; pass++) {
		shown = 0;
		for (size_t i = 0; i < n && shown < take; i++) {
			const struct doc *node = nodes->array.v[i];
			if (telling && !worth_showing(v, node))
				continue;
			shown++;
			struct str name = doc_str(node, "name", STR("?"));
			if (pass == 1)
				add_node(v, node, name_width, st, out);
			else if ((int)name.n > name_width)
				name_width =
					(int)name.n < NAME_COLUMNS ? (int)name.n : NAME_COLUMNS;
		}
	}
	if (room == 0 || n == shown)
		return;
	CLEANUP(buf_release) struct buf line = {0};
	buf_init(&line, RENDER_MAX_LINE);
	buf_printf(&line, "  and %zu more node%s", n - shown, n - shown == 1 ? "" : "s");
	if (shown < total)
		finish_line(out, &line, TINT_NONE, st);
}

static void add_tail(const struct view *v, int rows, const struct style *st, struct buf *out)
{
	size_t n = rows > 0 && (size_t)rows < v->ntail ? (size_t)rows : v->ntail;

	if (v->hide_tail || rows <= 0)
		return;
	for (size_t i = v->ntail - n; i < v->ntail; i++) {
		CLEANUP(buf_release) struct buf line = {0};
		buf_init(&line, RENDER_MAX_LINE);
		text_add_escaped(&line, str_from(v->tail[i].node));
		buf_addz(&line, " | ");
		text_add_escaped(&line, (struct str){v->tail[i].text, v->tail[i].n});
		finish_line(out, &line, TINT_DIM, st);
	}
}

void view_render(const struct view *v, const struct doc *run, int height, const struct style *st,
		 struct buf *out)
{
	int room = height - 2; /* the headline, and the line where the cursor rests */
	int tail = v->hide_tail ? 0 : (int)v->ntail;

	if (tail > room / 2)
		tail = room / 2;
	add_headline(v, run, st, out);
	if (room > tail && run_waits_for(run).n) {
		add_waiting(run, st, out);
		room--;
	}
	add_nodes(v, run, room - tail, st, out);
	add_tail(v, tail, st, out);
}
