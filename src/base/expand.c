#include "base/expand.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define DEPTH_MAX 2 /* a list has no lists in its items */

/* One pass over a template, for one node. */
struct pass {
	const struct expand_here *here;
	const struct expand_role *role; /* of the node */
	int rank, local;		/* of the process; in an item of a list of nodes: 0 */
	int depth;
	struct buf *out;
	struct err *err;
};

static enum expanded expand_part(const struct pass *p, struct str text);

static bool read_int(struct str text, int *ret)
{
	int value = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || i > 8)
			return false;
		value = value * 10 + text.p[i] - '0';
	}
	*ret = value;
	return text.n > 0;
}

static const struct expand_role *role_of(const struct expand_members *m, int rank)
{
	for (size_t i = 0; i < m->nroles; i++)
		if (rank >= m->roles[i].first && rank < m->roles[i].first + m->roles[i].count)
			return &m->roles[i];
	return NULL;
}

static int processes_of(const struct expand_role *r)
{
	return r->processes > 1 ? r->processes : 1;
}

int expand_first_process(const struct expand_members *m, int rank)
{
	int before = 0;

	for (size_t i = 0; i < m->nroles; i++) {
		const struct expand_role *r = &m->roles[i];
		int nodes = rank < r->first + r->count ? rank - r->first : r->count;

		before += nodes > 0 ? nodes * processes_of(r) : 0;
	}
	return before;
}

static enum expanded bad(const struct pass *p, struct str what)
{
	err_set(p->err, ERR_PROTOCOL, "placeholder '{%.*s}' cannot be filled in",
		what.n > 60 ? 60 : (int)what.n, what.p);
	return EXPAND_BAD;
}

static void put_name(const struct pass *p, const struct expand_role *role, int rank)
{
	const char *const *names = p->here->members->names;

	if (names) {
		buf_addz(p->out, names[rank]);
		return;
	}
	buf_addz(p->out, role->name);
	buf_addc(p->out, '-');
	buf_addint(p->out, rank - role->first);
}

static void put_address(const struct pass *p, const struct expand_role *role, int rank)
{
	const char *address = p->here->members->addresses[rank];

	if (address)
		buf_addz(p->out, address);
	else
		put_name(p, role, rank);
}

/* ---- the placeholders; arg is the text after the colon ---- */

static enum expanded put_rank(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, p->rank);
	return EXPAND_OK;
}

static enum expanded put_index(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, p->rank - p->role->first);
	return EXPAND_OK;
}

static enum expanded put_process(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, expand_first_process(p->here->members, p->rank) + p->local);
	return EXPAND_OK;
}

static enum expanded put_local(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, p->local);
	return EXPAND_OK;
}

static enum expanded put_task(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, (p->rank - p->role->first) * processes_of(p->role) + p->local);
	return EXPAND_OK;
}

static enum expanded put_processes(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, processes_of(p->role));
	return EXPAND_OK;
}

static enum expanded put_own_name(const struct pass *p, struct str arg)
{
	(void)arg;
	put_name(p, p->role, p->rank);
	return EXPAND_OK;
}

static enum expanded put_any_address(const struct pass *p, struct str arg)
{
	const struct expand_role *role = p->role;
	int rank = p->rank;

	if (arg.n > 0) {
		if (!read_int(arg, &rank) || !(role = role_of(p->here->members, rank)))
			return bad(p, arg);
	}
	put_address(p, role, rank);
	return EXPAND_OK;
}

static enum expanded put_port(const struct pass *p, struct str arg)
{
	int port;

	if (!read_int(arg, &port))
		return bad(p, arg);
	buf_addint(p->out, p->role->port ? p->role->port : port);
	return EXPAND_OK;
}

static enum expanded put_process_port(const struct pass *p, struct str arg)
{
	int port;

	if (!read_int(arg, &port))
		return bad(p, arg);
	buf_addint(p->out, (p->role->port ? p->role->port : port) + p->local);
	return EXPAND_OK;
}

/* {:port}: the name is empty. */
static enum expanded put_colon_port(const struct pass *p, struct str arg)
{
	if (!str_is(arg, "port"))
		return bad(p, arg);
	if (p->role->port) {
		buf_addc(p->out, ':');
		buf_addint(p->out, p->role->port);
	}
	return EXPAND_OK;
}

static enum expanded put_attempt(const struct pass *p, struct str arg)
{
	(void)arg;
	buf_addint(p->out, p->here->attempt);
	return EXPAND_OK;
}

static bool cut(struct str *rest, char at, struct str *ret)
{
	const char *end = memchr(rest->p, at, rest->n);

	if (!end)
		return false;
	*ret = (struct str){rest->p, (size_t)(end - rest->p)};
	*rest = (struct str){end + 1, rest->n - ret->n - 1};
	return true;
}

static bool is_listed(const struct expand_role *r, struct str who)
{
	return str_is(who, "*") || (str_is(who, "+") ? r->counted : str_is(who, r->name));
}

/* The item for each process (or only the first) of the node each->rank. */
static enum expanded put_node(struct pass *each, int processes, struct str between, struct str item,
			      bool *first)
{
	for (each->local = 0; each->local < processes; each->local++) {
		if (!*first)
			buf_addstr(each->out, between);
		*first = false;
		enum expanded how = expand_part(each, item);

		if (how != EXPAND_OK || each->out->overflow)
			return how; /* expand_text reports the overflow */
	}
	return EXPAND_OK;
}

