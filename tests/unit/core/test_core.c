#include "unit.h"

#include <signal.h>
#include <string.h>

#include "base/arena.h"
#include "core/core.h"
#include "fmt/doc.h"

/* A run made from a job's text, and the clock of the test. */
struct fixture {
	struct arena *a;
	struct job job;
	struct plan plan;
	struct core_run *r;
	struct effects fx;
	int64_t now;
};

static const char *const three_workers = "command = ['w']\ncount = 3\n";
static const char *const pserver =
	"strategy = 'pserver'\nmax_runtime = '1h'\n"
	"[roles.pserver]\ncount = 2\ncommand = ['p']\n"
	"[roles.trainer]\ncount = 2\ncommand = ['t']\n"; /* ranks 0,1 trainers; 2,3 pservers */

static struct fixture *open_run(const char *toml)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct problems *ps = xcalloc(1, sizeof(*ps));
	struct doc *doc;
	struct err err = {0};

	f->a = arena_new();
	f->now = 1000;
	assert_int_equal(toml_parse(str_from(toml), f->a, &doc, &err), 0);
	assert_true(job_load(doc, f->a, &f->job, ps));
	f->job.base_dir = "/";
	assert_true(plan_make(&f->job, NULL, f->a, &f->plan, ps));
	f->r = core_run_new(&f->plan);
	free(ps);
	return f;
}

static void close_run(struct fixture *f)
{
	core_run_free(f->r);
	effects_release(&f->fx);
	arena_free(f->a);
	free(f);
}

static void give(struct fixture *f, struct event ev)
{
	effects_reset(&f->fx);
	core_step(f->r, &ev, f->now, &f->fx);
	for (int i = 0; i < f->plan.crew.n; i++)
		f->r->nodes[i].dirty = false;
	for (int i = 0; i < f->plan.nresources; i++)
		f->r->resources[i].dirty = false;
}

static int count(const struct fixture *f, enum effect_kind kind)
{
	int n = 0;

	for (size_t i = 0; i < f->fx.n; i++)
		n += f->fx.v[i].kind == kind;
	return n;
}

static bool has(const struct fixture *f, enum effect_kind kind, int index)
{
	for (size_t i = 0; i < f->fx.n; i++)
		if (f->fx.v[i].kind == kind && f->fx.v[i].index == index)
			return true;
	return false;
}

static void answer(struct fixture *f, int index, enum event_kind kind, enum err_kind err)
{
	give(f, (struct event){.kind = kind,
			       .index = index,
			       .attempt = f->r->resources[index].ask_no,
			       .err_kind = err,
			       .text = "x"});
}

static void say(struct fixture *f, int rank, enum event_kind kind)
{
	give(f, (struct event){.kind = kind, .index = rank, .attempt = 1, .holds = HOLDS_NOTHING});
}

static void accept_and_create(struct fixture *f)
{
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	for (int i = 0; i < f->plan.nresources; i++)
		answer(f, i, EV_RES_CREATED, ERR_NONE);
}

static void all_ready(struct fixture *f)
{
	accept_and_create(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < f->plan.crew.n; i++)
		say(f, i, EV_NODE_READY);
}

static void exits(struct fixture *f, int rank, int code, int signo)
{
	give(f, (struct event){.kind = EV_NODE_EXITED,
			       .index = rank,
			       .attempt = 1,
			       .exit = {.code = code, .signal = signo}});
}

static void clean_up(struct fixture *f)
{
	for (int i = 0; i < f->plan.nresources; i++)
		answer(f, i, EV_RES_DESTROYED, ERR_NONE);
}

static void a_run_that_goes_well_passes_every_phase(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	assert_int_equal(count(f, FX_CREATE), 3);
	for (int i = 0; i < 3; i++)
		answer(f, i, EV_RES_CREATED, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	for (int i = 0; i < 3; i++) {
		say(f, i, EV_NODE_HELLO);
		assert_true(has(f, FX_PREPARE, i));
	}
	say(f, 0, EV_NODE_READY);
	say(f, 1, EV_NODE_READY);
	assert_int_equal(count(f, FX_START), 0); /* nobody starts until everybody is ready */
	say(f, 2, EV_NODE_READY);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_int_equal(count(f, FX_START), 3);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < 3; i++)
		exits(f, i, 0, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(count(f, FX_RELEASE), 3);
	assert_int_equal(count(f, FX_DESTROY), 3);
	clean_up(f);
	assert_int_equal(f->r->phase, RUN_SUCCEEDED);
	assert_int_equal(count(f, FX_ENDED), 1);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 0);
	close_run(f);
}

