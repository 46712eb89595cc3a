#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "plan/plan.h"
#include "sim/admission.h"
#include "sim/agentless.h"
#include "sim/enrol.h"
#include "sim/internal.h"
#include "sim/lifetime.h"
#include "sim/preflight.h"
#include "sim/ranks.h"
#include "spec/job.h"

#define HEAL_MS (10 * 60 * 1000)   /* faults happen before this */
#define SETTLE_MS (10 * 60 * 1000) /* so long after the last fault every run has ended, */
#define HANG_MS (20 * 60 * 1000)   /* except one with a job that hangs, which has its max_runtime */
#define MAX_HAPPENINGS 200000	   /* limit of a history: this, plus */
#define MAX_PER_RESOURCE 1000	   /* so many for each resource; more is a busy loop (I13) */
#define LATE_MS 1000		   /* more than an effect of a dead master can take to arrive */
#define SETTLES_MS 16000	   /* of a kind that the cloud does not find at once */
#define MAX_BROKEN_SHOWN 20
#define HANDED_OVER 13 /* one history in so many is that of a run that is handed over */
#define TURNS 3 /* one history in so many whose machines are all of groups waits for a turn there */
#define STALLS 7 /* one history in so many has a hang watchdog */
#define STALL_MS 20000
#define QUEUED 5 /* one history in so many begins in the queue */
#define SUITES 4 /* for one seed in so many there is the history of a suite, too */

bool sim_chance(struct world *w, int per_mille)
{
	if (!per_mille || w->now >= w->heal_at)
		return false;
	bool hit = (int)rng_below(&w->rng, 1000) < per_mille;
	w->res->faults += hit;
	return hit;
}

int64_t sim_delay(struct world *w, int64_t usual_ms)
{
	int64_t ms = 1 + (int64_t)rng_below(&w->rng, (uint64_t)usual_ms * 2);

	return sim_chance(w, w->f.slow) ? ms * 20 : ms;
}

void sim_trace(struct world *w, const char *what, int index, int64_t a, int64_t b)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%lld %s %d %lld %lld", (long long)w->now, what, index,
			 (long long)a, (long long)b);

	for (int i = 0; i < n; i++)
		w->hash = (w->hash ^ (uint8_t)line[i]) * 0x100000001b3ull;
	if (w->verbose >= 2)
		printf("%s\n", line);
}

/* Each seed has its own mix of faults: most are mild, some calm, some severe. */
static void draw_faults(struct world *w)
{
	int *v = (int *)&w->f;
	int hardness = (int)rng_below(&w->rng, 4);

	for (size_t i = 0; i < sizeof(w->f) / sizeof(int); i++)
		if (hardness && rng_below(&w->rng, 3) == 0)
			v[i] = 1 + (int)rng_below(&w->rng, hardness == 3 ? 300 : 60);
	w->f.refuse_hard /= 10;
	w->f.unfit /= 10;
	w->f.apart /= 10;
	w->f.dumb /= 10;
	w->f.master_dies /= 4;
	w->f.destroy_held *= 2;
}

static const char *const jobs[] = {
	"command = ['true']\ncount = %d\nmax_runtime = '20m'\n",
	"strategy = 'pserver'\nmax_runtime = '20m'\n[roles.pserver]\ncount = 2\ncommand = ['ps']\n"
	"[roles.trainer]\ncount = %d\ncommand = ['tr']\n",
	"strategy = 'roles'\nmax_runtime = '20m'\n[roles.db]\ncommand = ['db']\nport = 99\nservice = true\n"
	"[roles.prepare]\ncommand = ['p']\nafter = 'db'\nready_when = 'finished'\n"
	"[roles.work]\ncount = %d\ncommand = ['w']\nafter = ['db', 'prepare']\n",
	"strategy = 'mpi'\nmax_runtime = '20m'\ncommand = ['mpirun']\ncount = %d\n",
};

/*
 * Adds to the machines a network that all of them need, and a role that the network needs, so
 * that the order of the graph matters.  The role may be shared.
 */
