#include "master/start_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "fmt/doc.h"
#include "link/conn.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/messages.h"
#include "master/node_container.h"
#include "master/round.h"
#include "spec/job.h"
#include "spec/variable.h"
#include "strategy/strategy.h"

#define PART_BYTES (512 * 1024) /* of addresses and names in one MEMBERS frame */
#define PARTS_MAX_BYTES (8 * 1024 * 1024)
#define LONG_NAMES 400 /* bytes of names in the text of an event */

struct start_table {
	struct arena *arena;
	int members_no;	  /* core_run.members_no that the table was made for */
	struct crew crew; /* the nodes that are not asleep */
	/* Rank in the plan -> rank in `crew`, which may be ordered by address; -1: asleep. */
	int *ranks;
	struct expand_members members;
	VEC(struct conn_shared *) parts; /* encoded MEMBERS frames */
	struct env_list *templates;	 /* per role; n == 0: not made yet */
	/* per role: the event about too long values was recorded */
	bool *noted;
};

void start_forget(struct live_run *lr)
{
	struct start_table *t = lr->start;

	if (!t)
		return;
	for (size_t i = 0; i < t->parts.n; i++)
		conn_shared_free(t->parts.v[i]);
	vec_release(&t->parts);
	arena_free(t->arena);
	free(t);
	lr->start = NULL;
}

/* The names are those of the plan, whatever rank the job sees. */
static const char *const *names_of(const struct live_run *lr, struct start_table *t)
{
	const char **names = arena_array(t->arena, const char *, (size_t)t->crew.n + 1);

	for (int i = 0; i < lr->plan.crew.n; i++)
		if (t->ranks[i] >= 0)
			names[t->ranks[i]] = lr->plan.crew.members[i].name;
	return names;
}

static void copy_members(const struct live_run *lr, struct start_table *t)
{
	const struct core_run *r = lr->core;
	size_t n = (size_t)lr->plan.crew.n;
	const char **addresses = arena_array(t->arena, const char *, n);
	bool *asleep = arena_array(t->arena, bool, n); /* by the rank that the job sees */
	int *awake = arena_array(t->arena, int, n);    /* the same without gaps */

	t->members_no = r->members_no;
	t->ranks = arena_array(t->arena, int, n);
	for (size_t i = 0; i < n; i++)
		asleep[core_job_rank(r, (int)i)] = r->nodes[i].asleep;
	strategy_awake(&lr->plan.crew, asleep, t->arena, &t->crew, awake);
	for (size_t i = 0; i < n; i++) {
		const char *address = r->nodes[i].address;

		t->ranks[i] = awake[core_job_rank(r, (int)i)];
		if (t->ranks[i] >= 0 && address[0])
			addresses[t->ranks[i]] = arena_strdup(t->arena, address);
	}
	strategy_members(&t->crew, addresses, t->arena, &t->members);
	if (lr->plan.strategy->ranks_by_address)
		t->members.names = names_of(lr, t);
}

static struct start_table *table_of(struct live_run *lr)
{
	if (lr->start && lr->start->members_no == lr->core->members_no)
		return lr->start;
	start_forget(lr);
	struct start_table *t = xcalloc(1, sizeof(*t));

	t->arena = arena_new();
	t->templates = arena_array(t->arena, struct env_list, (size_t)lr->plan.crew.nroles);
	t->noted = arena_array(t->arena, bool, (size_t)lr->plan.crew.nroles);
	copy_members(lr, t);
	lr->start = t;
	return t;
}

const struct crew *start_crew(struct live_run *lr)
{
	return &table_of(lr)->crew;
}

int start_rank(struct live_run *lr, int rank)
{
	int at = table_of(lr)->ranks[rank];

	return at < 0 ? rank : at;
}

const struct expand_members *start_members(struct live_run *lr)
{
	return &table_of(lr)->members;
}

/* ---- the environment of a role ---- */

