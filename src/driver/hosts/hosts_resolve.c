/*
 * Engine hosts before a run is planned: are there enough known hosts for it?  There are no facts,
 * because the host of a node is chosen when the node is created.
 */
#include "base/arena.h"
#include "core/queue.h"
#include "driver/driver.h"
#include "driver/hosts/host_table.h"
#include "fmt/doc.h"

static int refuse_empty(struct host_table *t, struct err *err)
{
	struct host_count all = host_table_count(t, &(struct host_want){0});

	if (all.known)
		return err_set(
			err, ERR_INVALID,
			"no host has the names and labels of [hosts] (%zu joined this master): "
			"'regatta hosts' lists theirs",
			all.known);
	return err_set(
		err, ERR_CAPACITY,
		"no host has joined this master: 'regatta master --listen 0.0.0.0:5436' prints "
		"the line to run on each host");
}

static struct host_want want_of(const struct doc *options)
{
	return (struct host_want){.names = doc_array(options, "names"),
				  .labels = doc_table(options, "labels"),
				  .slots = doc_int(options, "slots", 1)};
}

static void machines(const struct doc *options, const struct driver_services *services, bool all,
		     struct arena *a, struct queue_machines *ret)
{
	const struct host_want want = want_of(options);

	*ret = (struct queue_machines){.whole = true};
	if (services && services->hosts)
		host_table_machines(services->hosts, &want, all, a, ret);
}

/* Ranks are numbered before hosts are chosen: every node has what the smallest host can give. */
static int put_parts(const struct resolve_input *in, struct doc *facts, struct arena *a,
		     struct err *err)
{
	const struct host_want want = want_of(in->options);
	struct queue_machines m;
	int64_t cpus = INT64_MAX, gpus = INT64_MAX;

	host_table_machines(in->services->hosts, &want, true, a, &m);
	for (size_t i = 0; i < m.n; i++) {
		cpus = (int64_t)m.v[i].has.cpus < cpus ? (int64_t)m.v[i].has.cpus : cpus;
		gpus = m.v[i].has.gpus < gpus ? m.v[i].has.gpus : gpus;
	}
	if (m.n == 0 || (in->by_gpus && gpus < want.slots) || (in->by_cpus && cpus < want.slots))
		return err_set(
			err, ERR_CAPACITY,
			"processes_per_node = \"%s\": a host that may be taken has none, or fewer than "
			"it has slots: choose hosts by [hosts], or write a number",
			in->by_gpus ? "gpus" : "cpus");
	doc_set(a, facts, STR("node_cpus"), doc_new_int(a, cpus / want.slots));
	doc_set(a, facts, STR("node_gpus"), doc_new_int(a, gpus / want.slots));
	return 0;
}

static int resolve(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		   struct err *err)
{
	const struct host_want want = want_of(in->options);
	struct host_table *t = in->services ? in->services->hosts : NULL;

	if (!t)
		return err_set(err, ERR_UNAVAILABLE, "this master accepts no hosts");
	struct host_count c = host_table_count(t, &want);

	if (c.known == 0)
		return refuse_empty(t, err);
	if (in->least > (int64_t)c.known * want.slots)
		return err_set(
			err, ERR_CAPACITY,
			"%d nodes do not fit on %zu host%s with %lld node%s each: let more hosts "
			"join, or raise 'slots' in [hosts]; 'regatta plan' lists the nodes",
			in->least, c.known, c.known == 1 ? "" : "s", (long long)want.slots,
			want.slots == 1 ? "" : "s");
	*ret_facts = doc_new(a, DOC_TABLE);
	return in->by_gpus || in->by_cpus ? put_parts(in, *ret_facts, a, err) : 0;
}

const struct resolver hosts_resolver = {
	.engine = "hosts", .resolve = resolve, .machines = machines};