static void trainers_start_when_every_server_answers(void **state)
{
	struct fixture *f = open_run(pserver);

	(void)state;
	all_ready(f);
	assert_int_equal(count(f, FX_START), 2);
	assert_true(has(f, FX_START, 2) && has(f, FX_START, 3));
	say(f, 2, EV_NODE_STARTED);
	say(f, 3, EV_NODE_STARTED);
	say(f, 2, EV_NODE_SERVING);
	assert_int_equal(count(f, FX_START), 0);
	say(f, 3, EV_NODE_SERVING);
	assert_true(has(f, FX_START, 0) && has(f, FX_START, 1));
	close_run(f);
}

static void servers_are_stopped_when_the_trainers_are_done(void **state)
{
	struct fixture *f = open_run(pserver);

	(void)state;
	all_ready(f);
	for (int i = 2; i < 4; i++)
		say(f, i, EV_NODE_SERVING);
	exits(f, 0, 0, 0);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	exits(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	assert_true(has(f, FX_STOP, 2) && has(f, FX_STOP, 3));
	exits(f, 2, -1, SIGTERM); /* how a server ends does not matter then */
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	close_run(f);
}

static void a_server_that_ends_before_it_answers_fails_the_run(void **state)
{
	struct fixture *f = open_run(pserver);

	(void)state;
	all_ready(f);
	say(f, 2, EV_NODE_STARTED);
	exits(f, 2, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 2);
	close_run(f);
}

static void a_server_that_never_answers_misses_its_deadline(void **state)
{
	struct fixture *f = open_run(pserver);

	(void)state;
	all_ready(f);
	say(f, 2, EV_NODE_STARTED);
	f->now += f->job.timeouts.serve_ms + 1;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	assert_non_null(strstr(f->r->cause.text, "port 5436 did not answer"));
	close_run(f);
}

static void a_failed_rank_stops_the_others_and_is_the_cause(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_ready(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_STARTED);
	exits(f, 1, 3, 0);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 1);
	assert_string_equal(f->r->cause.text, "worker-1 exited with code 3");
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 1);
	assert_true(has(f, FX_STOP, 0) && has(f, FX_STOP, 2) && !has(f, FX_STOP, 1));
	exits(f, 0, 9, 0); /* a later failure changes nothing */
	assert_int_equal(f->r->cause.node, 1);
	close_run(f);
}

static void an_unfit_node_fails_the_run_before_anything_starts(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	accept_and_create(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_HELLO);
	give(f, (struct event){.kind = EV_NODE_UNFIT,
			       .index = 0,
			       .err_kind = ERR_NOT_FOUND,
			       .text = "command 'w' not found"});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 3);
	assert_int_equal(count(f, FX_START), 0);
	close_run(f);
}

static void a_gang_that_cannot_be_completed_releases_what_it_holds(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	answer(f, 0, EV_RES_CREATED, ERR_NONE);
	answer(f, 1, EV_RES_CREATED, ERR_NONE);
	answer(f, 2, EV_RES_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->verdict, VERDICT_NONE); /* worth trying again */
	f->now += f->job.timeouts.launch_ms + 1;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_CAPACITY);
	assert_true(has(f, FX_DESTROY, 0) && has(f, FX_DESTROY, 1));
	assert_int_equal(f->r->resources[2].state, RES_GONE);
	clean_up(f);
	assert_int_equal(f->r->phase, RUN_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 5);
	close_run(f);
}