/* The host and port of the HTTP service as nodes reach it, "127.0.0.1:5436"; "" if the master listens on
 * no TCP port. */
static const char *http_endpoint(const struct master *m)
{
	const char *scheme_end = strstr(m->services.url ? m->services.url : m->http_url, "://");

	return scheme_end ? scheme_end + strlen("://") : "";
}

static bool env_has(const struct env_list *env, struct str name)
{
	for (size_t i = 0; i < env->n; i++)
		if (str_is(name, env->v[i].name))
			return true;
	return false;
}

static const char *quoted(const char *text, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, 2 * strlen(text) + 1);
	expand_quote(text, &out);
	return arena_str(a, buf_str(&out)).p;
}

/* What the node itself says to its job wins over the shell of whoever submits, unless `pass` names it: its GPUs, and the
 * directory in which a launcher's daemons keep their files. */
static bool node_says(const struct live_run *lr, int role, struct str name)
{
	const struct strategy_role *r = &lr->plan.crew.roles[role];
	bool gpus = r->spec && r->spec->resources && r->spec->resources->gpus > 0;

	if (str_is(name, "CUDA_VISIBLE_DEVICES") || str_is(name, "NVIDIA_VISIBLE_DEVICES"))
		return gpus && !variable_matches(&lr->job->pass, name);
	return str_is(name, "TMPDIR") && lr->plan.crew.launch != LAUNCH_ALL &&
	       !variable_matches(&lr->job->pass, name);
}

/* The variables of the submitting shell, then those of the run, which override them. */
static struct env_list with_client_env(const struct live_run *lr, int role,
				       const struct env_list *env, struct arena *a)
{
	const char *image = job_image(lr->job, lr->plan.crew.roles[role].spec);
	struct doc *client = NULL;
	size_t n = 0;

	if (json_parse(str_from(lr->client_env), a, &client, NULL) == 0 &&
	    client->type == DOC_TABLE)
		n = client->table.n;
	struct env_list all = {.v = arena_array(a, struct env_pair, n + env->n + 1)};

	for (size_t i = 0; i < n; i++) {
		const struct doc_entry *e = &client->table.v[i];

		if (e->value->type == DOC_STRING && !env_has(env, e->key) &&
		    !node_says(lr, role, e->key) && !client_variable_hidden(lr, image, e->key))
			all.v[all.n++] =
				(struct env_pair){arena_str(a, e->key).p, quoted(e->value->s.p, a)};
	}
	for (size_t i = 0; i < env->n; i++)
		all.v[all.n++] = env->v[i];
	return all;
}

/* Records which variables are too long.  They are the same on all nodes of a role, so the first
 * node that starts records them. */
static void note_long(struct live_run *lr, int rank)
{
	CLEANUP(buf_release) struct buf text = {0}, names = {0};
	int role = lr->plan.crew.members[rank].role;
	const struct env_list *env = start_templates(lr, role);
	const struct expand_here here = {.members = start_members(lr),
					 .rank = start_rank(lr, rank)};

	if (lr->start->noted[role])
		return;
	lr->start->noted[role] = true;
	buf_init(&text, EXPAND_MAX_TEXT);
	buf_init(&names, LONG_NAMES);
	for (size_t i = 0; i < env->n; i++)
		if (expand_variable(env->v[i].name, env->v[i].value, &here, &text, NULL) ==
		    EXPAND_LONG)
			buf_printf(&names, "%s%s", names.n ? ", " : "", env->v[i].name);
	if (names.n > 0)
		run_note(
			lr, "long_values", -1,
			"nodes of %s: too long for a variable, in a file that NAME" EXPAND_FILE_SUFFIX
			" names instead: %s",
			lr->plan.crew.roles[role].name, names.p);
}