static void add_graph(struct world *w)
{
	int n = w->plan.nresources;
	struct plan_resource *v = arena_array(w->arena, struct plan_resource, (size_t)n + 2);

	memcpy(v, w->plan.resources, sizeof(*v) * (size_t)n);
	v[n] = (struct plan_resource){.kind = "sim.network", .name = "network", .node = -1};
	v[n + 1] = (struct plan_resource){
		.kind = "sim.role", .name = "role", .node = -1, .shared = rng_below(&w->rng, 2)};
	for (int i = 0; i <= n; i++) {
		v[i].needs = arena_array(w->arena, int, 1);
		v[i].needs[0] = i < n ? n : n + 1;
		v[i].nneeds = 1;
	}
	w->plan.resources = v;
	w->plan.nresources = n + 2;
}

/* Draws choices for the machines, and how many machines of each choice exist. */
static void draw_choices(struct world *w)
{
	static const char *choices[SIM_CHOICES] = {"{\"type\":0}", "{\"type\":1}", "{\"type\":2}",
						   "{\"type\":3}"};
	int n = rng_below(&w->rng, 2) ? 1 + (int)rng_below(&w->rng, SIM_CHOICES) : 0;

	for (int i = 0; i < w->plan.nresources; i++)
		if (w->plan.resources[i].node >= 0) {
			w->plan.resources[i].choices = choices;
			w->plan.resources[i].nchoices = n;
		}
	for (int i = 0; i < SIM_CHOICES; i++)
		w->rooms[i] = rng_below(&w->rng, 2)
				      ? -1
				      : (int)rng_below(&w->rng, (uint64_t)w->plan.crew.n + 2);
}

static void draw_policy(struct world *w, struct policy *p)
{
	p->retries = (int64_t)rng_below(&w->rng, 3);
	if (rng_below(&w->rng, 2) || strcmp(w->job->strategy, "mpi") == 0 || agentless_drawn(w))
		return;
	p->min = 1 + (int64_t)rng_below(&w->rng, (uint64_t)p->min);
	p->max += (int64_t)rng_below(&w->rng, 3);
}

static bool draw_policies(struct world *w)
{
	if (w->job->roles.n == 0)
		draw_policy(w, &w->job->policy);
	for (size_t i = 0; i < w->job->roles.n; i++)
		draw_policy(w, &job_role(w->job, i)->policy);
	return true;
}

/* The policy in the plan, which no other plan shares. */
static struct policy *policy_at(struct world *w, int role)
{
	return &((struct role *)w->plan.crew.roles[role].spec)->policy;
}

/* A launcher's nodes are not replaced one by one. */
static int draw_loss(struct world *w)
{
	if (w->plan.crew.launch != LAUNCH_ALL)
		return rng_below(&w->rng, 2) ? LOST_FAIL : LOST_RESTART;
	return (int)rng_below(&w->rng, 4);
}

/* The provider has room for the machines long after they should have booted. */
static void draw_turn(struct world *w)
{
	bool all = w->seed % TURNS == 0 && !w->plan.hands_over;

	for (int i = 0; i < w->plan.crew.n; i++)
		all = all && w->plan.resources[w->plan.resource_of[i]].carries_many;
	if (!all)
		return;
	w->plan.boots = true;
	w->turn_at = w->heal_at + 2 * w->job->timeouts.boot_ms;
	w->end_at += 2 * w->job->timeouts.boot_ms;
}

