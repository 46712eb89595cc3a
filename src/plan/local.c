/*
 * local - the engine of this machine: each node is an agent process with a
 * loopback address of its own, so that every node may use the same ports.  With
 * isolate = "netns" it has a network namespace instead, and the run has a bridge
 * that joins them.
 *
 * Facts (driver/local/local_resolve.c): first_address, of rank 0; home, of the master; run_dir;
 * base_dir; bridge, its address and prefix, "10.3.4.1/24".  Spec of a local.node: home, run_dir and
 * base_dir; with a namespace also address and prefix.  Spec of a local.bridge: the same, and hosts,
 * the lines for /etc/hosts.
 */
#include "plan/internal.h"

#include <arpa/inet.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"

#define HOSTS_PER_NET 254 /* .1 to .254 */
#define EXAMPLE_ADDRESS "127.1.0.1"
#define EXAMPLE_ISOLATED "10.1.0.2"
#define EXAMPLE_BRIDGE "10.1.0.1/24"
#define MOST_ISOLATED 1000    /* a bridge of Linux has 1023 ports */
#define ISOLATED_IFACE "eth0" /* LAYOUT_NETNS_IFACE of link/layout.h */

/* The index of an address among those that do not end in .0 or .255. */
static uint64_t usable_index(uint32_t address)
{
	uint64_t net = address >> 8, host = address & 255;

	if (host == 255)
		return (net + 1) * HOSTS_PER_NET;
	return net * HOSTS_PER_NET + (host ? host - 1 : 0);
}

/* The address of a rank: base + rank, skipping .0 and .255, which some tools refuse. */
static uint32_t address_of(uint32_t base, int rank)
{
	uint64_t at = usable_index(base) + (uint64_t)rank;

	return (uint32_t)((at / HOSTS_PER_NET) << 8 | (at % HOSTS_PER_NET + 1));
}

/* A local node can only be lost with the whole machine, so there is nothing to replace it with. */
static void check_lost(const struct policy *p, const char *where, struct arena *a,
		       struct problems *ps)
{
	if (p->on_lost != LOST_FAIL)
		problems_add(
			ps, a, p->on_lost_pos,
			"%son_lost = \"%s\": engine local has no other machine to move a node to: "
			"leave it out, or use engine = \"hosts\"",
			where, job_lost_choices[p->on_lost]);
}

/* The most nodes that the job may grow to. */
static int64_t count_nodes(const struct job *job)
{
	int64_t n = job->roles.n ? 0 : job->policy.max;

	for (size_t i = 0; i < job->roles.n; i++)
		n += job_role(job, i)->policy.max;
	return n;
}

static bool check(const struct job *job, struct arena *a, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	bool ok = plan_check_own_machines(job, "local", a, ps);

	check_lost(&job->policy, "", a, ps);
	if (job->isolate == ISOLATE_NETNS && count_nodes(job) > MOST_ISOLATED)
		problems_add(
			ps, a, job->isolate_pos,
			"isolate = \"netns\" takes at most %d nodes, and this job has %lld: leave out isolate",
			MOST_ISOLATED, (long long)count_nodes(job));
	bool contained = job->image;

	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);

		contained = contained || r->image;
		check_lost(&r->policy, arena_printf(a, "roles.%s.", r->name), a, ps);
	}
	if (contained && job->isolate == ISOLATE_NETNS)
		problems_add(
			ps, a, job->isolate_pos,
			"isolate = \"netns\" does not go with image: containers have the machine's network");
	return ok && ps->n + ps->more == before;
}

static uint32_t first_address(const struct doc *facts, const char *example)
{
	struct in_addr at;

	if (inet_pton(AF_INET, doc_str(facts, "first_address", str_from(example)).p, &at) != 1)
		inet_pton(AF_INET, example, &at);
	return ntohl(at.s_addr);
}

static struct doc *spec_new(const struct doc *facts, struct arena *a)
{
	static const char *const keys[] = {"home", "run_dir", "base_dir"};
	struct doc *spec = doc_new(a, DOC_TABLE);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		doc_set(a, spec, str_from(keys[i]),
			doc_new_str(a, doc_str(facts, keys[i], STR(""))));
	return spec;
}

