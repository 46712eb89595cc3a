/* plan_text - a plan for people: resources, nodes, order of start, limits and environments. */
#include "plan/internal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"

#define MAX_NODES_SHOWN 64
#define MAX_VALUE_SHOWN 400 /* bytes of a variable or command */

/* Print text of a job file to a terminal: without control bytes, cut to MAX_VALUE_SHOWN. */
static void add_shown(struct buf *out, struct str text)
{
	struct str head = text;

	if (head.n > MAX_VALUE_SHOWN) {
		head.n = MAX_VALUE_SHOWN;
		while (head.n > 0 && ((unsigned char)text.p[head.n] & 0xc0) == 0x80)
			head.n--;
	}
	escape_terminal(out, head);
	if (head.n < text.n)
		buf_printf(out, "... (%zu bytes)", text.n);
}

/* Quoted as for a shell. */
static void add_command(struct buf *out, const struct strs *command)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
	CLEANUP(buf_release) struct buf line = {0};

	buf_init(&line, DOC_MAX_BYTES * 5);
	for (size_t i = 0; i < command->n; i++) {
		const char *word = command->v[i];

		if (i > 0)
			buf_addc(&line, ' ');
		if (word[0] && word[strspn(word, plain)] == '\0') {
			buf_addz(&line, word);
			continue;
		}
		buf_addc(&line, '\'');
		for (; *word; word++) {
			if (*word == '\'')
				buf_addz(&line, "'\\''");
			else
				buf_addc(&line, *word);
		}
		buf_addc(&line, '\'');
	}
	add_shown(out, buf_str(&line));
}

static int widest(int so_far, const char *text)
{
	int n = (int)strlen(text);

	return n > so_far ? n : so_far;
}

static void add_nodes(const struct plan *p, struct buf *out)
{
	int shown = p->crew.n < MAX_NODES_SHOWN ? p->crew.n : MAX_NODES_SHOWN;
	int name = 4, role = 4, address = 7;

	for (int i = 0; i < shown; i++) {
		name = widest(name, p->crew.members[i].name);
		role = widest(role, p->crew.roles[p->crew.members[i].role].name);
		address = widest(address, p->addresses[i] ? p->addresses[i] : "-");
	}
	buf_printf(out, "\n%-*s  %-*s  %5s  %-*s  %5s\n", name, "NODE", role, "ROLE", "RANK",
		   address, "ADDRESS", "PORT");
	for (int i = 0; i < shown; i++) {
		const struct member *m = &p->crew.members[i];
		const struct strategy_role *r = &p->crew.roles[m->role];

		buf_printf(out, "%-*s  %-*s  %5d  %-*s  ", name, m->name, role, r->name, m->rank,
			   address, p->addresses[i] ? p->addresses[i] : "-");
		if (r->port)
			buf_printf(out, "%5d\n", r->port);
		else
			buf_printf(out, "%5s\n", "-");
	}
	if (shown < p->crew.n)
		buf_printf(out, "... and %d more\n", p->crew.n - shown);
	if (p->strategy->ranks_by_address)
		buf_addz(out,
			 "Ranks are given in the order of addresses when all nodes are here.\n");
}

static void add_gate(const struct strategy_role *other, struct buf *out)
{
	const char *every = other->count > 1 ? "every " : "";

	switch ((enum ready_when)other->ready_when) {
	case READY_DEFAULT: /* does not occur: the crew resolved it */
	case READY_STARTED:
		buf_printf(out, "%s%s has been started", every, other->name);
		break;
	case READY_PORT:
		buf_printf(out, "%s%s answers on port %d", every, other->name, other->port);
		break;
	case READY_FINISHED:
		buf_printf(out, "%s%s has finished", every, other->name);
		break;
	}
}

static void add_roles(const struct plan *p, struct buf *out)
{
	int name = 0;

	for (int i = 0; i < p->crew.nroles; i++)
		name = widest(name, p->crew.roles[i].name);
	buf_addz(out, "\ncommands\n");
	for (int i = 0; i < p->crew.nroles; i++) {
		buf_printf(out, "  %-*s  ", name, p->crew.roles[i].name);
		add_command(out, &p->crew.roles[i].command);
		buf_addc(out, '\n');
	}
	buf_addz(out, "\nstart, once every node is ready\n");
	for (int i = 0; i < p->crew.nroles; i++) {
		const struct strategy_role *r = &p->crew.roles[i];

		buf_printf(out, "  %-*s  %s", name, r->name, r->nafter ? "when " : "at once");
		for (int k = 0; k < r->nafter; k++) {
			buf_addz(out, k ? " and " : "");
			add_gate(&p->crew.roles[r->after[k]], out);
		}
		buf_addc(out, '\n');
	}
	buf_addz(out, "\nfinish\n");
	for (int i = 0; i < p->crew.nroles; i++)
		buf_printf(out, "  %-*s  %s\n", name, p->crew.roles[i].name,
			   p->crew.roles[i].counted ? "decides the verdict"
						    : "is stopped when the others are done");
}

