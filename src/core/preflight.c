#include "core/preflight.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define ANSWER_MS (3 * CORE_PREFLIGHT_MS) /* for the answers of all nodes */
#define LEAST_FILES 256
#define LEAST_SHM (16ll << 20)
#define MOST_CLOCK_MS 30000
/* Files that a process has open besides one connection to each other process. */
#define OTHER_FILES 64

static const char *name_of(const struct core_run *r, int rank)
{
	return r->plan->crew.members[rank].name;
}

static bool takes_part(const struct core_node *n)
{
	return !n->asleep && n->facts.port > 0;
}

static bool every_pair(const struct core_run *r)
{
	return r->awake <= PREFLIGHT_ALL_PAIRS &&
	       r->awake - 1 <= plan_preflight_peers(r->plan, r->awake);
}

int core_preflight_peers(const struct core_run *r, int rank, int *ret)
{
	int n = 0, all = r->plan->crew.n, most = plan_preflight_peers(r->plan, r->awake);
	bool every = every_pair(r);

	for (int by = 1; by < all && n < most; by = every ? by + 1 : by * 2) {
		int peer = (rank + by) % all;

		if (takes_part(&r->nodes[peer]))
			ret[n++] = peer;
	}
	return n;
}

/* ---- what the machines have ---- */

static bool has_files(struct step *s, int rank)
{
	int64_t files = s->r->nodes[rank].facts.files;

	if (files >= LEAST_FILES)
		return true;
	run_end_running(
		s, VERDICT_FAILED, ERR_CAPACITY, rank,
		"preflight: %s may open %lld files, and at least %d are needed: raise the limit "
		"(ulimit -n) of its agent",
		name_of(s->r, rank), (long long)files, LEAST_FILES);
	return false;
}

static bool has_shm(struct step *s, int rank)
{
	int64_t shm = s->r->nodes[rank].facts.shm;

	if (shm < 0 || shm >= LEAST_SHM)
		return true;
	run_end_running(
		s, VERDICT_FAILED, ERR_CAPACITY, rank,
		"preflight: /dev/shm of %s has %lld KiB free, and at least %lld MiB are needed: remove "
		"what is left there, or mount it larger",
		name_of(s->r, rank), (long long)(shm >> 10), LEAST_SHM >> 20);
	return false;
}

static bool clocks_agree(struct step *s, int low, int high)
{
	const struct core_run *r = s->r;
	int64_t apart = r->nodes[high].facts.clock_ms - r->nodes[low].facts.clock_ms;
	char span[32];

	if (apart <= MOST_CLOCK_MS)
		return true;
	clock_format_span(apart, span);
	run_end_running(
		s, VERDICT_FAILED, ERR_UNAVAILABLE, high,
		"preflight: the clock of %s is %s ahead of that of %s: set the clocks (NTP)",
		name_of(r, high), span, name_of(r, low));
	return false;
}

/* False: the run has ended. */
static bool facts_are_well(struct step *s)
{
	const struct core_run *r = s->r;
	int low = -1, high = -1;

	for (int i = 0; i < r->plan->crew.n; i++) {
		const struct core_node *n = &r->nodes[i];

		if (!takes_part(n))
			continue;
		if (!has_files(s, i) || !has_shm(s, i))
			return false;
		if (low < 0 || n->facts.clock_ms < r->nodes[low].facts.clock_ms)
			low = i;
		if (high < 0 || n->facts.clock_ms > r->nodes[high].facts.clock_ms)
			high = i;
	}
	return low < 0 || clocks_agree(s, low, high);
}

/* ---- a round of questions ---- */

static bool all_can_be_asked(const struct core_run *r)
{
	for (int i = 0; i < r->plan->crew.n; i++)
		if (!r->nodes[i].asleep && (!r->nodes[i].connected || r->nodes[i].preparing))
			return false;
	return true;
}

static int count_parts(const struct core_run *r)
{
	int n = 0;

	for (int i = 0; i < r->plan->crew.n; i++)
		n += takes_part(&r->nodes[i]);
	return n;
}

static void ask_slice(struct step *s)
{
	struct core_run *r = s->r;

	for (int end = slice_end(s, r->preflight.next, r->plan->crew.n); r->preflight.next < end;
	     r->preflight.next++) {
		struct core_node *n = &r->nodes[r->preflight.next];

		n->preflight_asked = takes_part(n);
		if (!n->preflight_asked)
			continue;
		r->preflight.asked++;
		effect_add(s, FX_PREFLIGHT, r->preflight.next);
	}
}

static void begin_round(struct step *s)
{
	struct core_run *r = s->r;

	r->preflight.round++;
	r->preflight.asked = r->preflight.next = 0;
	r->preflight.members_no = r->members_no;
	r->preflight.by_ms = s->now + ANSWER_MS;
	/* From now on the preflight has its own deadline, and a node that leaves has its lease. */
	r->deadline_ms = 0;
	run_touch(s);
	tick_want(s, r->preflight.by_ms);
	ask_slice(s);
}

bool preflight_holds(struct step *s)
{
	struct core_run *r = s->r;

	if (!plan_preflight(r->plan) || r->awake < 2)
		return false;
	if (r->preflight.by_ms && r->preflight.members_no == r->members_no)
		return true;
	r->preflight.by_ms = 0;
	if (!all_can_be_asked(r))
		return true; /* until they are ready again, or lost */
	if (count_parts(r) == 0)
		return false;
	if (!facts_are_well(s))
		return true; /* the run has ended */
	if (plan_preflight_peers(r->plan, r->awake) == 0)
		return false;
	begin_round(s);
	return true;
}

