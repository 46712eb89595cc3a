#include "core/core.h"

#include <string.h>

static const char *const phase_names[RUN_PHASES] = {
	[RUN_ACCEPTED] = "accepted",	 [RUN_PROVISIONING] = "provisioning",
	[RUN_GATHERING] = "gathering",	 [RUN_RUNNING] = "running",
	[RUN_COLLECTING] = "collecting", [RUN_CLEANING] = "cleaning",
	[RUN_SUCCEEDED] = "succeeded",	 [RUN_FAILED] = "failed",
	[RUN_CANCELLED] = "cancelled",
};
static const char *const node_names[NODE_STATES] = {
	[NODE_WANTED] = "wanted",     [NODE_LAUNCHING] = "launching", [NODE_HERE] = "here",
	[NODE_READY] = "ready",	      [NODE_RUNNING] = "running",     [NODE_EXITED] = "exited",
	[NODE_RELEASED] = "released", [NODE_LOST] = "lost",
};
static const char *const res_names[RES_STATES] = {
	[RES_INTENT] = "intent",     [RES_SENT] = "sent", [RES_LIVE] = "live",
	[RES_DELETING] = "deleting", [RES_GONE] = "gone",
};
static const char *const verdict_names[] = {
	[VERDICT_NONE] = "none",
	[VERDICT_SUCCEEDED] = "succeeded",
	[VERDICT_FAILED] = "failed",
	[VERDICT_CANCELLED] = "cancelled",
};
static const char *const event_names[EVENT_KINDS] = {
	[EV_ACCEPTED] = "accepted",
	[EV_RESUME] = "resumed",
	[EV_TICK] = "tick",
	[EV_CANCEL] = "cancel",
	[EV_RESIZE] = "resize",
	[EV_RES_ANSWER] = "answer",
	[EV_RES_MEMBER] = "member_gone",
	[EV_ENROL] = "enrol",
	[EV_REMOTE] = "master",
	[EV_CARRIED] = "carried",
	[EV_PROGRESS] = "progress",
	[EV_ADMIT] = "admitted",
	[EV_CAPACITY] = "capacity",
	[EV_NODE_HELLO] = "hello",
	[EV_NODE_READY] = "ready",
	[EV_NODE_UNFIT] = "unfit",
	[EV_NODE_STARTED] = "started",
	[EV_NODE_SERVING] = "serving",
	[EV_NODE_EXITED] = "exited",
	[EV_NODE_NO_DAEMON] = "no_daemon",
	[EV_NODE_DRAINED] = "drained",
	[EV_NODE_DROPPED] = "dropped",
	[EV_NODE_NO_ROOM] = "no_room",
	[EV_NODE_ROOM] = "room",
	[EV_NODE_NO_LOG] = "no_log",
	[EV_NODE_PREEMPT] = "preempt",
	[EV_NODE_INSPECTED] = "inspected",
	[EV_NODE_PREFLIGHT] = "probed",
	[EV_NODE_SEEN] = "seen",
};
static const char *const done_names[RES_QUESTIONS] = {
	[ASKED_NOTHING] = "done",  [ASKED_CREATE] = "created",	[ASKED_FIND] = "created",
	[ASKED_OBSERVE] = "alive", [ASKED_EXTEND] = "extended", [ASKED_DESTROY] = "destroyed",
};
static const char *const outcome_names[OUTCOMES] = {
	[OUTCOME_DONE] = "done",     [OUTCOME_REFUSED] = "refused", [OUTCOME_UNSURE] = "unsure",
	[OUTCOME_ABSENT] = "absent", [OUTCOME_BROKEN] = "broken",   [OUTCOME_HELD] = "held",
};
static const char *const effect_names[EFFECT_KINDS] = {
	[FX_CREATE] = "create",
	[FX_FIND] = "find",
	[FX_OBSERVE] = "observe",
	[FX_EXTEND] = "extend",
	[FX_DESTROY] = "destroy",
	[FX_PREPARE] = "prepare",
	[FX_START] = "start",
	[FX_STOP] = "stop",
	[FX_RELEASE] = "release",
	[FX_INSPECT] = "inspect",
	[FX_STALLED] = "stalled",
	[FX_PREFLIGHT] = "preflight",
	[FX_PREFLIGHT_PASSED] = "preflight_passed",
	[FX_ENROLLED] = "enrolled",
	[FX_CANCEL_CARRIED] = "cancel-suite",
	[FX_HAND_OVER] = "hand_over",
	[FX_FOLLOW] = "follow",
	[FX_AWAIT_RESULTS] = "await_results",
	[FX_SWEEP] = "sweep",
	[FX_ENDED] = "ended",
};

