/*
 * local - the engine of this machine: each node is an agent process with a
 * loopback address of its own, so that every node may use the same ports.
 *
 * Facts (driver/local/local_resolve.c): first_address, that of rank 0; home, the master's;
 * run_dir.  Spec of a local.node: home and run_dir.
 */
#include "plan/internal.h"

#include <arpa/inet.h>

#include "base/arena.h"
#include "fmt/doc.h"

#define HOSTS_PER_NET 254 /* .1 to .254 */
#define EXAMPLE_ADDRESS "127.1.0.1"

/* The address as a number of usable ones: 254 for each value of the upper three bytes. */
static uint64_t usable_index(uint32_t address)
{
	uint64_t net = address >> 8, host = address & 255;

	if (host == 255)
		return (net + 1) * HOSTS_PER_NET;
	return net * HOSTS_PER_NET + (host ? host - 1 : 0);
}

/* Rank r lives at base + r, without .0 and .255, so that every tool takes the address. */
static uint32_t address_of(uint32_t base, int rank)
{
	uint64_t at = usable_index(base) + (uint64_t)rank;

	return (uint32_t)((at / HOSTS_PER_NET) << 8 | (at % HOSTS_PER_NET + 1));
}

static bool is_remote(const char *src)
{
	static const char *const schemes[] = {"s3://", "docker://", "git+", "http://", "https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(src, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return false;
}

/* Its nodes are lost with this machine only, and so is who would replace them. */
static void check_lost(const struct policy *p, const char *where, struct arena *a,
		       struct problems *ps)
{
	if (p->on_lost != LOST_FAIL)
		problems_add(ps, a, p->on_lost_pos,
			     "%son_lost = \"%s\": engine local has no other machine to go on with: "
			     "leave it out, or use engine = \"hosts\"",
			     where, job_lost_choices[p->on_lost]);
}

static bool check(const struct job *job, struct arena *a, struct problems *ps)
{
	const struct data_spec *data = job->data.v;
	size_t before = ps->n + ps->more;

	if (job->max_cost > 0)
		problems_warn(
			ps, a, job->max_cost_pos,
			"max_cost stops nothing here: engine local costs nothing; max_runtime limits the time");
	if (job->source && is_remote(job->source))
		problems_add(
			ps, a, job->source_pos,
			"engine local takes a file or directory as source, not '%s': fetch it first and "
			"name the copy",
			job->source);
	for (size_t i = 0; i < job->data.n; i++)
		if (is_remote(data[i].src))
			problems_add(
				ps, a, data[i].pos,
				"engine local takes a file or directory as src of data, not '%s': fetch it "
				"first and name the copy",
				data[i].src);
	if (job->output.s3)
		problems_add(
			ps, a, job->output.s3_pos,
			"engine local writes nothing to S3: leave out output.s3; the files are in outputs/ of the run");
	check_lost(&job->policy, "", a, ps);
	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);
		check_lost(&r->policy, arena_printf(a, "roles.%s.", r->name), a, ps);
		if (r->image)
			problems_add(
				ps, a, r->pos,
				"roles.%s: engine local runs no containers: leave out image, or put "
				"docker run in the command",
				r->name);
	}
	return ps->n + ps->more == before;
}

static uint32_t first_address(const struct doc *facts)
{
	struct in_addr at;

	if (inet_pton(AF_INET, doc_str(facts, "first_address", STR(EXAMPLE_ADDRESS)).p, &at) != 1)
		inet_pton(AF_INET, EXAMPLE_ADDRESS, &at);
	return ntohl(at.s_addr);
}

/* One spec for all nodes: a driver takes the name of its node from the row. */
static const char *spec_of(const struct doc *facts, struct arena *a)
{
	struct doc *spec = doc_new(a, DOC_TABLE);

	if (!facts)
		return "{}";
	doc_set(a, spec, STR("home"), doc_new_str(a, doc_str(facts, "home", STR(""))));
	doc_set(a, spec, STR("run_dir"), doc_new_str(a, doc_str(facts, "run_dir", STR(""))));
	return doc_json_text(a, spec);
}

static void plan(const struct doc *facts, struct arena *a, struct plan *p)
{
	size_t n = (size_t)p->crew.n;
	uint32_t base = first_address(facts);
	const char *spec = spec_of(facts, a);

	p->iface = "lo";
	p->addresses = arena_array(a, const char *, n);
	p->resources = arena_array(a, struct plan_resource, n);
	p->resource_of = arena_array(a, int, n);
	p->nresources = p->crew.n;
	for (int i = 0; i < p->crew.n; i++) {
		uint32_t at = address_of(base, i);

		p->addresses[i] = arena_printf(a, "%u.%u.%u.%u", at >> 24, at >> 16 & 255,
					       at >> 8 & 255, at & 255);
		p->resources[i] = (struct plan_resource){
			.kind = "local.node",
			.name = p->crew.members[i].name,
			.node = i,
			.spec = spec,
		};
		p->resource_of[i] = i;
	}
}

const struct engine engine_local = {
	.name = "local",
	.help = "processes on this machine, each with a loopback address of its own",
	.in_place = true,
	.check = check,
	.plan = plan,
};