void preflight_void(struct step *s)
{
	s->r->preflight.by_ms = 0;
}

/* ---- the end of a round ---- */

/* What is worth knowing although it stops nothing. */
static void describe(struct core_run *r)
{
	struct core_preflight *pf = &r->preflight;
	int low = -1, high = -1, few = -1, processes = 0, n = count_parts(r);
	size_t used;

	for (int i = 0; i < r->plan->crew.n; i++) {
		const struct preflight_facts *f = &r->nodes[i].facts;

		if (!takes_part(&r->nodes[i]))
			continue;
		processes += r->plan->crew.roles[r->plan->crew.members[i].role].processes;
		if (f->mtu && (low < 0 || f->mtu < r->nodes[low].facts.mtu))
			low = i;
		if (f->mtu && (high < 0 || f->mtu > r->nodes[high].facts.mtu))
			high = i;
		if (few < 0 || f->files < r->nodes[few].facts.files)
			few = i;
	}
	snprintf(pf->text, sizeof(pf->text),
		 every_pair(r) ? "%d nodes reach each other"
			       : "each of %d nodes reaches some others",
		 n);
	used = strlen(pf->text);
	if (low >= 0 && r->nodes[low].facts.mtu != r->nodes[high].facts.mtu)
		snprintf(pf->text + used, sizeof(pf->text) - used,
			 "; MTU differs: %lld on %.40s, %lld on %.40s",
			 (long long)r->nodes[low].facts.mtu, name_of(r, low),
			 (long long)r->nodes[high].facts.mtu, name_of(r, high));
	else if (low >= 0)
		snprintf(pf->text + used, sizeof(pf->text) - used, ", MTU %lld",
			 (long long)r->nodes[low].facts.mtu);
	used = strlen(pf->text);
	if (few >= 0 && r->nodes[few].facts.files < processes + OTHER_FILES)
		snprintf(pf->text + used, sizeof(pf->text) - used,
			 "; %.40s may open %lld files, too few for a connection to each of %d "
			 "processes",
			 name_of(r, few), (long long)r->nodes[few].facts.files, processes);
}

static void finish(struct step *s)
{
	struct core_run *r = s->r;

	r->preflight.by_ms = 0;
	describe(r);
	effect_add(s, FX_PREFLIGHT_PASSED, -1);
	run_go(s);
}

/* A machine that will be taken may lose its network first (node.c: loss_kind). */
static enum err_kind failure_kind(const struct core_node *a, const struct core_node *b)
{
	return a->preempt_at_ms || b->preempt_at_ms ? ERR_PREEMPTED : ERR_UNAVAILABLE;
}

/* The node and its peer do not get on with each other. */
static void fail(struct step *s, int rank, const struct event *ev)
{
	const struct core_run *r = s->r;
	const struct core_node *a = &r->nodes[rank], *b = &r->nodes[ev->place];
	char others[32] = "", mtu[64] = "";

	if (ev->want == 2)
		snprintf(others, sizeof(others), ", nor another one");
	if (ev->want > 2)
		snprintf(others, sizeof(others), ", nor %d others", ev->want - 1);
	if (ev->reached && a->facts.mtu && b->facts.mtu)
		snprintf(mtu, sizeof(mtu), " (MTU %lld and %lld)", (long long)a->facts.mtu,
			 (long long)b->facts.mtu);
	run_end_running(s, VERDICT_FAILED, failure_kind(a, b), rank,
			"preflight: %.40s cannot reach %.40s (%s)%s: %.70s%s", name_of(r, rank),
			name_of(r, ev->place), b->address, others, ev->text, mtu);
}

void preflight_event(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;
	struct core_preflight *pf = &r->preflight;
	struct core_node *n = &r->nodes[ev->index];

	if (!pf->by_ms || r->phase != RUN_GATHERING || ev->attempt != pf->round ||
	    !n->preflight_asked || ev->place >= r->plan->crew.n)
		return;
	if (ev->want > 0) {
		/* A peer that has left meanwhile starts another round when it is back. */
		if (ev->place >= 0 && r->nodes[ev->place].connected &&
		    !r->nodes[ev->place].preparing)
			fail(s, ev->index, ev);
		return;
	}
	n->preflight_asked = false;
	if (--pf->asked == 0 && pf->next >= r->plan->crew.n && pf->members_no == r->members_no)
		finish(s);
}

static void too_late(struct step *s)
{
	struct core_run *r = s->r;
	int rank = 0;
	char span[32];

	r->preflight.by_ms = 0;
	if (!all_can_be_asked(r))
		return;
	while (rank < r->plan->crew.n - 1 && !r->nodes[rank].preflight_asked)
		rank++;
	clock_format_span(ANSWER_MS, span);
	run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, rank,
			"preflight: %s has not said within %s whether it reaches the other nodes",
			name_of(r, rank), span);
}

void preflight_tick(struct step *s)
{
	struct core_preflight *pf = &s->r->preflight;

	if (!pf->by_ms || s->r->phase != RUN_GATHERING)
		return;
	if (pf->next < s->r->plan->crew.n)
		ask_slice(s);
	if (s->now >= pf->by_ms)
		too_late(s);
	tick_want(s, pf->by_ms);
}
