/*
 * ec2.instance - the machines of a role's nodes, one row each.
 *
 * One RunInstances makes all rows of a batch, with a client token of (install, run, kind, batch) and bytes
 * that were stored before: a replay gives the same instances.  The launch index of an instance is the
 * place of its row in the batch.  An instance is gone when EC2 shows it as terminated; one that EC2
 * does not show at all may be younger than EC2's memory, and the core looks again.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "driver/aws/aws_kind.h"
#include "driver/aws/ec2_console.h"
#include "driver/aws/ec2_extend.h"
#include "driver/aws/ec2_launch.h"
#include "fmt/doc.h"

#define IDS_PER_CALL 200 /* values that a filter takes */
#define UNKNOWN (-1)
#define MOST_TRIES 10 /* of a destroy for instances that are not there yet */
#define TRY_MS 500

struct instance {
	char id[64], state[24];
	char reason[160]; /* of its end */
	bool preempted;	  /* EC2 took it back */
	int64_t index;
	bool ours;
};

struct instances {
	const struct driver_row *row;
	struct instance *v;
	size_t n, cap;
};

static bool is_spot_end(const char *code)
{
	return strncmp(code, "Server.SpotInstance", strlen("Server.SpotInstance")) == 0;
}

static void read_reason(const struct xml *x, struct instance *ret)
{
	const char *code = xml_text(x, "stateReason/code");

	ret->preempted = is_spot_end(code);
	snprintf(ret->reason, sizeof(ret->reason), "%.140s",
		 *xml_text(x, "stateReason/message") ? xml_text(x, "stateReason/message") : code);
}

static void add_instance(struct instances *l, const struct xml *x)
{
	struct instance i = {.index = UNKNOWN, .ours = aws_is_ours(x, l->row, false)};

	snprintf(i.id, sizeof(i.id), "%s", xml_text(x, "instanceId"));
	snprintf(i.state, sizeof(i.state), "%s", xml_text(x, "instanceState/name"));
	str_to_i64(str_from(xml_text(x, "amiLaunchIndex")), &i.index);
	read_reason(x, &i);
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->v = xrealloc(l->v, l->cap * sizeof(*l->v));
	}
	l->v[l->n++] = i;
}

static int add_page(void *ctx, const struct xml *root, struct err *err)
{
	(void)err;
	for (const struct xml *r = xml_at(root, "reservationSet/item"); r; r = xml_next(r))
		for (const struct xml *x = xml_at(r, "instancesSet/item"); x; x = xml_next(x))
			add_instance(ctx, x);
	return 0;
}

static int describe(const struct aws_work *w, struct aws_request *r, struct instances *l,
		    struct aws_answer *ans, struct err *err)
{
	int rc;

	aws_param_int(r, 1000, "MaxResults");
	rc = aws_query_pages(w->s, r, &w->d, add_page, l, ans, err);
	aws_request_release(r);
	return rc;
}

/* Those that EC2 shows; by a filter, because one unknown id would fail a list of ids. */
static int describe_ids(const struct aws_work *w, struct driver_row *const *rows, size_t n,
			struct instances *l, struct aws_answer *ans, struct err *err)
{
	for (size_t from = 0; from < n;) {
		struct aws_request r;
		int k = 0;

		aws_request_init(&r, "ec2", "DescribeInstances");
		aws_param(&r, "instance-id", "Filter.1.Name");
		for (; from < n && k < IDS_PER_CALL; from++)
			if (rows[from]->id[0])
				aws_param(&r, rows[from]->id, "Filter.1.Value.%d", ++k);
		if (k == 0)
			aws_request_release(&r);
		else if (describe(w, &r, l, ans, err) < 0)
			return -1;
	}
	return 0;
}

static int describe_token(const struct aws_work *w, struct instances *l, struct aws_answer *ans,
			  struct err *err)
{
	char token[EC2_TOKEN];
	struct aws_request r;

	ec2_token(w->row, token);
	aws_request_init(&r, "ec2", "DescribeInstances");
	aws_param(&r, "client-token", "Filter.1.Name");
	aws_param(&r, token, "Filter.1.Value.1");
	return describe(w, &r, l, ans, err);
}

