/*
 * MLflow's REST API: a run of an experiment, with metrics, parameters and tags.
 *
 * The tag regatta.run finds the run again.  Of each metric the server is asked how many values it has,
 * and the first so many are not sent: exporting again, also of a run that has gone on or after an export
 * that failed, adds only what is missing.
 */
#include "cli/command/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/map.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/url.h"
#include "net/http_client.h"
#include "fmt/http_url.h"

#define CALL_MS 60000
#define ANSWER_MAX (32u << 20)
#define BODY_MAX (4u << 20)
#define BATCH_METRICS 1000 /* in one call: the limit of the API */
#define BATCH_PARAMS 100
#define PAGE_VALUES 20000 /* of a history in one answer; the API takes 25000 */
#define PAGES_MAX 10000
#define API_PREFIX "/api/2.0/mlflow/"

struct mlflow {
	struct export_run *x;
	struct http_client *http;
	char *prefix; /* path of the URL, without its last '/' */
	const char *run_id;
	bool known;	  /* the run was there before */
	bool one_node;	  /* metrics need no node in their names */
	struct buf batch; /* of metrics, "{...},{...}" */
	size_t n;	  /* in it */
	char *key;	  /* of the series that is being sent */
	uint64_t has;	  /* values of it on the server */
};

/* ---- calls ---- */

static const char *variable(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	return value ? value : getenv(upper);
}

static int open_server(struct mlflow *m, struct err *err)
{
	const char *token = getenv("MLFLOW_TRACKING_TOKEN");
	struct http_url u;

	if (http_url_parse(&u, str_from(m->x->dest), false, err) < 0)
		return -1;
	while (u.path.n && u.path.p[u.path.n - 1] == '/')
		u.path.n--;
	m->prefix = xstrndup(u.path.n ? u.path.p : "", u.path.n);
	const struct http_target there = {
		.host = u.host,
		.port = u.port,
		.tls = {.mode = u.tls ? TLS_CA : TLS_OFF},
		.proxy = {.http_proxy = getenv("http_proxy"),
			  .https_proxy = variable("https_proxy", "HTTPS_PROXY"),
			  .no_proxy = variable("no_proxy", "NO_PROXY")},
		.token = token && *token ? token : NULL,
	};

	return http_client_open(&there, CALL_MS, &m->http, err);
}

static enum err_kind kind_of(int status)
{
	if (status == 401 || status == 403)
		return ERR_DENIED;
	if (status == 404)
		return ERR_NOT_FOUND;
	return status >= 500 || status == 429 ? ERR_UNAVAILABLE : ERR_INVALID;
}

/* body.p == NULL: a GET.  The answer is in the arena of the export. */
static int call(struct mlflow *m, const char *what, struct str body, struct doc **ret,
		struct err *err)
{
	CLEANUP(freep) char *path = xasprintf("%s" API_PREFIX "%s", m->prefix, what);
	CLEANUP(http_answer_release) struct http_answer answer = {0};
	struct doc *d = NULL;
	size_t name = strcspn(what, "?");

	http_answer_init(&answer, ANSWER_MAX);
	if (http_call(m->http, body.p ? "POST" : "GET", path, body, "application/json", CALL_MS,
		      &answer, err) < 0)
		return err_wrap(err, "%.*s", (int)name, what);
	bool is_json =
		json_parse(buf_str(&answer.body), m->x->a, &d, NULL) == 0 && d->type == DOC_TABLE;
	if (answer.status < 200 || answer.status > 299) {
		struct str said = is_json ? doc_str(d, "message", STR("")) : STR("");

		return err_set(err, kind_of(answer.status), "%.*s: the server answers %d%s%.*s",
			       (int)name, what, answer.status, said.n ? ": " : "",
			       said.n < 120 ? (int)said.n : 120, said.p);
	}
	if (!is_json)
		return err_set(err, ERR_PROTOCOL,
			       "%.*s: the answer is not JSON: is '%.100s' MLflow?", (int)name, what,
			       m->x->dest);
	if (ret)
		*ret = d;
	return 0;
}

static struct str call_body(struct jsonw *w, const struct buf *b)
{
	jsonw_close(w);
	return buf_str(b);
}

static void body_begin(struct jsonw *w, struct buf *b)
{
	buf_init(b, BODY_MAX);
	jsonw_init(w, b);
	jsonw_open(w, '{');
}

/* ---- experiment and run ---- */

