/*
 * Ranks by address: what the job sees as the rank of a node, for a strategy that asks for it
 * (strategy.h, ranks_by_address).
 *
 * They are given once, when all nodes that are awake are here, before inputs are sent: data is dealt out
 * by rank.  In each role the nodes that are awake share out their own ranks, the lowest address the
 * lowest rank.  From then on a rank stays with its node: through a restart of the master, on the machine
 * that replaces a lost one, and for nodes that wake later, which have their own rank.
 */
#include "core/internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int core_job_rank(const struct core_run *r, int rank)
{
	return r->nodes[rank].job_rank < 0 ? rank : r->nodes[rank].job_rank;
}

/* All nodes are given their rank in one step. */
bool ranks_awaited(const struct core_run *r)
{
	return r->plan->strategy->ranks_by_address && r->plan->crew.n > 0 &&
	       r->nodes[0].job_rank < 0;
}

/* A node among those of its role. */
struct addressed {
	int first; /* the lowest rank of its role */
	int rank;
	bool known;	    /* the address could be read */
	struct in6_addr at; /* of an IPv4 address ::ffff:a.b.c.d, so that all compare as numbers */
};

/* "fe80::1%eth0" is an address too. */
static bool read_address(const char *text, struct in6_addr *ret)
{
	char plain[sizeof(((struct core_node *)NULL)->address)];
	size_t n = strcspn(text, "%");

	memcpy(plain, text, n);
	plain[n] = '\0';
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, plain, &ret->s6_addr[12]) != 1)
		return inet_pton(AF_INET6, plain, ret) == 1;
	ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
	return true;
}

/* By role and address; without one, or with the same, in the order of the plan. */
static int compare(const void *x, const void *y)
{
	const struct addressed *a = x, *b = y;
	int order = a->first - b->first;

	if (order == 0)
		order = b->known - a->known;
	if (order == 0)
		order = memcmp(&a->at, &b->at, sizeof(a->at));
	return order != 0 ? order : a->rank - b->rank;
}

static void give(struct step *s)
{
	struct core_run *r = s->r;
	const struct crew *crew = &r->plan->crew;
	struct addressed *v = xcalloc((size_t)crew->n, sizeof(*v));
	int *ranks =
		xcalloc((size_t)crew->n, sizeof(*ranks)); /* of nodes that are awake, by role */
	size_t n = 0;

	for (int i = 0; i < crew->n; i++) {
		struct core_node *node = &r->nodes[i];

		node->job_rank = i;
		node_touch(s, i);
		if (node->asleep)
			continue;
		v[n] = (struct addressed){.first = r->role_first[crew->members[i].role], .rank = i};
		v[n].known = read_address(node->address, &v[n].at);
		ranks[n++] = i;
	}
	/* The ranks of a role follow each other, so its part of both lists is the same. */
	qsort(v, n, sizeof(*v), compare);
	for (size_t i = 0; i < n; i++)
		r->nodes[v[i].rank].job_rank = ranks[i];
	free(v);
	free(ranks);
}

void ranks_maybe_give(struct step *s)
{
	struct core_run *r = s->r;

	if (!ranks_awaited(r) || run_stopping(r) || r->node_count[NODE_HERE] < r->awake)
		return;
	give(s);
	r->members_no++;
	r->prepare_next = 0;
	ranks_prepare_slice(s);
}

void ranks_prepare_slice(struct step *s)
{
	struct core_run *r = s->r;

	if (run_stopping(r) || r->prepare_next >= r->plan->crew.n)
		return;
	for (int end = slice_end(s, r->prepare_next, r->plan->crew.n); r->prepare_next < end;
	     r->prepare_next++) {
		const struct core_node *n = &r->nodes[r->prepare_next];

		/* One that is not connected now is prepared when it says hello. */
		if (n->state == NODE_HERE && n->connected && !n->preparing)
			node_prepare(s, r->prepare_next);
	}
}