static enum expanded put_items(const struct pass *p, struct str arg, bool of_processes)
{
	const struct expand_members *m = p->here->members;
	struct str who, between, item = arg;
	bool first = true;

	if (p->depth + 1 >= DEPTH_MAX || !cut(&item, '|', &who) || !cut(&item, '|', &between))
		return bad(p, arg);
	for (size_t k = 0; k < m->nroles; k++) {
		const struct expand_role *r = &m->roles[k];
		struct pass each = *p;

		each.depth++;
		each.role = r;
		for (int i = r->first; is_listed(r, who) && i < r->first + r->count; i++) {
			each.rank = i;
			enum expanded how = put_node(&each, of_processes ? processes_of(r) : 1,
						     between, item, &first);
			if (how != EXPAND_OK || p->out->overflow)
				return how;
		}
	}
	return EXPAND_OK;
}

static enum expanded put_list(const struct pass *p, struct str arg)
{
	return put_items(p, arg, false);
}

static enum expanded put_each(const struct pass *p, struct str arg)
{
	return put_items(p, arg, true);
}

static const struct {
	const char *name;
	enum expanded (*put)(const struct pass *p, struct str arg);
	size_t here; /* put == NULL: offset of the member of expand_here that has the text */
} places[] = {
	{"rank", put_rank, 0},
	{"index", put_index, 0},
	{"process", put_process, 0},
	{"local", put_local, 0},
	{"task", put_task, 0},
	{"processes", put_processes, 0},
	{"name", put_own_name, 0},
	{"address", put_any_address, 0},
	{"port", put_port, 0},
	{"process_port", put_process_port, 0},
	{"", put_colon_port, 0},
	{"attempt", put_attempt, 0},
	{"list", put_list, 0},
	{"each", put_each, 0},
	{"interface", NULL, offsetof(struct expand_here, interface)},
	{"output", NULL, offsetof(struct expand_here, output)},
	{"work", NULL, offsetof(struct expand_here, work)},
	{"hostfile", NULL, offsetof(struct expand_here, hostfile)},
	{"machinefile", NULL, offsetof(struct expand_here, machinefile)},
	{"metrics", NULL, offsetof(struct expand_here, metrics)},
	{"rsh", NULL, offsetof(struct expand_here, rsh)},
	{"tee", NULL, offsetof(struct expand_here, tee)},
};

static enum expanded put_here(const struct pass *p, size_t offset)
{
	const char *text;

	memcpy(&text, (const char *)p->here + offset, sizeof(text));
	if (!text || !text[0])
		return EXPAND_NONE;
	buf_addz(p->out, text);
	return EXPAND_OK;
}

static enum expanded expand_place(const struct pass *p, struct str what)
{
	struct str name = what, arg = what;

	if (!cut(&arg, ':', &name))
		arg = (struct str){"", 0};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (str_is(name, places[i].name))
			return places[i].put ? places[i].put(p, arg) : put_here(p, places[i].here);
	return bad(p, what);
}

/* The closing brace of a placeholder whose text begins at p; braces of nested placeholders are skipped. */
static const char *place_end(const char *p, const char *end)
{
	for (int open = 1; p < end; p++) {
		open += (*p == '{') - (*p == '}');
		if (open == 0)
			return p;
	}
	return NULL;
}

static enum expanded expand_part(const struct pass *p, struct str text)
{
	const char *at = text.p, *end = text.p + text.n;

	for (const char *brace; (brace = memchr(at, '{', (size_t)(end - at)));) {
		buf_add(p->out, at, (size_t)(brace - at));
		at = brace + 1;
		if (at < end && *at == '{') {
			buf_addc(p->out, '{');
			at++;
			continue;
		}
		const char *close = place_end(at, end);

		if (!close)
			return bad(p, (struct str){at, (size_t)(end - at)});
		enum expanded how = expand_place(p, (struct str){at, (size_t)(close - at)});
		if (how != EXPAND_OK)
			return how;
		at = close + 1;
	}
	buf_add(p->out, at, (size_t)(end - at));
	return EXPAND_OK;
}

enum expanded expand_text(const char *template, const struct expand_here *here, struct buf *out,
			  struct err *err)
{
	struct pass p = {
		.here = here,
		.role = role_of(here->members, here->rank),
		.rank = here->rank,
		.local = here->local,
		.out = out,
		.err = err,
	};

	if (!p.role) {
		err_set(err, ERR_PROTOCOL, "rank %d is none of the %d members", here->rank,
			here->members->n);
		return EXPAND_BAD;
	}
	enum expanded how = expand_part(&p, str_from(template));

	if (how != EXPAND_OK || !out->overflow)
		return how;
	err_set(err, ERR_CAPACITY, "a list of the members has more than %zu bytes", out->max);
	return EXPAND_BAD;
}

enum expanded expand_variable(const char *name, const char *template,
			      const struct expand_here *here, struct buf *out, struct err *err)
{
	buf_reset(out);
	enum expanded how = expand_text(template, here, out, err);

	if (how == EXPAND_BAD)
		err_wrap(err, "variable %s", name);
	if (how == EXPAND_OK && strlen(name) + out->n + 2 > EXPAND_MAX_VARIABLE)
		return EXPAND_LONG;
	return how;
}

void expand_quote(const char *text, struct buf *out)
{
	for (const char *brace; (brace = strchr(text, '{')); text = brace + 1) {
		buf_add(out, text, (size_t)(brace - text));
		buf_addz(out, "{{");
	}
	buf_addz(out, text);
}