/* Legal edges as bit sets: edges[from] has bit `to`. */
#define BIT(x) (1u << (x))
static const unsigned run_edges[RUN_PHASES] = {
	[RUN_ACCEPTED] = BIT(RUN_PROVISIONING) | BIT(RUN_COLLECTING),
	[RUN_PROVISIONING] = BIT(RUN_GATHERING) | BIT(RUN_COLLECTING),
	[RUN_GATHERING] = BIT(RUN_RUNNING) | BIT(RUN_COLLECTING),
	[RUN_RUNNING] = BIT(RUN_COLLECTING) | BIT(RUN_GATHERING), /* the whole gang starts again */
	[RUN_COLLECTING] = BIT(RUN_CLEANING),
	[RUN_CLEANING] = BIT(RUN_SUCCEEDED) | BIT(RUN_FAILED) | BIT(RUN_CANCELLED),
};
static const unsigned node_edges[NODE_STATES] = {
	[NODE_WANTED] = BIT(NODE_LAUNCHING) | BIT(NODE_RELEASED),
	[NODE_LAUNCHING] = BIT(NODE_HERE) | BIT(NODE_LOST) | BIT(NODE_RELEASED),
	[NODE_HERE] = BIT(NODE_READY) | BIT(NODE_LOST) | BIT(NODE_RELEASED),
	[NODE_READY] = BIT(NODE_RUNNING) | BIT(NODE_EXITED) | BIT(NODE_LOST) | BIT(NODE_RELEASED),
	[NODE_RUNNING] = BIT(NODE_EXITED) | BIT(NODE_LOST),
	[NODE_EXITED] = BIT(NODE_RELEASED) | BIT(NODE_LOST),
};
/* The way back to another attempt, on the same or another machine.  Only policy.c takes it. */
static const unsigned node_back_edges[NODE_STATES] = {
	[NODE_LAUNCHING] = BIT(NODE_WANTED),
	[NODE_HERE] = BIT(NODE_WANTED),
	[NODE_READY] = BIT(NODE_WANTED) | BIT(NODE_READY),
	[NODE_EXITED] = BIT(NODE_WANTED) | BIT(NODE_READY),
	[NODE_LOST] = BIT(NODE_WANTED),
};
static const unsigned res_edges[RES_STATES] = {
	[RES_INTENT] = BIT(RES_SENT) | BIT(RES_GONE),
	[RES_SENT] = BIT(RES_LIVE) | BIT(RES_INTENT) | BIT(RES_GONE),
	[RES_LIVE] = BIT(RES_DELETING),
	[RES_DELETING] = BIT(RES_GONE) | BIT(RES_INTENT),
};

bool run_edge_ok(enum run_phase from, enum run_phase to)
{
	return run_edges[from] & BIT(to);
}

bool node_edge_ok(enum node_state from, enum node_state to)
{
	return (node_edges[from] | node_back_edges[from]) & BIT(to);
}

bool res_edge_ok(enum res_state from, enum res_state to)
{
	return res_edges[from] & BIT(to);
}

bool run_phase_is_final(enum run_phase p)
{
	return p >= RUN_SUCCEEDED;
}

const char *run_phase_name(enum run_phase p)
{
	return phase_names[p];
}
const char *node_state_name(enum node_state s)
{
	return node_names[s];
}
const char *res_state_name(enum res_state s)
{
	return res_names[s];
}
const char *verdict_name(enum verdict v)
{
	return verdict_names[v];
}
const char *event_name(const struct event *ev)
{
	if (ev->kind != EV_RES_ANSWER)
		return event_names[ev->kind];
	if (ev->outcome == OUTCOME_DONE)
		return done_names[ev->asked];
	return outcome_names[ev->outcome];
}
const char *effect_kind_name(enum effect_kind k)
{
	return effect_names[k];
}
bool core_answer_has_id(const struct event *ev)
{
	return ev->kind == EV_RES_ANSWER && ev->outcome == OUTCOME_DONE &&
	       (ev->asked == ASKED_CREATE || ev->asked == ASKED_FIND);
}

int core_exit_code(enum verdict v, const struct cause *c)
{
	switch (v) {
	case VERDICT_NONE:
	case VERDICT_SUCCEEDED:
		return 0;
	case VERDICT_CANCELLED:
		return err_exit_code(ERR_CANCELLED);
	case VERDICT_FAILED:
		return c->kind == ERR_NONE ? 1 : err_exit_code(c->kind);
	}
	return 1;
}