static void a_refused_create_is_tried_again_as_a_new_attempt(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	answer(f, 0, EV_RES_REFUSED, ERR_THROTTLED);
	assert_int_equal(f->r->resources[0].state, RES_INTENT);
	assert_true(f->r->resources[0].retry_at_ms > f->now);
	f->now = f->r->resources[0].retry_at_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_CREATE, 0));
	assert_int_equal(f->r->resources[0].attempt, 2);
	close_run(f);
}

static void a_hard_refusal_fails_the_run_at_once(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	answer(f, 1, EV_RES_REFUSED, ERR_DENIED);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 4);
	close_run(f);
}

static void an_unknown_outcome_is_replayed_with_the_same_attempt(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	answer(f, 0, EV_RES_UNSURE, ERR_TIMEOUT);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	f->now = f->r->resources[0].retry_at_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_CREATE, 0));
	assert_int_equal(f->r->resources[0].attempt, 1);
	close_run(f);
}

static void a_stale_answer_changes_nothing(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	give(f, (struct event){.kind = EV_RES_CREATED, .index = 0, .attempt = 99, .text = "x"});
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	answer(f, 0, EV_RES_CREATED, ERR_NONE);
	answer(f, 0, EV_RES_REFUSED, ERR_DENIED); /* the same answer number, already taken */
	assert_int_equal(f->r->resources[0].state, RES_LIVE);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	close_run(f);
}

static void cancel_stops_what_runs_and_a_second_one_hurries(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_ready(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_STARTED);
	give(f, (struct event){.kind = EV_CANCEL, .text = "by the user"});
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_int_equal(count(f, FX_STOP), 3);
	assert_false(f->fx.v[0].hurry);
	give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(count(f, FX_STOP), 3);
	assert_true(f->fx.v[0].hurry);
	for (int i = 0; i < 3; i++) {
		exits(f, i, -1, SIGKILL);
		say(f, i, EV_NODE_DRAINED);
	}
	clean_up(f);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 7);
	give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->fx.n, 0); /* final is final */
	close_run(f);
}

static void all_exited(struct fixture *f)
{
	all_ready(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < f->plan.crew.n; i++)
		exits(f, i, 0, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
}

static void a_cancel_while_collecting_gives_the_nodes_the_grace_time(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_exited(f);
	say(f, 0, EV_NODE_DRAINED);
	give(f, (struct event){.kind = EV_CANCEL, .text = "by the user"});
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_string_equal(f->r->cause.text, "by the user");
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_true(!has(f, FX_STOP, 0) && has(f, FX_STOP, 1) && has(f, FX_STOP, 2));
	say(f, 1, EV_NODE_DRAINED);
	f->now += f->job.timeouts.grace_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	clean_up(f);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	close_run(f);
}

static void a_cancel_while_collecting_waits_for_jobs_that_still_run(void **state)
{
	struct fixture *f = open_run(pserver);

	(void)state;
	all_ready(f);
	for (int i = 2; i < 4; i++)
		say(f, i, EV_NODE_SERVING);
	exits(f, 0, 0, 0);
	exits(f, 1, 0, 0);
	for (int i = 0; i < 2; i++)
		say(f, i, EV_NODE_DRAINED);
	give(f, (struct event){.kind = EV_CANCEL});
	assert_true(has(f, FX_STOP, 2) && has(f, FX_STOP, 3));
	f->now += f->job.timeouts.grace_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_COLLECTING); /* SIGKILL needs its time */
	for (int i = 2; i < 4; i++) {
		exits(f, i, -1, SIGKILL);
		say(f, i, EV_NODE_DRAINED);
	}
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	close_run(f);
}

static void now_ends_collecting_at_once(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_exited(f);
	give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_int_equal(f->r->node_count[NODE_RELEASED], 3);
	close_run(f);
}

static void after_now_a_killed_job_has_a_second_to_hand_over_what_it_printed(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_ready(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_STARTED);
	give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	for (int i = 0; i < 3; i++)
		exits(f, i, -1, SIGKILL);
	say(f, 0, EV_NODE_DRAINED);
	f->now += 999;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	f->now += 1;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->node_count[NODE_RELEASED], 3);
	close_run(f);
}

