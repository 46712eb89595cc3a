/*
 * hosts - the engine for machines that have joined the master (`regatta agent --join`): each node is
 * made by the daemon of a host.
 *
 * The host of a node is chosen when the node is created (driver/hosts/hosts_node.c), so its address
 * comes with its HELLO.  Spec of a hosts.node: names, labels and slots of the job's [hosts]; fence_ms:
 * when host and node were silent for so long, the job has ended by itself; cpus, gpus and memory of the
 * role's `resources`, if it has any.
 */
#include <string.h>

#include "base/arena.h"
#include "fmt/doc.h"
#include "plan/internal.h"

#define MAX_SLOTS 1024
#define FENCE_SLACK_MS 2000
/*
 * Nodes that are created together: their hosts are chosen at once.  All of a run are, unless they want the same, because
 * the first could take the hosts that only the last would fit on, and unless the run has waited in the queue, which lets
 * no other begin meanwhile: two runs could hold half of the hosts each.
 */
#define TOGETHER 200

struct hosts_table {
	struct doc_pos pos;
	struct strs names;
	struct env_list labels;
	int64_t slots;
};

static const struct field fields[] = {
	{
		.name = "names",
		.type = FIELD_STRS,
		.offset = offsetof(struct hosts_table, names),
		.help = "Only these hosts may be taken. Without it, any that has joined.",
		.example = "names = [\"node1\", \"node2\"]",
	},
	{
		.name = "labels",
		.type = FIELD_ENV,
		.offset = offsetof(struct hosts_table, labels),
		.help = "Only hosts that joined with all of these labels (`regatta agent --labels`) may be "
			"taken.",
		.example = "labels = { gpu = \"a100\" }",
	},
	{
		.name = "slots",
		.type = FIELD_INT,
		.offset = offsetof(struct hosts_table, slots),
		.fallback = "1",
		.min = 1,
		.max = MAX_SLOTS,
		.help = "How many nodes of the run may share a host. Nodes of two runs never do.",
		.example = "slots = 2",
	},
	{.name = NULL},
};
static const struct schema hosts_schema = {
	.name = "hosts",
	.size = sizeof(struct hosts_table),
	.pos_offset = offsetof(struct hosts_table, pos),
	.fields = fields,
};
static const struct field row = {
	.name = "hosts",
	.type = FIELD_BOX,
	.sub = &hosts_schema,
	.help = "Which of the hosts that have joined the master engine `hosts` may take.",
	.example = "[hosts]\nlabels = { gpu = \"a100\" }",
};

static bool check(const struct job *job, struct arena *a, struct problems *ps)
{
	return plan_check_own_machines(job, "hosts", a, ps);
}

/* A node without its master stops its job after `lost`, or after `lease` if it is not to be replaced. */
static int64_t fence_ms(const struct job *job, const struct role *role)
{
	const struct timeouts *t = &job->timeouts;
	const struct policy *p = role ? &role->policy : &job->policy;

	return (p->on_lost == LOST_FAIL ? t->lease_ms : t->lost_ms) + t->grace_ms + FENCE_SLACK_MS;
}

static void put_share(struct doc *spec, const struct resources_spec *r, struct arena *a)
{
	if (r->cpus > 0)
		doc_set(a, spec, STR("cpus"), doc_new_float(a, r->cpus));
	if (r->gpus)
		doc_set(a, spec, STR("gpus"), doc_new_int(a, r->gpus));
	if (r->memory)
		doc_set(a, spec, STR("memory"), doc_new_int(a, (int64_t)r->memory));
}

static const char *spec_of(const struct job *job, const struct role *role, struct arena *a)
{
	struct doc *spec = schema_to_doc(&hosts_schema, engine_table(&engine_hosts, job, a), a);

	doc_set(a, spec, STR("fence_ms"), doc_new_int(a, fence_ms(job, role)));
	if (role && role->resources)
		put_share(spec, role->resources, a);
	return doc_json_text(a, spec);
}

/* True if all nodes want the same of their hosts, so that they find room in any order. */
static bool all_alike(const char **specs, int n)
{
	for (int i = 1; i < n; i++)
		if (strcmp(specs[i], specs[0]) != 0)
			return false;
	return true;
}

static void plan(const struct doc *facts, struct arena *a, struct plan *p)
{
	size_t n = (size_t)p->crew.n;
	const char **specs = arena_array(a, const char *, (size_t)p->crew.nroles);

	(void)facts;
	p->crew.one_host =
		((const struct hosts_table *)engine_table(&engine_hosts, p->job, a))->slots > 1;
	for (int i = 0; i < p->crew.nroles; i++)
		specs[i] = spec_of(p->job, p->crew.roles[i].spec, a);
	bool parts = plan_queues(p) && all_alike(specs, p->crew.nroles);

	p->addresses = arena_array(a, const char *, n);
	p->resources = arena_array(a, struct plan_resource, n);
	p->resource_of = arena_array(a, int, n);
	p->nresources = p->crew.n;
	for (int i = 0; i < p->crew.n; i++) {
		p->resources[i] = (struct plan_resource){
			.kind = "hosts.node",
			.name = p->crew.members[i].name,
			.node = i,
			.group = parts ? 1 + i / TOGETHER : 1,
			.spec = specs[p->crew.members[i].role],
		};
		p->resource_of[i] = i;
	}
}

const struct engine engine_hosts = {
	.name = "hosts",
	.help = "one's own machines that have joined the master, one node each",
	.schema = &row,
	.moves_nodes = true,
	.queues = true,
	.check = check,
	.plan = plan,
};
