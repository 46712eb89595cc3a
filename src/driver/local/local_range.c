/*
 * local_range - a network of private addresses for a run whose nodes have network namespaces.
 *
 * From 10.0.0.0/8, and if that is taken from 100.64.0.0/10.  It must not overlap a route of this
 * machine, which would be cut off, nor the network of another active run.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "driver/local/internal.h"
#include "fmt/doc.h"
#include "sys/netlink.h"

#define BLOCK 256	  /* a network is 1, 2, 4 ... blocks: /24, /23, /22 */
#define USED_IN_BLOCK 254 /* .0 and .255 are not given to nodes */
#define DEFAULT_ROUTE 8 /* a route with a shorter prefix counts as a default route and is ignored */

static const struct range pools[] = {
	{0x0a000000, 0x0affffff}, /* 10.0.0.0/8 */
	{0x64400000, 0x647fffff}, /* 100.64.0.0/10 */
};

bool range_is_free(struct range r, const struct range *taken, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r.first <= taken[i].last && taken[i].first <= r.last)
			return false;
	return true;
}

/* Addresses for the nodes and the bridge. */
static uint32_t size_for(int nodes)
{
	uint32_t size = BLOCK;

	while (size / BLOCK * USED_IN_BLOCK < (uint32_t)nodes + 1)
		size *= 2;
	return size;
}

bool range_choose(const struct range *taken, size_t n, int nodes, uint64_t start, struct range *ret)
{
	uint32_t size = size_for(nodes);

	for (size_t p = 0; p < sizeof(pools) / sizeof(pools[0]); p++) {
		uint32_t places = (pools[p].last - pools[p].first + 1) / size;

		for (uint32_t i = 0; i < places; i++) {
			uint32_t first = pools[p].first + (uint32_t)((start + i) % places) * size;
			struct range r = {first, first + size - 1};

			if (!range_is_free(r, taken, n))
				continue;
			*ret = r;
			return true;
		}
	}
	return false;
}

int range_prefix(struct range r)
{
	return 32 - __builtin_ctz(r.last - r.first + 1);
}

static struct range range_of(uint32_t network, int prefix)
{
	uint32_t rest = prefix >= 32 ? 0 : UINT32_MAX >> prefix;

	return (struct range){network & ~rest, network | rest};
}

bool range_parse(const char *text, struct range *ret)
{
	struct str prefix = str_from(text), name = str_cut(&prefix, '/');
	char address[16];
	struct in_addr at;
	int64_t n;

	if (!prefix.p || name.n >= sizeof(address) || !str_to_i64(prefix, &n) || n < 8 || n > 30)
		return false;
	memcpy(address, name.p, name.n);
	address[name.n] = '\0';
	if (inet_pton(AF_INET, address, &at) != 1)
		return false;
	*ret = range_of(ntohl(at.s_addr), (int)n);
	return true;
}

struct ranges {
	VEC(struct range) l;
};

static void ranges_release(struct ranges *r)
{
	vec_release(&r->l);
}

static void take_route(void *ctx, uint32_t network, int prefix)
{
	struct ranges *r = ctx;

	if (prefix >= DEFAULT_ROUTE)
		*vec_push(&r->l) = range_of(network, prefix);
}

int range_resolve(const struct resolve_input *in, struct range *ret, struct err *err)
{
	CLEANUP(close_fdp) int nl = netlink_open(err);
	CLEANUP(ranges_release) struct ranges taken = {0};
	struct range r;

	if (nl < 0 || netlink_each_route(nl, take_route, &taken, err) < 0)
		return -1;
	for (size_t i = 0; i < in->ntaken; i++)
		if (range_parse(doc_str(in->taken[i], "bridge", STR("")).p, &r))
			*vec_push(&taken.l) = r;
	if (!range_choose(taken.l.v, taken.l.n, in->nodes, rand_u64(), ret))
		return err_set(
			err, ERR_CAPACITY,
			"no addresses are left for %d nodes: the routes of this machine take "
			"10.0.0.0/8 and 100.64.0.0/10",
			in->nodes);
	return 0;
}