static void a_failed_run_stays_failed_when_its_collecting_is_cancelled(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_ready(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < 3; i++)
		exits(f, i, 3, 0);
	give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_string_equal(f->r->cause.text, "worker-0 exited with code 3");
	close_run(f);
}

static void output_without_room_waits_until_somebody_cancels(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_ready(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_NO_ROOM);
	say(f, 2, EV_NODE_ROOM);
	say(f, 2, EV_NODE_ROOM);
	assert_int_equal(f->fx.nodes.n, 0); /* said twice */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	give(f, (struct event){.kind = EV_CANCEL});
	exits(f, 0, -1, SIGTERM); /* what it printed cannot be stored: nobody waits for it */
	exits(f, 1, -1, SIGTERM);
	exits(f, 2, -1, SIGTERM);
	assert_true(f->r->nodes[0].settled && f->r->nodes[1].settled);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	say(f, 2, EV_NODE_NO_ROOM);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	close_run(f);
}

static void a_cancel_gives_up_what_found_no_room(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	all_exited(f);
	for (int i = 0; i < 3; i++)
		say(f, i, EV_NODE_NO_ROOM);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	close_run(f);
}

static void a_run_that_is_cancelled_before_it_begins_took_no_time(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_CANCEL, .text = "no room for its files"});
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_true(has(f, FX_ENDED, 0));
	assert_int_equal(f->r->phase_at_ms[RUN_ACCEPTED], f->now);
	close_run(f);
}

static void a_cancel_while_a_create_is_out_waits_for_its_answer_and_deletes(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->fx.n, 0);
	answer(f, 0, EV_RES_CREATED, ERR_NONE);
	assert_true(has(f, FX_DESTROY, 0));
	answer(f, 0, EV_RES_HELD, ERR_CONFLICT);
	assert_int_equal(f->r->phase, RUN_CLEANING); /* held is not gone */
	f->now = f->r->resources[0].retry_at_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_DESTROY, 0));
	answer(f, 0, EV_RES_DESTROYED, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	close_run(f);
}

static void a_silent_node_is_looked_at_and_its_agent_started_again(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	all_ready(f);
	say(f, 0, EV_NODE_STARTED);
	say(f, 0, EV_NODE_DROPPED);
	f->now = f->r->nodes[0].observe_at_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_OBSERVE, 0));
	answer(f, 0, EV_RES_BROKEN, ERR_NONE);
	assert_true(has(f, FX_CREATE, 0));
	answer(f, 0, EV_RES_CREATED, ERR_NONE);
	give(f, (struct event){
			.kind = EV_NODE_HELLO, .index = 0, .attempt = 1, .holds = HOLDS_STARTED});
	assert_int_equal(count(f, FX_START), 0); /* at most once */
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	close_run(f);
}

static void a_start_that_never_arrived_is_sent_again(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	all_ready(f);
	assert_true(has(f, FX_START, 0));
	say(f, 0, EV_NODE_DROPPED);
	say(f, 0, EV_NODE_HELLO);
	assert_true(has(f, FX_PREPARE, 0));
	say(f, 0, EV_NODE_READY);
	assert_true(has(f, FX_START, 0));
	assert_int_equal(f->r->nodes[0].attempt, 1);
	close_run(f);
}

/* Its agent is a new one: what the old one had pulled is being looked at again. */
static void a_node_that_prepares_again_starts_when_it_is_ready(void **state)
{
	struct fixture *f = open_run("command = ['w']\ncount = 2\n");

	(void)state;
	accept_and_create(f);
	say(f, 0, EV_NODE_HELLO);
	say(f, 1, EV_NODE_HELLO);
	say(f, 0, EV_NODE_READY);
	say(f, 0, EV_NODE_DROPPED);
	say(f, 0, EV_NODE_HELLO);
	assert_true(has(f, FX_PREPARE, 0));
	say(f, 1, EV_NODE_READY);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_true(has(f, FX_START, 1) && !has(f, FX_START, 0));
	say(f, 0, EV_NODE_READY);
	assert_true(has(f, FX_START, 0));
	close_run(f);
}