static void draw_job(struct world *w, int max_nodes)
{
	struct problems *ps = arena_new_of(w->arena, struct problems);
	struct doc *doc = NULL;
	struct err err = {0};
	const char *form = jobs[rng_below(&w->rng, sizeof(jobs) / sizeof(jobs[0]))];
	char text[512];

	snprintf(text, sizeof(text), "%.*s%d%s", (int)(strstr(form, "%d") - form), form,
		 1 + (int)rng_below(&w->rng, (uint64_t)max_nodes), strstr(form, "%d") + 2);
	w->job = arena_new_of(w->arena, struct job);
	if (toml_parse(str_from(text), w->arena, &doc, &err) < 0 ||
	    !job_load(doc, NULL, w->arena, w->job, ps) || !draw_policies(w) ||
	    !plan_make(w->job, NULL, w->arena, &w->plan, ps)) {
		fprintf(stderr, "sim: its own job is wrong: %s\n", ps->n ? ps->v[0].text : err.msg);
		abort();
	}
	w->job->base_dir = "/";
	/* The engine local does not let a job choose on_lost. */
	for (int k = 0; k < w->plan.crew.nroles; k++)
		policy_at(w, k)->on_lost = draw_loss(w);
	w->remote.index = -1;
	w->enrols = rng_below(&w->rng, 2);
	if (w->seed % HANDED_OVER == 0)
		draw_handover(w);
	else if (agentless_drawn(w) && w->plan.crew.launch == LAUNCH_ALL)
		agentless_draw(w);
	else if (w->enrols)
		draw_groups(w);
	if (!w->plan.hands_over && !w->plan.agentless && rng_below(&w->rng, 2))
		add_graph(w);
	bool settles = rng_below(&w->rng, 3) == 0;
	bool grouped = rng_below(&w->rng, 2) == 0; /* the machines of a role */

	for (int i = 0; i < w->plan.nresources; i++) {
		int node = w->plan.resources[i].node;

		if (grouped && node >= 0)
			w->plan.resources[i].group = 1 + w->plan.crew.members[node].role;
		w->plan.resources[i].late_ms = LATE_MS;
		if (settles) {
			w->plan.resources[i].settle_ms = SETTLES_MS;
			w->plan.resources[i].absent_looks = 3;
		}
	}
	draw_choices(w);
	ranks_draw(w);
	if (w->seed % QUEUED == 0) {
		struct resources_spec *share = arena_new_of(w->arena, struct resources_spec);

		share->cpus = 1;
		((struct role *)w->plan.crew.roles[0].spec)->resources = share;
	}
	if (w->seed % STALLS == 0) {
		w->job->stall_ms = STALL_MS;
		w->job->stall_action = (int)(w->seed / STALLS % 3);
	}
	preflight_draw(w);
	w->tokens_last = rng_below(&w->rng, 2);
	w->plan.boots = rng_below(&w->rng, 2);
	draw_turn(w);
	for (int i = 0; i < w->plan.nresources; i++)
		w->plan.resources[i].expires = !w->plan.resources[i].shared;
}

/* A machine that was given up and dials again must be released, in any state of the run. */
static void ghost_speaks(struct world *w, const struct happening *h)
{
	w->released_conn = 0;
	master_event(w, &h->ev);
	if (w->master_up && w->released_conn != h->epoch)
		sim_broken(w, "I6: a machine of %s that was given up was not sent away",
			   w->plan.crew.members[h->ev.index].name);
}

/* The first word of a connection that the master takes for its node's. */
static void take_connection(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];
	struct machine *before = &w->machines[w->slot_of[mc->rank]];

	if (before != mc && before->rank == mc->rank)
		before->heard = 0; /* replaced, not lost */
	w->slot_of[mc->rank] = slot;
	w->conn_of[mc->rank] = mc->conn;
	mc->heard = mc->conn;
}

static void word(struct world *w, const struct happening *h)
{
	struct machine *mc = &w->machines[h->index];

	if (h->ev.kind == EV_ENROL) { /* also when it has hung up meanwhile */
		master_event(w, &h->ev);
		return;
	}
	if (mc->conn != h->epoch)
		return;
	if (h->ev.kind == EV_NODE_HELLO) {
		if (mc->heard == h->epoch)
			return; /* the link refuses a second HELLO of one connection */
		if (w->master_up &&
		    core_incarnation_is_past(w->memory, mc->rank, h->ev.incarnation)) {
			ghost_speaks(w, h);
			return;
		}
		take_connection(w, h->index);
	} else if (mc->heard != h->epoch) {
		return; /* its hello was not accepted */
	}
	preflight_said(w, &h->ev);
	master_event(w, &h->ev);
}