static void set_address(struct doc *spec, struct str address, int64_t prefix, struct arena *a)
{
	doc_set(a, spec, STR("address"), doc_new_str(a, address));
	doc_set(a, spec, STR("prefix"), doc_new_int(a, prefix));
}

/* One spec for all nodes that share the machine's network; the name of the node is in the row. */
static const char *node_spec(const struct doc *facts, struct arena *a)
{
	return facts ? doc_json_text(a, spec_new(facts, a)) : "{}";
}

static const char *isolated_spec(const struct doc *facts, const char *address, int64_t prefix,
				 struct arena *a)
{
	struct doc *spec = spec_new(facts, a);

	set_address(spec, str_from(address), prefix, a);
	return doc_json_text(a, spec);
}

static const char *hosts_lines(const struct plan *p, struct arena *a)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	for (int i = 0; i < p->crew.n; i++)
		buf_printf(&text, "%s %s\n", p->addresses[i], p->crew.members[i].name);
	const char *lines = arena_strndup(a, buf_str(&text).p, text.n);

	buf_release(&text);
	return lines;
}

static const char *bridge_spec(const struct doc *facts, const struct plan *p, struct str address,
			       int64_t prefix, struct arena *a)
{
	struct doc *spec = spec_new(facts, a);

	set_address(spec, address, prefix, a);
	doc_set(a, spec, STR("hosts"), doc_new_str(a, str_from(hosts_lines(p, a))));
	return doc_json_text(a, spec);
}

/* Add the bridge as resource 0, which each node needs. */
static void isolate_nodes(const struct doc *facts, struct arena *a, struct plan *p)
{
	struct str prefix = doc_str(facts, "bridge", STR(EXAMPLE_BRIDGE));
	struct str address = str_cut(&prefix, '/');
	int64_t bits = 0;

	if (prefix.p)
		str_to_i64(prefix, &bits);
	p->iface = ISOLATED_IFACE;
	p->resources[0] = (struct plan_resource){
		.kind = "local.bridge",
		.name = "bridge",
		.node = -1,
		.spec = bridge_spec(facts, p, address, bits, a),
	};
	for (int i = 0; i < p->crew.n; i++) {
		struct plan_resource *r = &p->resources[p->resource_of[i]];

		r->needs = arena_array(a, int, 1); /* resource 0 */
		r->nneeds = 1;
		r->spec = isolated_spec(facts, p->addresses[i], bits, a);
	}
}

static void plan(const struct doc *facts, struct arena *a, struct plan *p)
{
	bool isolated = p->job->isolate == ISOLATE_NETNS;
	size_t n = (size_t)p->crew.n;
	int before = isolated ? 1 : 0; /* resources before those of the nodes */
	uint32_t base = first_address(facts, isolated ? EXAMPLE_ISOLATED : EXAMPLE_ADDRESS);
	const char *spec = node_spec(facts, a);

	p->iface = "lo";
	p->crew.one_host = !isolated;
	p->addresses = arena_array(a, const char *, n);
	p->nresources = p->crew.n + before;
	p->resources = arena_array(a, struct plan_resource, (size_t)p->nresources);
	p->resource_of = arena_array(a, int, n);
	for (int i = 0; i < p->crew.n; i++) {
		uint32_t at = address_of(base, i);

		p->addresses[i] = arena_printf(a, "%u.%u.%u.%u", at >> 24, at >> 16 & 255,
					       at >> 8 & 255, at & 255);
		p->resources[i + before] = (struct plan_resource){
			.kind = "local.node",
			.name = p->crew.members[i].name,
			.node = i,
			.spec = spec,
		};
		p->resource_of[i] = i + before;
	}
	if (isolated)
		isolate_nodes(facts, a, p);
}

const struct engine engine_local = {
	.name = "local",
	.help = "processes on this machine, each with a loopback address of its own",
	.in_place = true,
	.isolates = true,
	.queues = true,
	.check = check,
	.plan = plan,
};