static int describe_tags(const struct aws_work *w, struct instances *l, struct aws_answer *ans,
			 struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "DescribeInstances");
	aws_param(&r, "tag:regatta:install", "Filter.1.Name");
	aws_param(&r, w->row->install, "Filter.1.Value.1");
	aws_param(&r, "tag:regatta:run", "Filter.2.Name");
	aws_param(&r, w->row->run, "Filter.2.Value.1");
	aws_param(&r, "tag:regatta:batch", "Filter.3.Name");
	aws_param(&r, arena_printf(w->a, "%d", w->row->batch), "Filter.3.Value.1");
	aws_param(&r, "tag:regatta:role", "Filter.4.Name");
	aws_param(&r, aws_role(w->row), "Filter.4.Value.1");
	return describe(w, &r, l, ans, err);
}

static struct driver_row **pointers(struct arena *a, struct driver_row *rows, size_t n)
{
	struct driver_row **all = arena_array(a, struct driver_row *, n);

	for (size_t i = 0; i < n; i++)
		all[i] = &rows[i];
	return all;
}

static const struct instance *by_id(const struct instances *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].id, id) == 0)
			return &l->v[i];
	return NULL;
}

static const struct instance *by_place(const struct instances *l, int place)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].index == place)
			return &l->v[i];
	return NULL;
}

/* ---- what the state of an instance means ---- */

enum life { ALIVE, ENDING, STOPPED, ENDED };

static enum life life_of(const struct instance *i)
{
	static const struct {
		const char *state;
		enum life life;
	} lives[] = {{"shutting-down", ENDING},
		     {"terminated", ENDED},
		     {"stopping", STOPPED},
		     {"stopped", STOPPED}};

	for (size_t k = 0; k < sizeof(lives) / sizeof(lives[0]); k++)
		if (strcmp(i->state, lives[k].state) == 0)
			return lives[k].life;
	return ALIVE;
}

static enum outcome answer(struct driver_row *row, const struct instance *i, enum outcome outcome)
{
	if (outcome != OUTCOME_DONE)
		err_set(&row->err, i->preempted ? ERR_PREEMPTED : ERR_UNAVAILABLE,
			"instance %s is %s%s%s", i->id, i->state, i->reason[0] ? ": " : "",
			i->reason);
	row->ended = outcome == OUTCOME_ABSENT && life_of(i) == ENDED;
	aws_take_id(row, i->id);
	return outcome;
}

/* After a create: a token whose instance has ended makes no other one, a new token does. */
static enum outcome created(struct driver_row *row, const struct instance *i)
{
	static const enum outcome outcomes[] = {
		[ALIVE] = OUTCOME_DONE,
		[STOPPED] = OUTCOME_DONE,
		[ENDING] = OUTCOME_HELD,
		[ENDED] = OUTCOME_ABSENT,
	};

	return answer(row, i, outcomes[life_of(i)]);
}

static enum outcome found(struct driver_row *row, const struct instance *i)
{
	return answer(row, i, life_of(i) == ENDED ? OUTCOME_ABSENT : OUTCOME_DONE);
}

static enum outcome observed(struct driver_row *row, const struct instance *i)
{
	return answer(row, i, life_of(i) == ALIVE ? OUTCOME_DONE : OUTCOME_ABSENT);
}

/* ---- calls for many rows ---- */

static void fail_all(struct driver_row *rows, size_t n, enum outcome outcome, const struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		rows[i].outcome = outcome;
		rows[i].err = *err;
	}
}

typedef void rows_fn(struct aws_work *w, struct driver_row *rows, size_t n, struct instances *l,
		     struct aws_answer *ans);

static void ask(struct driver_row *rows, size_t n, enum aws_question question, rows_fn *fn)
{
	struct instances l = {.row = &rows[0]};
	struct aws_answer ans = {0};
	struct err err = {0};
	struct aws_work w;

	if (aws_work_open(&rows[0], &w, &err) < 0) {
		fail_all(rows, n, question == AWS_CREATE ? OUTCOME_REFUSED : OUTCOME_UNSURE, &err);
		return;
	}
	for (size_t i = 0; i < n; i++)
		rows[i].identity_checked = true;
	fn(&w, rows, n, &l, &ans);
	free(l.v);
	aws_answer_release(&ans);
	aws_work_close(&w);
}

static void look_for(struct aws_work *w, struct driver_row *rows, size_t n, struct instances *l,
		     struct aws_answer *ans)
{
	struct err err = {0};

	if (describe_token(w, l, ans, &err) < 0 ||
	    (l->n == 0 && describe_tags(w, l, ans, &err) < 0)) {
		fail_all(rows, n, OUTCOME_UNSURE, &err);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct instance *it = by_place(l, rows[i].batch_place);

		rows[i].outcome = it ? found(&rows[i], it) : aws_kind_absent(&rows[i]);
	}
}