static void happens(struct world *w, const struct happening *h)
{
	switch (h->kind) {
	case AT_EFFECT: /* a worker makes the call even if its master has died meanwhile */
		if (h->fx.kind >= FX_HAND_OVER)
			remote_effect(w, &h->fx, h->epoch);
		else
			cloud_effect(w, &h->fx, h->epoch);
		return;
	case AT_ANSWER:
		if (h->epoch == w->master)
			master_event(w, &h->ev);
		return;
	case AT_WORD:
		word(w, h);
		return;
	case AT_DROPPED: /* the end of a connection that was replaced is not reported */
		if (h->ev.index < 0 || w->conn_of[h->ev.index] != h->epoch)
			return;
		w->conn_of[h->ev.index] = 0;
		if (w->machines[h->index].heard == h->epoch)
			w->machines[h->index].heard = 0;
		master_event(w, &(struct event){.kind = EV_NODE_DROPPED,
						.heard_ms = h->ev.heard_ms,
						.index = h->ev.index});
		return;
	case AT_GHOST:
		ghost_speaks(w, h);
		return;
	case AT_ADMIT:
		if (h->epoch == w->master && w->master_up && !w->ended)
			master_event(w, &(struct event){.kind = EV_ADMIT});
		return;
	case AT_CAPACITY:
		for (int i = 0; i < SIM_CHOICES; i++)
			w->rooms[i] += w->rooms[i] >= 0;
		master_event(w, &(struct event){.kind = EV_CAPACITY});
		return;
	case AT_REMOTE:
		remote_happens(w, h);
		return;
	case AT_RESIZE:
		master_resize(w, h->index, h->ev.want);
		return;
	case AT_TICK:
		if (h->epoch == w->master && w->master_up && h->at == w->tick_at)
			master_tick(w);
		return;
	case AT_CANCEL:
		master_cancel(w, h->index);
		return;
	case AT_MASTER_DIES:
		if (w->master_up && !w->ended)
			master_dies(w);
		return;
	case AT_MASTER_UP:
		if (!w->master_up && !sim_master_is_gone(w))
			master_comes_up(w);
		return;
	case AT_TOLD:
	case AT_AGENT_UP:
	case AT_DIAL:
	case AT_PREPARED:
	case AT_JOB_SERVES:
	case AT_JOB_EXITS:
	case AT_COPIED:
	case AT_AGENT_DIES:
	case AT_MACHINE_DIES:
	case AT_NOTICE:
	case AT_TAKEN:
	case AT_REBOOT:
	case AT_EXPIRES:
	case AT_CONN_CUT:
	case AT_PARTITION:
	case AT_LOST:
	case AT_UNANSWERED:
	case AT_ENROLLED:
	case AT_UNHEALTHY:
	case AT_GROUP:
		machine_happens(w, h);
		return;
	}
}