const struct env_list *start_templates(struct live_run *lr, int role)
{
	struct start_table *t = table_of(lr);
	const struct env_input in = {
		.job = lr->job,
		.crew = &t->crew,
		.run_id = lr->row.id,
		.master_endpoint = http_endpoint(lr->m),
	};
	struct env_list own;

	if (t->templates[role].n > 0)
		return &t->templates[role];
	strategy_env(lr->plan.strategy, &in, role, t->arena, &own);
	t->templates[role] = with_client_env(lr, role, &own, t->arena);
	return &t->templates[role];
}

/* ---- the members ---- */

static struct message_role *roles_of(const struct expand_members *m, struct arena *a)
{
	struct message_role *v = arena_array(a, struct message_role, m->nroles);

	for (size_t i = 0; i < m->nroles; i++)
		v[i] = (struct message_role){
			.name = m->roles[i].name,
			.first = m->roles[i].first,
			.count = m->roles[i].count,
			.port = m->roles[i].port,
			.processes = m->roles[i].processes,
			.counted = m->roles[i].counted,
		};
	return v;
}

static void join(struct buf *text, const char *word)
{
	if (text->n > 0)
		buf_addc(text, ' ');
	buf_addz(text, word);
}

/* The members of one part, from rank *next on. */
static void take_members(const struct expand_members *m, int *next, struct buf *addresses,
			 struct buf *names)
{
	buf_reset(addresses);
	buf_reset(names);
	for (; *next < m->n && addresses->n + names->n < PART_BYTES; (*next)++) {
		const char *address = m->addresses[*next];

		join(addresses, address ? address : MESSAGE_NO_ADDRESS);
		if (m->names)
			join(names, m->names[*next]);
	}
}

static void encode_parts(struct start_table *t)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf addresses = {0}, names = {0}, out = {0};
	struct message_members m = {
		.total = t->members.n,
		.roles = roles_of(&t->members, a),
		.nroles = t->members.nroles,
	};

	buf_init(&addresses, PARTS_MAX_BYTES);
	buf_init(&names, PARTS_MAX_BYTES);
	buf_init(&out, FRAME_MAX_PAYLOAD);
	for (int next = 0; next < t->members.n;) {
		m.first = next;
		take_members(&t->members, &next, &addresses, &names);
		m.addresses = addresses.p;
		m.names = t->members.names ? names.p : NULL;
		buf_reset(&out);
		message_members_put(&m, &out);
		*vec_push(&t->parts) = conn_shared_new(FRAME_MEMBERS, buf_str(&out));
	}
}

static void send_members(struct live_run *lr, int rank)
{
	struct start_table *t = table_of(lr);

	if (t->parts.n == 0)
		encode_parts(t);
	for (size_t i = 0; i < t->parts.n; i++)
		agent_send_shared(lr, rank, t->parts.v[i]);
}

/* The attempt ends before it began. */
static void start_is_too_long(struct live_run *lr, int rank, int attempt)
{
	struct event ev = {.kind = EV_NODE_EXITED,
			   .index = rank,
			   .attempt = attempt,
			   .exit = {.code = -1, .kind = ERR_INVALID}};

	snprintf(ev.exit.reason, sizeof(ev.exit.reason),
		 "its command and environment take more than %d KiB", FRAME_MAX_PAYLOAD / 1024);
	run_event(lr, &ev);
	run_event(lr, &(struct event){.kind = EV_NODE_DRAINED, .index = rank, .attempt = attempt});
}

void start_send(struct live_run *lr, int rank, int attempt)
{
	CLEANUP(buf_release) struct buf text = {0};
	bool templates = lr->nodes[rank].templates;

	note_long(lr, rank);
	buf_init(&text, FRAME_MAX_PAYLOAD);
	node_start_put(lr, rank, attempt, templates, &text);
	if (text.overflow) {
		start_is_too_long(lr, rank, attempt);
		return;
	}
	agent_cork(lr, rank, true);
	if (templates)
		send_members(lr, rank);
	agent_send(lr, rank, FRAME_START, buf_str(&text));
	agent_cork(lr, rank, false);
}
