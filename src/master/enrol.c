#include "master/enrol.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hex.h"
#include "core/core.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "net/digest.h"
#include "plan/plan.h"

#define MAC_HEX (2 * SHA256_BYTES)
#define ANSWER_MAX 1024
/* A group whose run has no limit makes machines for as long as it lives, all with its first token. */
#define CARRIER_MS (30 * INT64_C(86400000))

/* What an enrol token says: "BATCH.USES.EXPIRES_S.MAC". */
struct enrol_grant {
	int64_t batch, uses, expires_s;
	const char *mac;
};

/* The secret at both ends, so that nothing can be added to a text that was signed. */
static void sign(const struct live_run *lr, const char *role, const struct enrol_grant *t,
		 char out[static MAC_HEX + 1])
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 *s = sha256_new();
	char text[96];
	int n = snprintf(text, sizeof(text), "/%" PRId64 ".%" PRId64 ".%" PRId64 "/", t->batch,
			 t->uses, t->expires_s);

	sha256_add(s, lr->row.secret, strlen(lr->row.secret));
	sha256_add(s, "/enrol/", 7);
	sha256_add(s, role, strlen(role));
	sha256_add(s, text, (size_t)n);
	sha256_add(s, lr->row.secret, strlen(lr->row.secret));
	sha256_end(s, digest);
	hex_encode(digest, sizeof(digest), out);
}

/* Of the nodes that it carries; NULL: it carries none. */
static const char *role_of(const struct live_run *lr, int index)
{
	const struct crew *crew = &lr->plan.crew;
	int rank = lr->plan.resources[index].node;

	for (int i = 0; lr->plan.resources[index].carries_many && rank < 0 && i < crew->n; i++)
		if (lr->plan.resource_of[i] == index)
			rank = i;
	return rank < 0 ? NULL : crew->roles[crew->members[rank].role].name;
}

static int64_t life_ms(const struct live_run *lr, int index)
{
	bool lasts = lr->plan.resources[index].carries_many && !lr->job->max_runtime_ms;

	return lasts ? CARRIER_MS : plan_lifetime_ms(&lr->plan);
}

void enrol_token(const struct live_run *lr, int index, char out[static ENROL_TOKEN_MAX])
{
	const char *role = role_of(lr, index);
	struct enrol_grant t = {.batch = lr->core->resources[index].batch,
				.uses = core_enrol_uses(lr->core, index)};
	char mac[MAC_HEX + 1];

	out[0] = '\0';
	if (!role)
		return;
	t.expires_s = (clock_wall_ms() + life_ms(lr, index)) / 1000;
	sign(lr, role, &t, mac);
	snprintf(out, ENROL_TOKEN_MAX, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%s", t.batch, t.uses,
		 t.expires_s, mac);
}

static bool take_number(struct str *rest, int64_t max, int64_t *ret)
{
	return str_to_i64(str_cut(rest, '.'), ret) && *ret >= 0 && *ret <= max;
}

static bool token_read(const char *text, struct enrol_grant *ret)
{
	struct str rest = str_from(text);

	if (!take_number(&rest, INT_MAX, &ret->batch) || !take_number(&rest, INT_MAX, &ret->uses) ||
	    !take_number(&rest, INT64_MAX / 1000, &ret->expires_s) || rest.n != MAC_HEX)
		return false;
	ret->mac = rest.p;
	return true;
}

/* One answer for all: whoever has no token of a run does not learn whether the run exists. */
static struct live_run *run_of(const struct master *m, const struct message_enrol *e,
			       struct enrol_grant *ret, struct err *err)
{
	struct live_run *lr = e->run[0] ? map_get(m->runs, str_from(e->run)) : NULL;
	char mac[MAC_HEX + 1];

	if (lr && token_read(e->token, ret)) {
		sign(lr, e->role, ret, mac);
		if (digest_equal(ret->mac, mac, MAC_HEX))
			return lr;
	}
	err_set(err, ERR_DENIED, "no such run or role here, or not with this enrol token");
	return NULL;
}

static int check_time(struct live_run *lr, const struct message_enrol *e,
		      const struct enrol_grant *t, struct err *err)
{
	int64_t late_ms = clock_wall_ms() - t->expires_s * 1000;
	char span[32];

	if (late_ms < 0)
		return 0;
	clock_format_span(late_ms, span);
	run_note(lr, "enrol", -1, "%s: its enrol token has expired", e->identity);
	return err_set(err, ERR_DENIED, "the enrol token expired %s ago", span);
}

static int role_index(const struct crew *crew, const char *name)
{
	for (int i = 0; i < crew->nroles; i++)
		if (!strcmp(crew->roles[i].name, name))
			return i;
	return -1;
}

int enrol_ask(struct master *m, uint64_t conn, struct str payload, struct arena *mem,
	      struct err *err)
{
	struct message_enrol e;
	struct enrol_grant t;

	if (message_enrol_get(payload, mem, &e, err) < 0)
		return -1;
	struct live_run *lr = run_of(m, &e, &t, err);

	if (!lr)
		return -1;
	if (lr->unreadable)
		return err_set(err, ERR_UNAVAILABLE,
			       "this master cannot read the run: come again later");
	if (check_time(lr, &e, &t, err) < 0)
		return -1;
	struct event ev = {.kind = EV_ENROL,
			   .index = role_index(&lr->plan.crew, e.role),
			   .batch = (int)t.batch,
			   .want = (int)t.uses,
			   .place = e.place,
			   .conn = conn};

	snprintf(ev.text, sizeof(ev.text), "%s", e.identity);
	run_event(lr, &ev);
	return 0;
}

void enrol_answer(struct live_run *lr, const struct effect *fx)
{
	char token[65];
	struct buf text;

	if (enrolled_kind(fx->enrolled) != ERR_NONE) {
		agent_refuse_stranger(lr->m, fx->conn, enrolled_kind(fx->enrolled),
				      enrolled_text(fx->enrolled));
		return;
	}
	const char *node = lr->plan.crew.members[fx->index].name;

	node_token(lr, node, fx->incarnation, token);
	buf_init(&text, ANSWER_MAX);
	message_enrolled_put(&(struct message_enrolled){node, token, fx->incarnation,
							fx->enrolled == ENROLLED_AGAIN},
			     &text);
	agent_tell_stranger(lr->m, fx->conn, FRAME_ENROLLED, buf_str(&text));
	buf_release(&text);
}

void enrol_record(struct live_run *lr, const struct event *ev, const struct effect *fx)
{
	if (fx->enrolled == ENROLLED_AGAIN || fx->enrolled == ENROLLED_LATER)
		return;
	run_note(lr, fx->enrolled == ENROLLED_SURPLUS ? "surplus" : event_name(ev), fx->index,
		 "%s: %s", ev->text, enrolled_text(fx->enrolled));
}