/* What the request names exists, but not everybody at EC2 knows it yet. */
static bool is_too_early(const struct aws_work *w, const struct aws_answer *ans)
{
	const char *profile = aws_need(w->row, "profile");

	for (size_t i = 0; i < w->row->nneeds; i++)
		if (strstr(ans->code, "NotFound") && w->row->needs[i].id[0] &&
		    strstr(ans->message, w->row->needs[i].id))
			return true;
	return profile && strcmp(ans->code, "InvalidParameterValue") == 0 &&
	       strstr(ans->message, "nstance Profile") && strstr(ans->message, profile);
}

static void refuse(struct aws_work *w, struct driver_row *rows, size_t n, struct instances *l,
		   struct aws_answer *ans, struct err *err)
{
	/* Another request went out with this token: only what it made can be had. */
	if (aws_code_is(ans, "IdempotentParameterMismatch")) {
		look_for(w, rows, n, l, ans);
		for (size_t i = 0; i < n; i++)
			if (rows[i].outcome == OUTCOME_ABSENT)
				rows[i].err = *err;
		return;
	}
	if (ans->refused && is_too_early(w, ans))
		err->kind = ERR_UNAVAILABLE;
	fail_all(rows, n, ans->refused ? OUTCOME_REFUSED : OUTCOME_UNSURE, err);
}

static void do_create(struct aws_work *w, struct driver_row *rows, size_t n, struct instances *l,
		      struct aws_answer *ans)
{
	struct err err = {0};
	struct aws_request r;

	if (aws_request_from_bytes(&r, "ec2", str_from(rows[0].request ? rows[0].request : ""),
				   &err) < 0) {
		fail_all(rows, n, OUTCOME_REFUSED, &err);
		return;
	}
	if (aws_kind_call(w, &r, ans, &err) < 0) {
		refuse(w, rows, n, l, ans, &err);
		return;
	}
	for (const struct xml *x = xml_at(ans->root, "instancesSet/item"); x; x = xml_next(x))
		add_instance(l, x);
	for (size_t i = 0; i < n; i++) {
		const struct instance *it = by_place(l, rows[i].batch_place);

		if (it) {
			rows[i].outcome = created(&rows[i], it);
			continue;
		}
		/* EC2 makes all of them or none: what it does not name may be there all the same. */
		rows[i].outcome = OUTCOME_UNSURE;
		err_set(&rows[i].err, ERR_UNAVAILABLE,
			"EC2 named %zu instances, and not the one of this node", l->n);
	}
}

/* A machine that never spoke may have said on its console why. */
static void add_console(const struct aws_work *w, struct driver_row *row, const struct instance *it)
{
	bool silent = row->incarnation > 0 && row->heard_ms == 0;
	char text[EC2_CONSOLE];

	if (row->outcome == OUTCOME_DONE && row->overdue) {
		row->outcome = OUTCOME_HELD;
		ec2_console(w, row->id, text);
		err_set(&row->err, ERR_TIMEOUT, "%s", text);
	} else if (row->ended && silent) {
		ec2_console(w, row->id, text);
		if (text[0])
			err_set(&row->err, row->err.kind, "instance %s is %s; console: %s", it->id,
				it->state, text);
	}
}

static void do_observe(struct aws_work *w, struct driver_row *rows, size_t n, struct instances *l,
		       struct aws_answer *ans)
{
	struct driver_row **all = pointers(w->a, rows, n);
	struct err err = {0};

	if (describe_ids(w, all, n, l, ans, &err) < 0) {
		fail_all(rows, n, OUTCOME_UNSURE, &err);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct instance *it = by_id(l, rows[i].id);

		rows[i].outcome = it ? observed(&rows[i], it) : aws_kind_absent(&rows[i]);
		if (it)
			add_console(w, &rows[i], it);
	}
}

/* ---- the end of instances ---- */

static void take_changes(const struct aws_answer *ans, struct driver_row *row)
{
	for (const struct xml *x = xml_at(ans->root, "instancesSet/item"); x; x = xml_next(x)) {
		const char *state = xml_text(x, "currentState/name");

		if (strcmp(xml_text(x, "instanceId"), row->id) != 0)
			continue;
		row->outcome = strcmp(state, "terminated") == 0 ? OUTCOME_DONE : OUTCOME_HELD;
		if (row->outcome == OUTCOME_HELD)
			err_set(&row->err, ERR_UNAVAILABLE, "instance %s is %s", row->id, state);
		return;
	}
	row->outcome = OUTCOME_UNSURE;
	err_set(&row->err, ERR_UNAVAILABLE, "EC2 did not say what became of %s", row->id);
}