static void world_open(struct world *w, uint64_t seed, int max_nodes)
{
	rng_seed(&w->rng, seed);
	w->hash = 0xcbf29ce484222325ull;
	w->heal_at = HEAL_MS;
	w->end_at = HEAL_MS + SETTLE_MS;
	w->now = 1;
	w->arena = arena_new();
	draw_job(w, max_nodes);
	draw_faults(w);
	lifetime_draw(w);
	w->nslots = w->plan.nresources + group_slots(w);
	w->machines = arena_array(w->arena, struct machine, (size_t)w->nslots);
	w->slot_of = arena_array(w->arena, int, (size_t)w->plan.crew.n);
	w->conn_of = arena_array(w->arena, uint64_t, (size_t)w->plan.crew.n);
	for (int i = 0; i < w->nslots; i++)
		w->machines[i] = (struct machine){.res = i, .rank = -1};
	for (int i = 0; i < w->plan.crew.n; i++) {
		w->slot_of[i] = w->plan.resource_of[i];
		if (w->plan.resources[w->slot_of[i]].node == i)
			w->machines[w->slot_of[i]].rank = i;
	}
	w->ghosts = arena_array(w->arena, struct ghost, (size_t)w->plan.crew.n);
	w->hosts = rng_below(&w->rng, 3) == 0;
	w->accounts = arena_array(w->arena, struct account, (size_t)w->plan.nresources);
	w->execs = arena_alloc(w->arena, sizeof(*w->execs) * (size_t)w->plan.crew.n);
	/* Another run may have created a shared resource. */
	for (int i = 0; i < w->plan.nresources; i++)
		w->machines[i].exists = w->plan.resources[i].shared && rng_below(&w->rng, 2);
	w->slow_calls = rng_below(&w->rng, 3) == 0;
	if (rng_below(&w->rng, 20) == 0) {
		w->gone_at = 1 + (int64_t)rng_below(&w->rng, 40000) + w->long_ms / 2;
		queue_add(&w->queue, &(struct happening){.at = w->gone_at, .kind = AT_MASTER_DIES});
	}
	if (rng_below(&w->rng, 8) == 0) {
		w->denied_from = (int64_t)rng_below(&w->rng, 20000);
		w->denied_until = w->denied_from + (int64_t)rng_below(&w->rng, 120000);
	}
	if (rng_below(&w->rng, 6) == 0) {
		w->throttled_from = (int64_t)rng_below(&w->rng, 20000);
		w->throttled_until = w->throttled_from + (int64_t)rng_below(&w->rng, 120000);
	}
	/* Some at any time, some while the first creates are being sent. */
	for (uint64_t i = rng_below(&w->rng, 3); i > 0 && w->f.master_dies; i--) {
		uint64_t within = rng_below(&w->rng, 2) ? 60000 : 1000;
		queue_add(&w->queue, &(struct happening){.at = (int64_t)rng_below(&w->rng, within),
							 .kind = AT_MASTER_DIES});
	}
	for (uint64_t i = rng_below(&w->rng, 3); i > 0; i--)
		queue_add(&w->queue, &(struct happening){.at = (int64_t)rng_below(&w->rng, 60000),
							 .kind = AT_CAPACITY});
	for (uint64_t i = rng_below(&w->rng, 4); i > 0; i--) {
		int role = (int)rng_below(&w->rng, (uint64_t)w->plan.crew.nroles);

		queue_add(&w->queue,
			  &(struct happening){
				  .at = (int64_t)rng_below(&w->rng, 30000),
				  .kind = AT_RESIZE,
				  .index = role,
				  .ev.want = (int)rng_below(
					  &w->rng, (uint64_t)policy_at(w, role)->max + 2)});
	}
	if (rng_below(&w->rng, 5) == 0)
		queue_add(&w->queue, &(struct happening){.at = (int64_t)rng_below(&w->rng, 30000),
							 .kind = AT_CANCEL,
							 .index = (int)rng_below(&w->rng, 2)});
}

bool sim_master_is_gone(const struct world *w)
{
	return w->gone_at && w->now >= w->gone_at;
}

/* The time by which everything must have ended. */
static int64_t last_moment(const struct world *w)
{
	if (sim_master_is_gone(w))
		return w->gone_at + SETTLE_MS + plan_lifetime_ms(&w->plan);
	/* The watchdog ends a job that hangs. */
	bool hung = w->hung && !(w->job->stall_ms && w->job->stall_action == STALL_KILL);

	/* The machine of another master that never boots is waited for. */
	return w->end_at + (hung || w->plan.hands_over ? HANG_MS : 0);
}

void sim_run(uint64_t seed, int max_nodes, int verbose, struct sim_result *ret)
{
	struct world w = {.seed = seed, .verbose = verbose, .res = ret};
	struct happening h;

	*ret = (struct sim_result){.seed = seed};
	world_open(&w, seed, max_nodes);
	admission_run(&w, seed);
	master_start(&w);
	while (!ret->broken && queue_next(&w.queue, &h)) {
		if (h.at > last_moment(&w) || (w.ended && w.master_up))
			break;
		if (h.at > w.now)
			w.now = h.at;
		if (++ret->events > MAX_HAPPENINGS + MAX_PER_RESOURCE * w.plan.nresources)
			sim_broken(&w, "I13: %d happenings and no end", ret->events);
		happens(&w, &h);
		check_always(&w);
	}
	check_end(&w);
	ret->hash = w.hash;
	ret->verdict = (int)w.disk->verdict;
	ret->gone = !w.ended && sim_master_is_gone(&w);
	ret->sim_ms = w.now;
	core_run_free(w.memory);
	core_run_free(w.disk);
	core_run_free(w.recount);
	queue_release(&w.queue);
	vec_release(&w.requests);
	vec_release(&w.bindings);
	arena_free(w.arena);
}

struct totals {
	int64_t runs, broken, gone, events, crashes, faults, verdicts[4], sim_ms;
	uint64_t hash;
};