/* It has no job to stop: waiting for the end of one would take the whole deadline. */
static void a_node_that_cannot_be_prepared_again_has_nothing_to_give(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	all_ready(f);
	assert_true(has(f, FX_START, 0));
	say(f, 0, EV_NODE_DROPPED);
	say(f, 0, EV_NODE_HELLO);
	give(f, (struct event){.kind = EV_NODE_UNFIT,
			       .index = 0,
			       .err_kind = ERR_NOT_FOUND,
			       .text = "no such command"});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(has(f, FX_RELEASE, 0));
	close_run(f);
}

static void a_node_that_waits_for_its_start_has_nothing_to_stop(void **state)
{
	struct fixture *f = open_run("command = ['w']\ncount = 2\n");

	(void)state;
	all_ready(f);
	say(f, 1, EV_NODE_STARTED);
	say(f, 0, EV_NODE_DROPPED);
	say(f, 0, EV_NODE_HELLO);
	exits(f, 1, 1, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_true(!has(f, FX_STOP, 0) && f->r->nodes[0].settled);
	say(f, 0, EV_NODE_READY);
	assert_int_equal(count(f, FX_START), 0);
	say(f, 1, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	close_run(f);
}

static void a_node_that_comes_back_from_a_reboot_is_lost(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	all_ready(f);
	say(f, 0, EV_NODE_STARTED);
	say(f, 0, EV_NODE_DROPPED);
	give(f,
	     (struct event){
		     .kind = EV_NODE_HELLO, .index = 0, .attempt = 1, .holds = HOLDS_OTHER_BOOT});
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 8);
	close_run(f);
}

static void a_reboot_before_the_start_costs_nothing(void **state)
{
	struct fixture *f = open_run("command = ['w']\ncount = 2\n");

	(void)state;
	accept_and_create(f);
	give(f, (struct event){.kind = EV_NODE_HELLO, .index = 0, .holds = HOLDS_OTHER_BOOT});
	assert_true(has(f, FX_PREPARE, 0));
	assert_int_equal(f->r->nodes[0].state, NODE_HERE);
	close_run(f);
}

/* The start may have been acted on, and its claim lost. */
static void a_reboot_after_the_start_was_sent_is_not_answered_by_another_start(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	all_ready(f);
	assert_int_equal(count(f, FX_START), 1);
	say(f, 0, EV_NODE_DROPPED);
	give(f, (struct event){.kind = EV_NODE_HELLO, .index = 0, .holds = HOLDS_OTHER_BOOT});
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(count(f, FX_START), 0);
	close_run(f);
}

static void a_node_silent_for_the_whole_lease_is_lost(void **state)
{
	struct fixture *f = open_run("command = ['w']\n[timeouts]\nlease = '1m'\n");

	(void)state;
	all_ready(f);
	say(f, 0, EV_NODE_STARTED);
	say(f, 0, EV_NODE_DROPPED);
	f->now += 60001;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	close_run(f);
}

static void max_runtime_ends_the_run(void **state)
{
	struct fixture *f = open_run("command = ['w']\nmax_runtime = '5s'\n");

	(void)state;
	all_ready(f);
	say(f, 0, EV_NODE_STARTED);
	f->now += 5001;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_STOP, 0));
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 6);
	close_run(f);
}

static void a_node_that_is_never_ready_is_named(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	accept_and_create(f);
	say(f, 0, EV_NODE_HELLO);
	say(f, 0, EV_NODE_READY);
	say(f, 2, EV_NODE_HELLO);
	say(f, 2, EV_NODE_READY);
	f->now += f->job.timeouts.gather_ms + 1;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->cause.node, 1);
	assert_non_null(strstr(f->r->cause.text, "worker-1 was not ready"));
	close_run(f);
}