static int terminate(const struct aws_work *w, struct driver_row *const *rows, size_t n,
		     struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "TerminateInstances");
	for (size_t i = 0; i < n; i++)
		aws_param(&r, rows[i]->id, "InstanceId.%zu", i + 1);
	if (aws_kind_call(w, &r, ans, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		take_changes(ans, rows[i]);
	return 0;
}

/* One id that EC2 does not take fails the whole call: then each is asked for alone. */
static void terminate_all(const struct aws_work *w, struct driver_row *const *rows, size_t n,
			  struct aws_answer *ans)
{
	struct err err = {0};

	if (n == 0 || terminate(w, rows, n, ans, &err) == 0)
		return;
	bool singly = n > 1 && ans->refused && err.kind != ERR_THROTTLED;

	for (size_t i = 0; i < n; i++) {
		if (singly && terminate(w, &rows[i], 1, ans, &rows[i]->err) == 0)
			continue;
		if (!singly)
			rows[i]->err = err;
		rows[i]->outcome = aws_kind_failed(AWS_DESTROY, ans, rows[i]);
	}
}

/* True: the instance is to be terminated; false: row->outcome is set. */
static bool is_to_end(struct driver_row *row, const struct instance *it)
{
	if (!it)
		return true;
	switch (life_of(it)) {
	case ENDED:
		row->outcome = OUTCOME_DONE;
		return false;
	case ENDING:
		row->outcome = answer(row, it, OUTCOME_HELD);
		return false;
	case ALIVE:
	case STOPPED:
		break;
	}
	if (!it->ours)
		row->outcome = aws_kind_foreign(row, row->id);
	return it->ours;
}

/* Looks once for the instances and terminates those that are found. */
static void destroy_seen(const struct aws_work *w, struct driver_row *const *rows, size_t n,
			 struct instances *l, struct aws_answer *ans)
{
	struct driver_row **to_end = arena_array(w->a, struct driver_row *, n);
	struct err err = {0};
	size_t k = 0;

	l->n = 0;
	if (describe_ids(w, rows, n, l, ans, &err) < 0) {
		for (size_t i = 0; i < n; i++) {
			rows[i]->err = err;
			rows[i]->outcome = aws_kind_failed(AWS_DESTROY, ans, rows[i]);
		}
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (is_to_end(rows[i], by_id(l, rows[i]->id)))
			to_end[k++] = rows[i];
	terminate_all(w, to_end, k, ans);
}

/* Moves the rows whose instance was not found to the front; returns their number. */
static size_t keep_absent(struct driver_row **rows, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i]->outcome == OUTCOME_ABSENT)
			rows[k++] = rows[i];
	return k;
}

/*
 * A row without an id is looked for first; if it is not found, that is the answer.  An instance that
 * was just made may not be known everywhere: one that is not there is looked for again for some
 * seconds, so that a run which is killed at its beginning does not wait for the core's next look.
 */
static void do_destroy(struct aws_work *w, struct driver_row *rows, size_t n, struct instances *l,
		       struct aws_answer *ans)
{
	struct driver_row **left = pointers(w->a, rows, n);
	bool missing = false;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		missing |= !rows[i].id[0];
	if (missing)
		look_for(w, rows, n, l, ans);
	for (size_t i = 0; i < n; i++)
		if (rows[i].id[0])
			left[k++] = &rows[i];
	for (int tries = 0; k > 0 && (tries == 0 || aws_nap(&w->d, TRY_MS, NULL) == 0);) {
		destroy_seen(w, left, k, l, ans);
		k = ++tries < MOST_TRIES ? keep_absent(left, k) : 0;
	}
}

static void create_many(struct driver_row *rows, size_t n)
{
	ask(rows, n, AWS_CREATE, do_create);
}

static void find_many(struct driver_row *rows, size_t n)
{
	ask(rows, n, AWS_FIND, look_for);
}

static void observe_many(struct driver_row *rows, size_t n)
{
	ask(rows, n, AWS_OBSERVE, do_observe);
}

static void destroy_many(struct driver_row *rows, size_t n)
{
	ask(rows, n, AWS_DESTROY, do_destroy);
}

const struct driver ec2_instance_driver = {
	.kind = "ec2.instance",
	.pool = "aws",
	.render = ec2_render,
	.create_many = create_many,
	.find_many = find_many,
	.observe_many = observe_many,
	.extend_many = ec2_extend_many,
	.destroy_many = destroy_many,
};
