/* /metrics: the text format of Prometheus, version 0.0.4. */
#include "master/api/api.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "core/cost.h"
#include "master/api/sse.h"
#include "master/clock.h"
#include "master/live_run.h"

#define TYPE "text/plain; version=0.0.4; charset=utf-8"
#define MAX_BYTES (32u << 20)
#define MICRO 1e6

static void family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: any UTF-8, with backslash, quote and newline escaped. */
static void label(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "%s=\"", name);
	for (size_t i = 0; i < value.n; i++) {
		char ch = value.p[i];
		if (ch == '\\' || ch == '"')
			buf_addc(out, '\\');
		if (ch == '\n')
			buf_addz(out, "\\n");
		else
			buf_addc(out, ch);
	}
	buf_addc(out, '"');
}

static void number(struct buf *out, double v)
{
	if (isnan(v))
		buf_addz(out, " NaN\n");
	else if (isinf(v))
		buf_addz(out, v < 0 ? " -Inf\n" : " +Inf\n");
	else
		buf_printf(out, " %.17g\n", v);
}

static void single(struct buf *out, const char *name, const char *type, const char *help, double v)
{
	family(out, name, type, help);
	buf_addz(out, name);
	number(out, v);
}

static int put_runs(struct master *m, struct buf *out, struct err *err)
{
	int64_t phases[RUN_PHASES];

	if (store_run_phases(m->store, phases, err) < 0)
		return -1;
	family(out, "regatta_runs", "gauge", "Runs on record, by state.");
	for (int p = 0; p < RUN_PHASES; p++)
		buf_printf(out, "regatta_runs{state=\"%s\"} %" PRId64 "\n",
			   run_phase_name((enum run_phase)p), phases[p]);
	return 0;
}

static void put_nodes(const struct master *m, struct buf *out)
{
	int64_t counts[NODE_STATES] = {0};
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;
		for (int s = 0; !lr->ended && s < NODE_STATES; s++)
			counts[s] += lr->core->node_count[s];
	}
	family(out, "regatta_nodes", "gauge", "Nodes of the active runs, by state.");
	for (int s = 0; s < NODE_STATES; s++)
		buf_printf(out, "regatta_nodes{state=\"%s\"} %" PRId64 "\n",
			   node_state_name((enum node_state)s), counts[s]);
}

/* Of each active run: its nodes by state, and what its machines have cost. */
static void put_each_run(const struct master *m, struct buf *out)
{
	struct str id;
	void *value;

	family(out, "regatta_run_nodes", "gauge", "Nodes of an active run, by state.");
	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;

		for (int s = 0; !lr->ended && s < NODE_STATES; s++) {
			if (lr->core->node_count[s] == 0)
				continue;
			buf_addz(out, "regatta_run_nodes{");
			label(out, "run", id);
			buf_printf(out, ",state=\"%s\"} %d\n", node_state_name((enum node_state)s),
				   (int)lr->core->node_count[s]);
		}
	}
	family(out, "regatta_run_cost_usd", "gauge",
	       "What the machines of an active run have cost.");
	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;

		if (lr->ended || !lr->plan.prices_as_of)
			continue;
		buf_addz(out, "regatta_run_cost_usd{");
		label(out, "run", id);
		buf_addc(out, '}');
		number(out, (double)core_cost(lr->core, master_now(m)) / MICRO);
	}
}

static void put_series(const struct live_run *lr, bool host, const char *family_name,
		       struct buf *out)
{
	for (int i = 0; i < lr->plan.crew.n; i++) {
		for (size_t k = 0; k < lr->nodes[i].series.n; k++) {
			const struct live_series *ls = lr->nodes[i].series.v[k];
			if (ls->host != host || !ls->row.count)
				continue;
			buf_printf(out, "%s{", family_name);
			label(out, "run", str_from(lr->row.id));
			buf_addc(out, ',');
			label(out, "node", str_from(lr->plan.crew.members[i].name));
			buf_addc(out, ',');
			label(out, "metric", str_from(ls->row.name));
			buf_addc(out, '}');
			number(out, ls->row.last);
		}
	}
}

static void put_active(const struct master *m, bool host, const char *name, const char *help,
		       struct buf *out)
{
	struct str id;
	void *value;

	family(out, name, "gauge", help);
	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;
		if (!lr->ended)
			put_series(lr, host, name, out);
	}
}

int api_prometheus(struct api_call *c, struct err *err)
{
	struct master *m = c->m;
	struct buf out;

	buf_init(&out, MAX_BYTES);
	family(&out, "regatta_build_info", "gauge", "The version of this master; always 1.");
	buf_addz(&out, "regatta_build_info{version=\"" REGATTA_VERSION "\"} 1\n");
	single(&out, "regatta_start_time_seconds", "gauge",
	       "When this master started, in Unix time.", (double)m->started_ms / 1000);
	if (put_runs(m, &out, err) < 0) {
		buf_release(&out);
		return -1;
	}
	put_nodes(m, &out);
	put_each_run(m, &out);
	family(&out, "regatta_http_answers_total", "counter",
	       "Answers of the API, by class of status.");
	for (int i = 1; i <= 5; i++)
		buf_printf(&out, "regatta_http_answers_total{code=\"%dxx\"} %" PRIu64 "\n", i,
			   http_server_answers(m->http, i));
	single(&out, "regatta_http_connections", "gauge", "Open connections of the API.",
	       http_server_connections(m->http));
	single(&out, "regatta_event_viewers", "gauge", "Open event streams of all runs.",
	       sse_viewers(m->sse));
	single(&out, "regatta_log_bytes_total", "counter",
	       "Bytes of job output stored by this master.", (double)m->log_bytes);
	single(&out, "regatta_samples_total", "counter",
	       "Samples of metrics stored by this master.", (double)m->samples);
	put_active(m, false, "regatta_metric", "Last value of each metric of the active runs.",
		   &out);
	put_active(m, true, "regatta_host_metric", "Last sample of the nodes of the active runs.",
		   &out);
	if (out.overflow)
		err_set(err, ERR_QUOTA, "too many series for one answer");
	else
		http_reply(c->x, 200, TYPE, buf_str(&out));
	int rc = out.overflow ? -1 : 0;
	buf_release(&out);
	return rc;
}