static void a_success_whose_output_cannot_be_stored_is_a_failure(void **state)
{
	struct fixture *f = open_run("command = ['w']\n");

	(void)state;
	all_ready(f);
	exits(f, 0, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	f->now = f->r->deadline_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	close_run(f);
}

static void a_restart_asks_again_for_everything_unanswered(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	answer(f, 0, EV_RES_CREATED, ERR_NONE);
	core_run_restored(f->r);
	give(f, (struct event){.kind = EV_RESUME});
	assert_true(!has(f, FX_CREATE, 0) && has(f, FX_CREATE, 1) && has(f, FX_CREATE, 2));
	assert_int_equal(f->r->resources[1].attempt, 1);
	close_run(f);
}

/* The lease is for a node that was there; one that still boots has the deadline of its phase. */
static void a_restart_does_not_shorten_the_launch(void **state)
{
	struct fixture *f = open_run("command = ['w']\ncount = 2\n[timeouts]\nlease = '10s'\n");

	(void)state;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	answer(f, 0, EV_RES_CREATED, ERR_NONE);
	core_run_restored(f->r);
	give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(f->r->nodes[1].lost_at_ms, 0);
	f->now += 60000;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	assert_true(has(f, FX_OBSERVE, 0)); /* there, and not heard of */
	f->now += 5 * 60000;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	close_run(f);
}

/* A create of the master that died is slower than the next master's, and than its refusal. */
static void a_refusal_is_no_proof_while_an_earlier_create_may_arrive(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	f->plan.resources[0].late_ms = 1000;
	give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	core_run_restored(f->r);
	give(f, (struct event){.kind = EV_RESUME});
	assert_true(has(f, FX_CREATE, 0));
	f->now += 5000; /* a late answer to what was asked early */
	answer(f, 0, EV_RES_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	f->now = f->r->resources[0].retry_at_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->resources[0].attempt, 1); /* the same token */
	answer(f, 0, EV_RES_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->resources[0].state, RES_INTENT);
	close_run(f);
}

static void a_deleted_resource_is_gone_when_no_earlier_create_can_make_it_again(void **state)
{
	struct fixture *f = open_run(three_workers);

	(void)state;
	f->plan.resources[0].late_ms = 1000;
	accept_and_create(f);
	give(f, (struct event){.kind = EV_CANCEL});
	core_run_restored(f->r);
	give(f, (struct event){.kind = EV_RESUME});
	assert_true(has(f, FX_DESTROY, 0));
	answer(f, 0, EV_RES_DESTROYED, ERR_NONE);
	answer(f, 1, EV_RES_DESTROYED, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_DELETING);
	assert_int_equal(f->r->resources[1].state, RES_GONE);
	f->now += 1000;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_DESTROY, 0));
	answer(f, 0, EV_RES_DESTROYED, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_GONE);
	close_run(f);
}