static int find_experiment(struct mlflow *m, struct str name, const char **ret_id, struct err *err)
{
	CLEANUP(buf_release) struct buf path = {0}, body = {0};
	struct doc *d = NULL;
	struct str id;
	struct jsonw w;

	buf_init(&path, 8192);
	buf_addz(&path, "experiments/get-by-name?experiment_name=");
	url_encode(&path, name);
	if (call(m, buf_str(&path).p, (struct str){0}, &d, err) == 0) {
		id = doc_str(doc_table(d, "experiment"), "experiment_id", STR(""));
	} else {
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		body_begin(&w, &body);
		jsonw_kstr(&w, "name", name);
		if (call(m, "experiments/create", call_body(&w, &body), &d, err) < 0)
			return -1;
		id = doc_str(d, "experiment_id", STR(""));
	}
	if (!id.n)
		return err_set(err, ERR_PROTOCOL, "the server names no experiment");
	*ret_id = arena_str(m->x->a, id).p;
	return 0;
}

static int find_run(struct mlflow *m, const char *experiment, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct doc *d = NULL;
	struct jsonw w;

	body_begin(&w, &body);
	jsonw_key(&w, "experiment_ids");
	jsonw_open(&w, '[');
	jsonw_z(&w, experiment);
	jsonw_close(&w);
	/* Ids have letters, digits and '-' only. */
	jsonw_kz(&w, "filter", arena_printf(m->x->a, "tags.`regatta.run` = '%s'", m->x->id));
	jsonw_kint(&w, "max_results", 1);
	if (call(m, "runs/search", call_body(&w, &body), &d, err) < 0)
		return -1;
	const struct doc *runs = doc_array(d, "runs");

	if (!runs || runs->array.n == 0)
		return 0;
	const struct doc *info = doc_table(runs->array.v[0], "info");

	m->run_id = arena_str(m->x->a, doc_str(info, "run_id", STR(""))).p;
	m->known = true;
	return 0;
}

static void put_pair(struct jsonw *w, const char *key, struct str value)
{
	if (!value.n)
		return;
	jsonw_open(w, '{');
	jsonw_kz(w, "key", key);
	jsonw_kstr(w, "value", value);
	jsonw_close(w);
}

static void put_tags(const struct export_run *x, struct jsonw *w)
{
	const struct doc *source = doc_table(x->run, "source");

	jsonw_key(w, "tags");
	jsonw_open(w, '[');
	put_pair(w, "regatta.run", str_from(x->id));
	put_pair(w, "regatta.engine", doc_str(x->run, "engine", STR("")));
	put_pair(w, "regatta.strategy", doc_str(x->run, "strategy", STR("")));
	put_pair(w, "mlflow.source.name", doc_str(x->run, "name", STR("")));
	put_pair(w, "mlflow.source.git.commit", doc_str(source, "revision", STR("")));
	put_pair(w, "mlflow.source.git.branch", doc_str(source, "branch", STR("")));
	jsonw_close(w);
}

static int create_run(struct mlflow *m, const char *experiment, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct doc *d = NULL;
	struct jsonw w;

	body_begin(&w, &body);
	jsonw_kz(&w, "experiment_id", experiment);
	jsonw_kz(&w, "run_name", m->x->id);
	jsonw_kint(&w, "start_time", doc_int(m->x->run, "created_ms", 0));
	put_tags(m->x, &w);
	if (call(m, "runs/create", call_body(&w, &body), &d, err) < 0)
		return -1;
	const struct doc *info = doc_table(doc_table(d, "run"), "info");

	m->run_id = arena_str(m->x->a, doc_str(info, "run_id", STR(""))).p;
	return *m->run_id ? 0 : err_set(err, ERR_PROTOCOL, "the server names no run");
}

/* How the run stands, with its end. */
static int update_run(struct mlflow *m, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct str verdict = doc_str(m->x->run, "verdict", STR(""));
	int64_t ended_ms = doc_int(m->x->run, "ended_ms", 0);
	struct jsonw w;

	body_begin(&w, &body);
	jsonw_kz(&w, "run_id", m->run_id);
	jsonw_kz(&w, "status",
		 !ended_ms			? "RUNNING"
		 : str_is(verdict, "succeeded") ? "FINISHED"
		 : str_is(verdict, "cancelled") ? "KILLED"
						: "FAILED");
	if (ended_ms)
		jsonw_kint(&w, "end_time", ended_ms);
	return call(m, "runs/update", call_body(&w, &body), NULL, err);
}

/* ---- parameters and metrics ---- */

