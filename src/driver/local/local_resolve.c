/*
 * The facts of engine local: directories of the run and the job file, and the run's addresses (loopback
 * addresses, or a network of its own for nodes in network namespaces).  plan/local.c lists them.
 */
#include "driver/driver.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/rand.h"
#include "core/queue.h"
#include "driver/local/internal.h"
#include "fmt/doc.h"
#include "sys/machine.h"
#include "sys/netns.h"

#define FIRST 0x7f010001u  /* 127.1.0.1 */
#define LAST 0x7ffdffffu   /* 127.253.255.255 */
#define SPREAD 0x00fc0000u /* masters of one machine begin at addresses that differ by up to this */
#define MAX_TRIES 100000

static bool address_of(const struct doc *facts, const char *key, uint32_t *ret)
{
	struct in_addr at;

	if (inet_pton(AF_INET, doc_str(facts, key, STR("")).p, &at) != 1)
		return false;
	*ret = ntohl(at.s_addr);
	return true;
}

static const char *address_text(uint32_t address, struct arena *a)
{
	return arena_printf(a, "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
			    address >> 8 & 255, address & 255);
}

static void put_address(struct doc *facts, const char *key, uint32_t address, struct arena *a)
{
	doc_set(a, facts, str_from(key), doc_new_str(a, str_from(address_text(address, a))));
}

/* Size of a range for this many nodes, at most: .0 and .255 are not used. */
static uint32_t span_of(int nodes)
{
	return (uint32_t)nodes + 2 * ((uint32_t)nodes / 254 + 1);
}

/* Continues after the last run's range, so that an address is not used again at once. */
static struct range choose(const struct range *taken, size_t n, uint32_t span)
{
	static uint32_t next;
	struct range r = {0};

	if (!next)
		next = FIRST + (uint32_t)(rand_u64() % SPREAD) / 256 * 256;
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		if (next > LAST - span)
			next = FIRST;
		r = (struct range){next, next + span - 1};
		next += span;
		if (range_is_free(r, taken, n))
			break;
	}
	return r;
}

/* A range of loopback addresses that no other active run of this master uses. */
static struct range loopback_range(const struct resolve_input *in)
{
	CLEANUP(freep) struct range *taken = xcalloc(in->ntaken + 1, sizeof(*taken));
	uint32_t span = span_of(in->nodes);
	struct range r;
	size_t n = 0;

	for (size_t i = 0; i < in->ntaken; i++)
		if (address_of(in->taken[i], "first_address", &taken[n].first) &&
		    address_of(in->taken[i], "last_address", &taken[n].last))
			n++;
	if (address_of(in->known, "first_address", &r.first))
		r.last = r.first + span - 1;
	else
		r = choose(taken, n, span);
	return r;
}

/* The first address is the network's, the second the bridge's, the last is broadcast. */
static int network_range(const struct resolve_input *in, struct doc *facts, struct arena *a,
			 struct range *ret, struct err *err)
{
	struct range r;

	if (netns_check_allowed(err) < 0)
		return err_set(
			err, ERR_DENIED,
			"isolate = \"netns\": %s; start the master as root, or leave out isolate",
			err->msg);
	if (range_resolve(in, &r, err) < 0)
		return err_wrap(err, "isolate = \"netns\"");
	doc_set(a, facts, STR("bridge"),
		doc_new_str(a, str_from(arena_printf(a, "%s/%d", address_text(r.first + 1, a),
						     range_prefix(r)))));
	*ret = (struct range){r.first + 2, r.last - 1};
	return 0;
}

/* The nodes of a run share this machine: each has its part of it. */
static int put_parts(const struct resolve_input *in, struct doc *facts, struct arena *a,
		     struct err *err)
{
	int64_t nodes = in->nodes > 0 ? in->nodes : 1;
	int64_t cpus = in->by_cpus ? machine_cpus() : 0, gpus = in->by_gpus ? machine_gpus() : 0;

	if ((in->by_gpus && gpus < nodes) || (in->by_cpus && cpus < nodes))
		return err_set(
			err, ERR_CAPACITY,
			"processes_per_node = \"%s\": this machine has %lld for %lld node%s: "
			"write a number",
			in->by_gpus && gpus < nodes ? "gpus" : "cpus",
			(long long)(in->by_gpus && gpus < nodes ? gpus : cpus), (long long)nodes,
			nodes == 1 ? "" : "s");
	if (in->by_cpus)
		doc_set(a, facts, STR("node_cpus"), doc_new_int(a, cpus / nodes));
	if (in->by_gpus)
		doc_set(a, facts, STR("node_gpus"), doc_new_int(a, gpus / nodes));
	return 0;
}

static void machines(const struct doc *options, const struct driver_services *services, bool all,
		     struct arena *a, struct queue_machines *ret)
{
	struct queue_machine *m = arena_new_of(a, struct queue_machine);

	(void)options;
	(void)services;
	(void)all;
	*m = (struct queue_machine){.name = "this machine",
				    .has = {.cpus = (double)machine_cpus(),
					    .gpus = machine_gpus(),
					    .memory = machine_memory()}};
	*ret = (struct queue_machines){.v = m, .n = 1};
}

static int resolve(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		   struct err *err)
{
	struct doc *facts = doc_new(a, DOC_TABLE);
	struct range r;

	if (!in->netns)
		r = loopback_range(in);
	else if (network_range(in, facts, a, &r, err) < 0)
		return -1;
	if (put_parts(in, facts, a, err) < 0)
		return -1;
	put_address(facts, "first_address", r.first, a);
	put_address(facts, "last_address", r.last, a);
	doc_set(a, facts, STR("home"), doc_new_str(a, str_from(in->home)));
	doc_set(a, facts, STR("run_dir"), doc_new_str(a, str_from(in->run_dir)));
	doc_set(a, facts, STR("base_dir"), doc_new_str(a, str_from(in->base_dir)));
	*ret_facts = facts;
	return 0;
}

const struct resolver local_resolver = {
	.engine = "local",
	.resolve = resolve,
	.machines = machines,
	.sweep = local_sweep,
};