static void add_span(struct buf *out, const char *name, int64_t ms, const char *none)
{
	char text[32];

	clock_format_span(ms, text);
	buf_printf(out, "  %-12s  %s\n", name, ms == 0 && none ? none : text);
}

static void add_limits(const struct job *job, struct buf *out)
{
	buf_addz(out, "\nlimits\n");
	add_span(out, "max_runtime", job->max_runtime_ms, "none");
	if (job->max_cost > 0)
		buf_printf(out, "  %-12s  %.2f USD\n", "max_cost", job->max_cost);
	else
		buf_printf(out, "  %-12s  none\n", "max_cost");
	add_span(out, "launch", job->timeouts.launch_ms, NULL);
	if (plan_makes_machines(job))
		add_span(out, "boot", job->timeouts.boot_ms, NULL);
	add_span(out, "gather", job->timeouts.gather_ms, NULL);
	if (job_sets_up(job))
		add_span(out, "setup", job->timeouts.setup_ms, NULL);
	add_span(out, "serve", job->timeouts.serve_ms, NULL);
	add_span(out, "grace", job->timeouts.grace_ms, NULL);
	add_span(out, "collect", job->timeouts.collect_ms, NULL);
	add_span(out, "lease", job->timeouts.lease_ms, NULL);
}

/* Is the pair in env?  Both lists are sorted: the search continues at *at. */
static bool has_pair(const struct env_list *env, size_t *at, const struct env_pair *pair)
{
	while (*at < env->n && strcmp(env->v[*at].name, pair->name) < 0)
		(*at)++;
	return *at < env->n && strcmp(env->v[*at].name, pair->name) == 0 &&
	       strcmp(env->v[*at].value, pair->value) == 0;
}

static void add_pair(struct buf *out, const struct env_pair *pair)
{
	buf_printf(out, "    %s=", pair->name);
	add_shown(out, str_from(pair->value));
	buf_addc(out, '\n');
}

/* Variables that all nodes have in common are printed once. */
static void add_env(const struct plan *p, const char *run_id, struct arena *a, struct buf *out)
{
	struct env_list *envs = arena_array(a, struct env_list, (size_t)p->crew.n), common = {0};
	bool first = true;

	for (int i = 0; i < p->crew.n; i++) {
		if (!plan_shows_env(p, i))
			continue;
		plan_env(p, run_id, i, a, &envs[i]);
		size_t n = 0, at = 0;
		if (first) {
			common.v = arena_array(a, struct env_pair, envs[i].n);
			memcpy(common.v, envs[i].v, envs[i].n * sizeof(*common.v));
			common.n = envs[i].n;
		}
		first = false;
		for (size_t k = 0; k < common.n; k++)
			if (has_pair(&envs[i], &at, &common.v[k]))
				common.v[n++] = common.v[k];
		common.n = n;
	}
	buf_addz(out, "\nenvironment\n  every node\n");
	for (size_t k = 0; k < common.n; k++)
		add_pair(out, &common.v[k]);
	for (int i = 0; i < p->crew.n; i++) {
		size_t at = 0;

		if (!plan_shows_env(p, i))
			continue;
		buf_printf(out, "  %s\n", p->crew.members[i].name);
		for (size_t k = 0; k < envs[i].n; k++)
			if (!has_pair(&common, &at, &envs[i].v[k]))
				add_pair(out, &envs[i].v[k]);
	}
}

/* "5 local.node", kinds in the order of the resources. */
static void add_resources(const struct plan *p, struct buf *out)
{
	buf_addz(out, "resources  ");
	for (int i = 0; i < p->nresources;) {
		int from = i;

		while (i < p->nresources &&
		       strcmp(p->resources[i].kind, p->resources[from].kind) == 0)
			i++;
		buf_printf(out, "%s%d %s", from ? ", " : "", i - from, p->resources[from].kind);
	}
	buf_addc(out, '\n');
}

void plan_to_text(const struct plan *p, const char *run_id, struct arena *a, struct buf *out)
{
	buf_printf(out, "run        %s\nengine     %s\nstrategy   %s: %s\n", run_id, p->job->engine,
		   p->strategy->name, p->strategy->help);
	add_resources(p, out);
	add_nodes(p, out);
	add_roles(p, out);
	add_limits(p->job, out);
	plan_cost_text(p, a, out);
	plan_volumes_text(p, a, out);
	add_env(p, run_id, a, out);
}