static int log_params(struct mlflow *m, struct err *err)
{
	const struct doc *params = doc_table(m->x->run, "params");
	size_t i = 0;

	while (params && i < params->table.n) {
		CLEANUP(buf_release) struct buf body = {0};
		struct jsonw w;

		body_begin(&w, &body);
		jsonw_kz(&w, "run_id", m->run_id);
		jsonw_key(&w, "params");
		jsonw_open(&w, '[');
		for (size_t n = 0; n < BATCH_PARAMS && i < params->table.n; n++, i++) {
			const struct doc_entry *e = &params->table.v[i];
			struct str text = e->value->type == DOC_STRING
						  ? e->value->s
						  : str_from(doc_json_text(m->x->a, e->value));

			put_pair(&w, arena_str(m->x->a, e->key).p, text);
		}
		jsonw_close(&w);
		if (call(m, "runs/log-batch", call_body(&w, &body), NULL, err) < 0)
			return -1;
	}
	return 0;
}

static int send_batch(struct mlflow *m, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct jsonw w;

	if (m->n == 0)
		return 0;
	body_begin(&w, &body);
	jsonw_kz(&w, "run_id", m->run_id);
	jsonw_key(&w, "metrics");
	jsonw_open(&w, '[');
	jsonw_raw(&w, buf_str(&m->batch));
	jsonw_close(&w);
	buf_reset(&m->batch);
	m->n = 0;
	return call(m, "runs/log-batch", call_body(&w, &body), NULL, err);
}

/* How many values of a metric the server has. */
static int count_values(struct mlflow *m, const char *key, uint64_t *ret, struct err *err)
{
	struct str token = {0};

	*ret = 0;
	for (int page = 0; page < PAGES_MAX; page++) {
		CLEANUP(buf_release) struct buf path = {0};
		struct doc *d = NULL;

		buf_init(&path, 16384);
		buf_printf(&path,
			   "metrics/get-history?run_id=%s&max_results=%d&metric_key=", m->run_id,
			   PAGE_VALUES);
		url_encode(&path, str_from(key));
		if (token.n) {
			buf_addz(&path, "&page_token=");
			url_encode(&path, token);
		}
		if (call(m, buf_str(&path).p, (struct str){0}, &d, err) < 0)
			return -1;
		const struct doc *values = doc_array(d, "metrics");

		*ret += values ? values->array.n : 0;
		token = doc_str(d, "next_page_token", STR(""));
		if (!token.n)
			return 0;
	}
	return err_set(err, ERR_CAPACITY, "the history of '%.80s' does not end", key);
}

static int begin_series(struct mlflow *m, const struct export_sample *s, struct err *err)
{
	free(m->key);
	m->key = m->one_node ? xasprintf("%.*s", STR_ARG(s->name))
			     : xasprintf("%.*s/%.*s", STR_ARG(s->node), STR_ARG(s->name));
	m->has = 0;
	return m->known ? count_values(m, m->key, &m->has, err) : 0;
}

static int add_sample(void *ctx, const struct export_sample *s, struct err *err)
{
	struct mlflow *m = ctx;
	struct jsonw w;

	if (s->index == 0 && begin_series(m, s, err) < 0)
		return -1;
	if (s->index < m->has) {
		m->x->there++;
		return 0;
	}
	if (m->n)
		buf_addc(&m->batch, ',');
	jsonw_init(&w, &m->batch);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "key", m->key);
	jsonw_kdouble(&w, "value", s->value);
	jsonw_kint(&w, "timestamp", s->time_ms);
	jsonw_kint(&w, "step", s->step >= 0 ? s->step : (int64_t)s->index);
	jsonw_close(&w);
	m->x->samples++;
	return ++m->n >= BATCH_METRICS ? send_batch(m, err) : 0;
}

static int send_run(struct mlflow *m, struct err *err)
{
	struct str name =
		m->x->name ? str_from(m->x->name) : doc_str(m->x->run, "name", STR("regatta"));
	const char *experiment;

	if (find_experiment(m, name, &experiment, err) < 0 || find_run(m, experiment, err) < 0 ||
	    (!m->known && create_run(m, experiment, err) < 0) || log_params(m, err) < 0 ||
	    export_each(m->x, add_sample, m, err) < 0 || send_batch(m, err) < 0)
		return -1;
	return update_run(m, err);
}

int export_mlflow(struct export_run *x, struct err *err)
{
	struct mlflow m = {.x = x};

	m.one_node = doc_int(doc_table(x->run, "counts"), "nodes", 0) == 1;
	buf_init(&m.batch, BODY_MAX);
	int rc = open_server(&m, err);
	if (rc == 0)
		rc = send_run(&m, err);
	http_client_free(m.http);
	buf_release(&m.batch);
	free(m.prefix);
	free(m.key);
	return rc;
}
