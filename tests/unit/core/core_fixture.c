#include "core_fixture.h"

#include "fmt/doc.h"

const char *const three_workers = "command = ['w']\ncount = 3\n";
const char *const pserver =
	"strategy = 'pserver'\nmax_runtime = '1h'\n"
	"[roles.pserver]\ncount = 2\ncommand = ['p']\n"
	"[roles.trainer]\ncount = 2\ncommand = ['t']\n"; /* ranks 0,1 trainers; 2,3 pservers */

struct fixture *run_open(const char *toml)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct problems *ps = xcalloc(1, sizeof(*ps));
	struct doc *doc;
	struct err err = {0};

	f->a = arena_new();
	f->now = 1000;
	assert_int_equal(toml_parse(str_from(toml), f->a, &doc, &err), 0);
	assert_true(job_load(doc, NULL, f->a, &f->job, ps));
	f->job.base_dir = "/";
	assert_true(plan_make(&f->job, NULL, f->a, &f->plan, ps));
	f->r = core_run_new(&f->plan);
	free(ps);
	return f;
}

void run_close(struct fixture *f)
{
	core_run_free(f->r);
	effects_release(&f->fx);
	arena_free(f->a);
	free(f);
}

void run_give(struct fixture *f, struct event ev)
{
	effects_release(&f->fx);
	if (ev.kind == EV_NODE_HELLO && !ev.incarnation && ev.index < f->plan.crew.n)
		ev.incarnation = f->r->nodes[ev.index].incarnation;
	core_step(f->r, &ev, f->now, &f->fx);
	for (int i = 0; i < f->plan.crew.n; i++)
		f->r->nodes[i].dirty = false;
	for (int i = 0; i < f->plan.nresources; i++)
		f->r->resources[i].dirty = false;
}

int effects_count(const struct fixture *f, enum effect_kind kind)
{
	int n = 0;

	for (size_t i = 0; i < f->fx.n; i++)
		n += f->fx.v[i].kind == kind;
	return n;
}

bool effects_have(const struct fixture *f, enum effect_kind kind, int index)
{
	for (size_t i = 0; i < f->fx.n; i++)
		if (f->fx.v[i].kind == kind && f->fx.v[i].index == index)
			return true;
	return false;
}

void resource_answer(struct fixture *f, int index, enum outcome outcome, enum err_kind err)
{
	run_give(f, (struct event){.kind = EV_RES_ANSWER,
				   .index = index,
				   .attempt = f->r->resources[index].ask_no,
				   .asked = f->r->resources[index].asked,
				   .outcome = outcome,
				   .identity_checked = true,
				   .err_kind = err,
				   .text = "x"});
}

void node_say(struct fixture *f, int rank, enum event_kind kind)
{
	run_give(f,
		 (struct event){.kind = kind, .index = rank, .attempt = 1, .holds = HOLDS_NOTHING});
}

void run_create_all(struct fixture *f)
{
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	while (f->r->create_next < f->plan.nresources)
		run_give(f, (struct event){.kind = EV_TICK});
	for (int i = 0; i < f->plan.nresources; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
}

void run_make_ready(struct fixture *f)
{
	run_create_all(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		if (!f->r->nodes[i].asleep)
			node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < f->plan.crew.n; i++)
		if (!f->r->nodes[i].asleep)
			node_say(f, i, EV_NODE_READY);
}

void node_exit(struct fixture *f, int rank, int code, int signo)
{
	run_give(f, (struct event){.kind = EV_NODE_EXITED,
				   .index = rank,
				   .attempt = 1,
				   .exit = {.code = code, .signal = signo}});
}

void run_clean_up(struct fixture *f)
{
	for (int i = 0; i < f->plan.nresources; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
}

void run_exit_all(struct fixture *f)
{
	run_make_ready(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		node_say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < f->plan.crew.n; i++)
		node_exit(f, i, 0, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
}