/* Looked for while it was silent; before the answer came it had given all that it had. */
static void a_machine_that_goes_after_its_node_is_done_is_no_loss(void **state)
{
	struct fixture *f = open_run("command = ['w']\ncount = 2\n");

	(void)state;
	all_ready(f);
	say(f, 0, EV_NODE_STARTED);
	say(f, 1, EV_NODE_STARTED);
	say(f, 0, EV_NODE_DROPPED);
	f->now = f->r->nodes[0].observe_at_ms;
	give(f, (struct event){.kind = EV_TICK});
	assert_true(has(f, FX_OBSERVE, 0));
	give(f, (struct event){
			.kind = EV_NODE_HELLO, .index = 0, .attempt = 1, .holds = HOLDS_STARTED});
	exits(f, 0, 0, 0);
	say(f, 0, EV_NODE_DRAINED);
	answer(f, 0, EV_RES_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_int_equal(f->r->nodes[0].state, NODE_EXITED);
	exits(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	close_run(f);
}

/* The same work for a step whatever the number of nodes: looked at through the rows it touches. */
static void a_step_touches_only_its_own_node(void **state)
{
	struct fixture *f = open_run("command = ['w']\ncount = 2000\n");

	(void)state;
	accept_and_create(f);
	say(f, 1234, EV_NODE_HELLO);
	assert_int_equal(f->fx.nodes.n, 1);
	assert_int_equal(f->fx.nodes.v[0], 1234);
	assert_int_equal(f->fx.n, 1);
	close_run(f);
}

static void names_go_both_ways(void **state)
{
	(void)state;
	for (int i = 0; i < RUN_PHASES; i++)
		assert_int_equal(run_phase_from_name(run_phase_name((enum run_phase)i)), i);
	for (int i = 0; i < NODE_STATES; i++)
		assert_int_equal(node_state_from_name(node_state_name((enum node_state)i)), i);
	for (int i = 0; i < RES_STATES; i++)
		assert_int_equal(res_state_from_name(res_state_name((enum res_state)i)), i);
	for (int i = 0; i < EVENT_KINDS; i++)
		assert_non_null(event_kind_name((enum event_kind)i));
	assert_int_equal(run_phase_from_name("nonsense"), -1);
	assert_int_equal(verdict_from_name("failed"), VERDICT_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_goes_well_passes_every_phase),
		cmocka_unit_test(trainers_start_when_every_server_answers),
		cmocka_unit_test(servers_are_stopped_when_the_trainers_are_done),
		cmocka_unit_test(a_server_that_ends_before_it_answers_fails_the_run),
		cmocka_unit_test(a_server_that_never_answers_misses_its_deadline),
		cmocka_unit_test(a_failed_rank_stops_the_others_and_is_the_cause),
		cmocka_unit_test(an_unfit_node_fails_the_run_before_anything_starts),
		cmocka_unit_test(a_gang_that_cannot_be_completed_releases_what_it_holds),
		cmocka_unit_test(a_refused_create_is_tried_again_as_a_new_attempt),
		cmocka_unit_test(a_hard_refusal_fails_the_run_at_once),
		cmocka_unit_test(an_unknown_outcome_is_replayed_with_the_same_attempt),
		cmocka_unit_test(a_stale_answer_changes_nothing),
		cmocka_unit_test(cancel_stops_what_runs_and_a_second_one_hurries),
		cmocka_unit_test(a_cancel_while_collecting_gives_the_nodes_the_grace_time),
		cmocka_unit_test(a_cancel_while_collecting_waits_for_jobs_that_still_run),
		cmocka_unit_test(now_ends_collecting_at_once),
		cmocka_unit_test(after_now_a_killed_job_has_a_second_to_hand_over_what_it_printed),
		cmocka_unit_test(a_failed_run_stays_failed_when_its_collecting_is_cancelled),
		cmocka_unit_test(output_without_room_waits_until_somebody_cancels),
		cmocka_unit_test(a_cancel_gives_up_what_found_no_room),
		cmocka_unit_test(a_run_that_is_cancelled_before_it_begins_took_no_time),
		cmocka_unit_test(a_cancel_while_a_create_is_out_waits_for_its_answer_and_deletes),
		cmocka_unit_test(a_silent_node_is_looked_at_and_its_agent_started_again),
		cmocka_unit_test(a_start_that_never_arrived_is_sent_again),
		cmocka_unit_test(a_node_that_prepares_again_starts_when_it_is_ready),
		cmocka_unit_test(a_node_that_cannot_be_prepared_again_has_nothing_to_give),
		cmocka_unit_test(a_node_that_waits_for_its_start_has_nothing_to_stop),
		cmocka_unit_test(a_node_that_comes_back_from_a_reboot_is_lost),
		cmocka_unit_test(a_reboot_before_the_start_costs_nothing),
		cmocka_unit_test(
			a_reboot_after_the_start_was_sent_is_not_answered_by_another_start),
		cmocka_unit_test(a_node_silent_for_the_whole_lease_is_lost),
		cmocka_unit_test(max_runtime_ends_the_run),
		cmocka_unit_test(a_node_that_is_never_ready_is_named),
		cmocka_unit_test(a_success_whose_output_cannot_be_stored_is_a_failure),
		cmocka_unit_test(a_restart_asks_again_for_everything_unanswered),
		cmocka_unit_test(a_restart_does_not_shorten_the_launch),
		cmocka_unit_test(a_refusal_is_no_proof_while_an_earlier_create_may_arrive),
		cmocka_unit_test(
			a_deleted_resource_is_gone_when_no_earlier_create_can_make_it_again),
		cmocka_unit_test(a_machine_that_goes_after_its_node_is_done_is_no_loss),
		cmocka_unit_test(a_step_touches_only_its_own_node),
		cmocka_unit_test(names_go_both_ways),
	};
	return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
