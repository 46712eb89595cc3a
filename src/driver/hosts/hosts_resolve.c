/*
 * Engine hosts before a run is planned: are there enough known hosts for it?  There are no facts,
 * because the host of a node is chosen when the node is created.
 */
#include "base/arena.h"
#include "driver/driver.h"
#include "driver/hosts/host_table.h"
#include "fmt/doc.h"

static int refuse_empty(struct host_table *t, struct err *err)
{
	struct host_count all = host_table_count(t, &(struct host_want){0});

	if (all.known)
		return err_set(err, ERR_INVALID,
			       "none of the %zu hosts that have joined has the names and labels of "
			       "[hosts]: 'regatta hosts' lists them",
			       all.known);
	return err_set(
		err, ERR_CAPACITY,
		"no host has joined this master: 'regatta master --listen 0.0.0.0:5436' prints "
		"the line to run on each host");
}

static int resolve(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		   struct err *err)
{
	struct host_want want = {.names = doc_array(in->options, "names"),
				 .labels = doc_table(in->options, "labels"),
				 .slots = doc_int(in->options, "slots", 1)};
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
			"join, or raise 'slots' in [hosts]",
			in->least, c.known, c.known == 1 ? "" : "s", (long long)want.slots,
			want.slots == 1 ? "" : "s");
	*ret_facts = doc_new(a, DOC_TABLE);
	return 0;
}

const struct resolver hosts_resolver = {.engine = "hosts", .resolve = resolve};