static void add_up(struct totals *t, const struct sim_result *r)
{
	t->runs++;
	t->broken += r->broken;
	t->gone += r->gone;
	t->events += r->events;
	t->crashes += r->crashes;
	t->faults += r->faults;
	t->verdicts[r->verdict]++;
	t->sim_ms += r->sim_ms;
	t->hash = (t->hash ^ r->hash) * 0x9e3779b97f4a7c15ull;
}

static void print_json(const struct totals *t, double seconds)
{
	struct buf out;
	struct jsonw w;
	char hash[20];

	buf_init(&out, 4096);
	jsonw_init(&w, &out);
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)t->hash);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "lifecycles", t->runs);
	jsonw_kint(&w, "broken", t->broken);
	jsonw_kint(&w, "events", t->events);
	jsonw_kint(&w, "faults", t->faults);
	jsonw_kint(&w, "master_crashes", t->crashes);
	jsonw_kint(&w, "masters_gone", t->gone);
	jsonw_kint(&w, "succeeded", t->verdicts[VERDICT_SUCCEEDED]);
	jsonw_kint(&w, "failed", t->verdicts[VERDICT_FAILED]);
	jsonw_kint(&w, "cancelled", t->verdicts[VERDICT_CANCELLED]);
	jsonw_kdouble(&w, "seconds", seconds);
	jsonw_kdouble(&w, "per_second", (double)t->runs / seconds);
	jsonw_kz(&w, "hash", hash);
	jsonw_close(&w);
	printf("%s\n", buf_str(&out).p);
	buf_release(&out);
}

static void print_text(const struct totals *t, double seconds)
{
	char span[32];

	clock_format_span(t->sim_ms, span);
	printf("%lld lifecycles in %.2f s: %.0f per second, %.0f per minute\n", (long long)t->runs,
	       seconds, (double)t->runs / seconds, (double)t->runs / seconds * 60);
	printf("%lld succeeded, %lld failed, %lld cancelled; %lld faults, %lld master crashes, %lld events, "
	       "%s simulated\n",
	       (long long)t->verdicts[VERDICT_SUCCEEDED], (long long)t->verdicts[VERDICT_FAILED],
	       (long long)t->verdicts[VERDICT_CANCELLED], (long long)t->faults,
	       (long long)t->crashes, (long long)t->events, span);
	printf("%lld masters never came back\n", (long long)t->gone);
	printf("%lld broken invariants; trace hash %016llx\n", (long long)t->broken,
	       (unsigned long long)t->hash);
}

static void add_suite(struct sim_result *r, int verbose)
{
	struct sim_result s;

	sim_suite(r->seed, verbose, &s);
	r->broken = s.broken;
	memcpy(r->what, s.what, sizeof(r->what));
	r->events += s.events;
	r->crashes += s.crashes;
	r->faults += s.faults;
	r->hash ^= s.hash;
}

int sim_main(const struct sim_options *o)
{
	struct totals t = {0};
	int64_t start = clock_boot_us();

	for (int64_t i = 0; i < o->seeds; i++) {
		struct sim_result r;
		sim_run(o->first_seed + (uint64_t)i, o->nodes, o->verbose, &r);
		if (r.seed % SUITES == 0 && !r.broken)
			add_suite(&r, o->verbose);
		add_up(&t, &r);
		if (o->verbose >= 1 && !o->json)
			printf("seed %llu: %s, %d events, hash %016llx\n",
			       (unsigned long long)r.seed, verdict_name((enum verdict)r.verdict),
			       r.events, (unsigned long long)r.hash);
		if (r.broken && t.broken <= MAX_BROKEN_SHOWN)
			fprintf(stderr,
				"seed %llu: %s  (regatta sim --seed %llu --seeds 1 --nodes %d -vv)\n",
				(unsigned long long)r.seed, r.what, (unsigned long long)r.seed,
				o->nodes);
	}
	double seconds = (double)(clock_boot_us() - start) / 1e6;
	if (seconds <= 0)
		seconds = 1e-6;
	if (o->json)
		print_json(&t, seconds);
	else
		print_text(&t, seconds);
	return t.broken ? 1 : 0;
}
