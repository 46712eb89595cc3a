#include "link/message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "link/wire.h"
#include "net/address.h"

#define MAX_PORT 65535
#define MAX_GPUS 65536
#define MAX_PEERS 1024
#define MAX_SHARDS 1000000
#define MAX_INPUTS 1000000
#define MAX_MS (INT64_MAX / 2) /* a duration that can be added to any clock */
#define MAX_CODE 255
#define MAX_SIGNAL 127

#define MEMBER(s, m) .key = #m, .offset = offsetof(struct s, m), .size = sizeof(((struct s *)0)->m)
#define COUNT(s, m) .count_offset = offsetof(struct s, m)
#define TABLE(n, s, ...)                                                                           \
	static const struct wire_table n##_table = {#n, sizeof(struct s),                          \
						    (const struct wire_key[]){__VA_ARGS__, {0}}}
/* message_X_put and message_X_get of a message that needs no checks beyond its table. */
#define MESSAGE(n, s)                                                                              \
	void message_##n##_put(const struct s *m, struct buf *out)                                 \
	{                                                                                          \
		wire_put(&n##_table, m, out);                                                      \
	}                                                                                          \
	int message_##n##_get(struct str json, struct arena *a, struct s *ret, struct err *err)    \
	{                                                                                          \
		return wire_get(&n##_table, json, a, ret, err);                                    \
	}

/* ---- exit ---- */

TABLE(gap, gap, {MEMBER(gap, stream), .type = WIRE_CHOICE, .choices = stream_names},
      {MEMBER(gap, offset), .type = WIRE_INT}, {MEMBER(gap, bytes), .type = WIRE_INT, .min = 1});

TABLE(process, process_end,
      {MEMBER(process_end, code), .type = WIRE_INT, .min = -1, .max = MAX_CODE},
      {MEMBER(process_end, signal), .type = WIRE_INT, .max = MAX_SIGNAL});

TABLE(exit, exit_report, {MEMBER(exit_report, attempt), .type = WIRE_INT, .min = 1},
      {MEMBER(exit_report, code), .type = WIRE_INT, .min = -1, .max = MAX_CODE},
      {MEMBER(exit_report, signal), .type = WIRE_INT, .max = MAX_SIGNAL},
      {MEMBER(exit_report, oom), .type = WIRE_BOOL}, {MEMBER(exit_report, kind), .type = WIRE_KIND},
      {MEMBER(exit_report, reason), .type = WIRE_CHARS},
      {MEMBER(exit_report, streams), .type = WIRE_OFFSETS},
      {MEMBER(exit_report, gaps), COUNT(exit_report, ngaps), .type = WIRE_ARRAY, .sub = &gap_table,
       .max = MESSAGE_MAX_GAPS, .optional = true},
      {MEMBER(exit_report, processes), COUNT(exit_report, nprocesses), .type = WIRE_ARRAY,
       .sub = &process_table, .max = PROCESSES_MAX, .optional = true},
      {MEMBER(exit_report, tail), .type = WIRE_TEXT, .optional = true});
MESSAGE(exit, exit_report)

void exit_add_reason(struct exit_report *e, const char *text)
{
	size_t n = strlen(e->reason), room = sizeof(e->reason) - n - 1;

	snprintf(e->reason + n, room + 1, "%s%.*s", n ? "; " : "", (int)room, text);
}

/* ---- hello ---- */

static const char *const holds_names[] = {[HOLDS_NOTHING] = "nothing",
					  [HOLDS_STARTED] = "started",
					  [HOLDS_OTHER_BOOT] = "other_boot",
					  NULL};

TABLE(hello, message_hello, {MEMBER(message_hello, proto), .type = WIRE_INT},
      {MEMBER(message_hello, run), .type = WIRE_TEXT},
      {MEMBER(message_hello, node), .type = WIRE_TEXT},
      {MEMBER(message_hello, token), .type = WIRE_TEXT},
      {MEMBER(message_hello, boot_id), .type = WIRE_TEXT},
      {MEMBER(message_hello, pid), .type = WIRE_INT, .min = 1},
      {MEMBER(message_hello, version), .type = WIRE_TEXT},
      {MEMBER(message_hello, attempt), .type = WIRE_INT},
      {MEMBER(message_hello, holds), .type = WIRE_CHOICE, .choices = holds_names},
      {MEMBER(message_hello, streams), .type = WIRE_OFFSETS},
      {MEMBER(message_hello, exit), .type = WIRE_TABLE, .sub = &exit_table, .optional = true},
      {MEMBER(message_hello, templates), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_hello, address), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_hello, interface), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_hello, incarnation), .type = WIRE_INT, .optional = true},
      {MEMBER(message_hello, exec), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_hello, inspect), .type = WIRE_BOOL, .optional = true});

bool message_interface_ok(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-";
	size_t n = strlen(name);

	return n > 0 && n <= 15 && strspn(name, allowed) == n;
}

void message_hello_put(const struct message_hello *m, struct buf *out)
{
	wire_put(&hello_table, m, out);
}

/* Checked before any other key: another version may have other keys. */
static int check_proto(const struct doc *d, struct err *err)
{
	const struct doc *proto = doc_get(d, "proto");

	if (proto && proto->type == DOC_INT && proto->i != LINK_PROTO)
		return err_set(
			err, ERR_UNAVAILABLE,
			"protocol version not supported: this master speaks version %d; install its "
			"version of regatta ('regatta version')",
			LINK_PROTO);
	return 0;
}

int message_hello_get(struct str json, struct arena *a, struct message_hello *ret, struct err *err)
{
	const struct doc *d;

	if (wire_parse(&hello_table, json, a, &d, err) < 0 || check_proto(d, err) < 0 ||
	    wire_read(&hello_table, d, a, ret, err) < 0)
		return -1;
	struct address ip;

	if (ret->address && !address_ip(&ip, ret->address, 0))
		return err_set(err, ERR_PROTOCOL, "hello: key 'address' is not a numeric address");
	if (ret->interface && !message_interface_ok(ret->interface))
		return err_set(err, ERR_PROTOCOL,
			       "hello: key 'interface' is not the name of an interface");
	return 0;
}

/* ---- other messages of the agent ---- */

TABLE(facts, message_facts,
      {MEMBER(message_facts, port), .type = WIRE_INT, .min = 1, .max = MAX_PORT},
      {MEMBER(message_facts, mtu), .type = WIRE_INT},
      {MEMBER(message_facts, shm), .type = WIRE_INT, .min = -1},
      {MEMBER(message_facts, files), .type = WIRE_INT},
      {MEMBER(message_facts, time_ms), .type = WIRE_INT});

TABLE(ready, message_ready, {MEMBER(message_ready, ok), .type = WIRE_BOOL},
      {MEMBER(message_ready, kind), .type = WIRE_KIND, .optional = true},
      {MEMBER(message_ready, reason), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_ready, preflight), .type = WIRE_TABLE, .sub = &facts_table,
       .optional = true});

void message_ready_put(const struct message_ready *m, struct buf *out)
{
	wire_put(&ready_table, m, out);
}

int message_ready_get(struct str json, struct arena *a, struct message_ready *ret, struct err *err)
{
	if (wire_get(&ready_table, json, a, ret, err) < 0)
		return -1;
	if (!ret->ok && ret->kind == ERR_NONE)
		return err_set(err, ERR_PROTOCOL, "ready: key 'kind' is missing");
	if (!ret->ok && !ret->reason)
		return err_set(err, ERR_PROTOCOL, "ready: key 'reason' is missing");
	return 0;
}

TABLE(started, message_started, {MEMBER(message_started, attempt), .type = WIRE_INT, .min = 1},
      {MEMBER(message_started, pid), .type = WIRE_INT});
MESSAGE(started, message_started)

TABLE(serving, message_serving, {MEMBER(message_serving, attempt), .type = WIRE_INT, .min = 1});
MESSAGE(serving, message_serving)

TABLE(preempt, message_preempt, {MEMBER(message_preempt, time_ms), .type = WIRE_INT, .min = 1});
MESSAGE(preempt, message_preempt)

TABLE(inspected, message_inspected, {MEMBER(message_inspected, line), .type = WIRE_TEXT},
      {MEMBER(message_inspected, report), .type = WIRE_TEXT});
MESSAGE(inspected, message_inspected)

TABLE(preflight_done, message_preflight_done,
      {MEMBER(message_preflight_done, round), .type = WIRE_INT, .min = 1},
      {MEMBER(message_preflight_done, failed), .type = WIRE_INT},
      {MEMBER(message_preflight_done, rank), .type = WIRE_INT, .optional = true},
      {MEMBER(message_preflight_done, reached), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_preflight_done, reason), .type = WIRE_TEXT, .optional = true});

void message_preflight_done_put(const struct message_preflight_done *m, struct buf *out)
{
	wire_put(&preflight_done_table, m, out);
}

int message_preflight_done_get(struct str json, struct arena *a, struct message_preflight_done *ret,
			       struct err *err)
{
	if (wire_get(&preflight_done_table, json, a, ret, err) < 0)
		return -1;
	if (ret->failed > 0 && !ret->reason)
		return err_set(err, ERR_PROTOCOL, "preflight_done: key 'reason' is missing");
	return 0;
}

TABLE(collected, message_collected, {MEMBER(message_collected, files), .type = WIRE_INT},
      {MEMBER(message_collected, bytes), .type = WIRE_INT},
      {MEMBER(message_collected, error), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_collected, kind), .type = WIRE_KIND, .optional = true});

void message_collected_put(const struct message_collected *m, struct buf *out)
{
	wire_put(&collected_table, m, out);
}

int message_collected_get(struct str json, struct arena *a, struct message_collected *ret,
			  struct err *err)
{
	if (wire_get(&collected_table, json, a, ret, err) < 0)
		return -1;
	if (ret->kind != ERR_NONE && !ret->error)
		return err_set(err, ERR_PROTOCOL, "collected: key 'error' is missing");
	return 0;
}

/* ---- metrics and samples: encoded as arrays, because objects would be too long ---- */

TABLE(metrics, message_metrics, {MEMBER(message_metrics, from), .type = WIRE_INT},
      {MEMBER(message_metrics, to), .type = WIRE_INT},
      {MEMBER(message_metrics, bad), .type = WIRE_INT});

/* NaN and infinity are written as null. */
static bool number_of(const struct doc *d, double *ret)
{
	*ret = d->type == DOC_FLOAT ? d->f : d->type == DOC_INT ? (double)d->i : (double)NAN;
	return d->type == DOC_FLOAT || d->type == DOC_INT || d->type == DOC_NULL;
}

void message_point_put(const struct message_point *p, struct buf *encoded)
{
	struct jsonw w;

	if (encoded->n > 0)
		buf_addc(encoded, ',');
	jsonw_init(&w, encoded);
	jsonw_open(&w, '[');
	jsonw_str(&w, p->name);
	jsonw_double(&w, p->value);
	jsonw_int(&w, p->step);
	jsonw_int(&w, p->time_ms);
	if (p->total > 0)
		jsonw_int(&w, p->total);
	jsonw_close(&w);
}

void message_metrics_put(const struct message_metrics *m, struct buf *out)
{
	struct buf own;
	struct jsonw w;

	buf_init(&own, FRAME_MAX_PAYLOAD);
	for (size_t i = 0; i < m->nsamples; i++)
		message_point_put(&m->samples[i], &own);
	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	wire_write(&metrics_table, m, &w);
	jsonw_key(&w, "samples");
	jsonw_open(&w, '[');
	jsonw_raw(&w, m->encoded.n > 0 ? m->encoded : buf_str(&own));
	jsonw_close(&w);
	jsonw_close(&w);
	out->overflow |= own.overflow;
	buf_release(&own);
}

static bool point_from(const struct doc *d, struct message_point *ret)
{
	if (d->type != DOC_ARRAY || d->array.n < 4 || d->array.n > 5)
		return false;
	struct doc *const *v = d->array.v;
	bool has_total = d->array.n == 5;

	if (v[0]->type != DOC_STRING || !number_of(v[1], &ret->value) || v[2]->type != DOC_INT ||
	    v[3]->type != DOC_INT || (has_total && v[4]->type != DOC_INT))
		return false;
	ret->name = v[0]->s;
	ret->step = v[2]->i;
	ret->time_ms = v[3]->i;
	ret->total = has_total ? v[4]->i : 0;
	return true;
}

int message_metrics_get(struct str json, struct arena *a, struct message_metrics *ret,
			struct err *err)
{
	const struct doc *d;

	if (wire_parse(&metrics_table, json, a, &d, err) < 0 ||
	    wire_read(&metrics_table, d, a, ret, err) < 0)
		return -1;
	if (ret->to < ret->from)
		return err_set(err, ERR_PROTOCOL, "metrics: key 'to' must not be below 'from'");
	const struct doc *list = doc_array(d, "samples");

	if (!list)
		return err_set(err, ERR_PROTOCOL, "metrics: key 'samples' must be a list");
	ret->nsamples = list->array.n;
	ret->samples = arena_array(a, struct message_point, list->array.n + 1);
	for (size_t i = 0; i < list->array.n; i++)
		if (!point_from(list->array.v[i], &ret->samples[i]))
			return err_set(
				err, ERR_PROTOCOL,
				"metrics: samples[%zu] must be [name, value, step, time, total?]",
				i);
	return 0;
}

TABLE(sample, message_sample, {MEMBER(message_sample, time_ms), .type = WIRE_INT});

void message_sample_put(const struct message_sample *m, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	wire_write(&sample_table, m, &w);
	jsonw_key(&w, "values");
	jsonw_open(&w, '{');
	for (size_t i = 0; i < m->nvalues; i++) {
		jsonw_key_str(&w, m->values[i].name);
		jsonw_double(&w, m->values[i].value);
	}
	jsonw_close(&w);
	jsonw_close(&w);
}

int message_sample_get(struct str json, struct arena *a, struct message_sample *ret,
		       struct err *err)
{
	const struct doc *d;

	if (wire_parse(&sample_table, json, a, &d, err) < 0 ||
	    wire_read(&sample_table, d, a, ret, err) < 0)
		return -1;
	const struct doc *values = doc_table(d, "values");

	if (!values)
		return err_set(err, ERR_PROTOCOL, "sample: key 'values' must be an object");
	ret->nvalues = values->table.n;
	ret->values = arena_array(a, struct message_value, values->table.n + 1);
	for (size_t i = 0; i < values->table.n; i++) {
		ret->values[i].name = values->table.v[i].key;
		if (!number_of(values->table.v[i].value, &ret->values[i].value))
			return err_set(err, ERR_PROTOCOL,
				       "sample: key 'values' must be an object of numbers");
	}
	return 0;
}

/* ---- messages of the master ---- */

TABLE(welcome, message_welcome,
      {MEMBER(message_welcome, lease_ms), .type = WIRE_INT, .max = MAX_MS},
      {MEMBER(message_welcome, lost_ms), .type = WIRE_INT, .max = MAX_MS, .optional = true},
      {MEMBER(message_welcome, acks), .type = WIRE_OFFSETS},
      {MEMBER(message_welcome, scanned), .type = WIRE_OFFSETS});
MESSAGE(welcome, message_welcome)

TABLE(refuse, message_refuse, {MEMBER(message_refuse, kind), .type = WIRE_KIND_OPEN},
      {MEMBER(message_refuse, reason), .type = WIRE_TEXT, .optional = true, .default_text = ""});
MESSAGE(refuse, message_refuse)

#define OPTIONAL_TEXT .type = WIRE_TEXT, .optional = true, .default_text = ""

TABLE(blob, message_blob, {MEMBER(message_blob, sha256), .type = WIRE_TEXT});

TABLE(data, message_data, {MEMBER(message_data, path), .type = WIRE_TEXT},
      {MEMBER(message_data, src), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_data, sha256), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_data, md5), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_data, shard_index), .type = WIRE_INT, .max = MAX_SHARDS, .optional = true},
      {MEMBER(message_data, shard_count), .type = WIRE_INT, .min = 1, .max = MAX_SHARDS,
       .optional = true, .fallback = 1},
      {MEMBER(message_data, blobs), COUNT(message_data, nblobs), .type = WIRE_LIST,
       .sub = &blob_table, .optional = true},
      {MEMBER(message_data, tar), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_data, list), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_data, from), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_data, input), .type = WIRE_INT, .max = MAX_INPUTS, .optional = true},
      {MEMBER(message_data, unpack), .type = WIRE_BOOL, .optional = true});

TABLE(metric, message_metric, {MEMBER(message_metric, name), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_metric, pattern), .type = WIRE_TEXT});

TABLE(port, message_port,
      {MEMBER(message_port, first), .type = WIRE_INT, .min = 1, .max = MAX_PORT},
      {MEMBER(message_port, count), .type = WIRE_INT, .min = 1, .max = PROCESSES_MAX,
       .optional = true, .fallback = 1},
      {MEMBER(message_port, any), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_port, key), .type = WIRE_TEXT});

TABLE(inputs, message_inputs,
      {MEMBER(message_inputs, source), .type = WIRE_TABLE, .sub = &blob_table, .optional = true},
      {MEMBER(message_inputs, data), COUNT(message_inputs, ndata), .type = WIRE_LIST,
       .sub = &data_table, .optional = true},
      {MEMBER(message_inputs, argv0), .type = WIRE_TEXT},
      {MEMBER(message_inputs, path), OPTIONAL_TEXT},
      {MEMBER(message_inputs, address), OPTIONAL_TEXT},
      {MEMBER(message_inputs, port), .type = WIRE_INT, .max = MAX_PORT, .optional = true},
      {MEMBER(message_inputs, ports), COUNT(message_inputs, nports), .type = WIRE_LIST,
       .sub = &port_table, .optional = true},
      {MEMBER(message_inputs, gpus), .type = WIRE_INT, .max = MAX_GPUS, .optional = true},
      {MEMBER(message_inputs, memory), .type = WIRE_INT, .optional = true},
      {MEMBER(message_inputs, metrics), COUNT(message_inputs, nmetrics), .type = WIRE_LIST,
       .sub = &metric_table, .optional = true},
      {MEMBER(message_inputs, metric_prefix), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_inputs, sample_ms), .type = WIRE_INT, .max = MAX_MS, .optional = true},
      {MEMBER(message_inputs, keep), COUNT(message_inputs, nkeep), .type = WIRE_TEXTS,
       .optional = true},
      {MEMBER(message_inputs, previous), .type = WIRE_INT, .optional = true},
      {MEMBER(message_inputs, attempt), .type = WIRE_INT, .optional = true},
      {MEMBER(message_inputs, setup), COUNT(message_inputs, nsetup), .type = WIRE_TEXTS,
       .optional = true},
      {MEMBER(message_inputs, packages), COUNT(message_inputs, npackages), .type = WIRE_TEXTS,
       .optional = true},
      {MEMBER(message_inputs, setup_env), COUNT(message_inputs, nsetup_env), .type = WIRE_ENV,
       .optional = true},
      {MEMBER(message_inputs, setup_ms), .type = WIRE_INT, .max = MAX_MS, .optional = true},
      {MEMBER(message_inputs, preempt_signal), .type = WIRE_INT, .max = MAX_SIGNAL,
       .optional = true},
      {MEMBER(message_inputs, image), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_inputs, image_source), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_inputs, registry_user), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_inputs, registry_password), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_inputs, registry_login), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_inputs, new_machine), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_inputs, preflight), .type = WIRE_BOOL, .optional = true});

void message_inputs_put(const struct message_inputs *m, struct buf *out)
{
	wire_put(&inputs_table, m, out);
}

static bool is_sha256(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* The digest is checked strictly, because it becomes a file name. */
static int check_blob(const struct message_blob *b, const char *what, struct err *err)
{
	if (!is_sha256(b->sha256))
		return err_set(err, ERR_PROTOCOL, "inputs: %s: key 'sha256' must be 64 hex digits",
			       what);
	return 0;
}

static int check_data(const struct message_data *d, const char *what, struct err *err)
{
	if (d->shard_index >= d->shard_count)
		return err_set(err, ERR_PROTOCOL, "inputs: %s: key 'shard_index' must be below %d",
			       what, (int)d->shard_count);
	if (!!d->src + !!d->nblobs + !!d->list != 1)
		return err_set(err, ERR_PROTOCOL,
			       "inputs: %s: one of 'src', 'blobs' and 'list' is needed", what);
	if (d->list && !d->from)
		return err_set(err, ERR_PROTOCOL, "inputs: %s: key 'from' is missing", what);
	if (d->list && !is_sha256(d->list))
		return err_set(err, ERR_PROTOCOL, "inputs: %s: key 'list' must be 64 hex digits",
			       what);
	if (d->nblobs > 1 && !d->tar)
		return err_set(err, ERR_PROTOCOL,
			       "inputs: %s: key 'blobs' must be one file without 'tar'", what);
	if (d->sha256 && !is_sha256(d->sha256))
		return err_set(err, ERR_PROTOCOL, "inputs: %s: key 'sha256' must be 64 hex digits",
			       what);
	for (size_t i = 0; i < d->nblobs; i++)
		if (check_blob(&d->blobs[i], what, err) < 0)
			return -1;
	return 0;
}

int message_inputs_get(struct str json, struct arena *a, struct message_inputs *ret,
		       struct err *err)
{
	if (wire_get(&inputs_table, json, a, ret, err) < 0)
		return -1;
	if (ret->source && check_blob(ret->source, "source", err) < 0)
		return -1;
	for (size_t i = 0; i < ret->ndata; i++) {
		char what[32];

		snprintf(what, sizeof(what), "data[%zu]", i);
		if (check_data(&ret->data[i], what, err) < 0)
			return -1;
	}
	return 0;
}

TABLE(role, message_role, {MEMBER(message_role, name), .type = WIRE_TEXT},
      {MEMBER(message_role, first), .type = WIRE_INT, .max = MESSAGE_MAX_MEMBERS},
      {MEMBER(message_role, count), .type = WIRE_INT, .min = 1, .max = MESSAGE_MAX_MEMBERS},
      {MEMBER(message_role, port), .type = WIRE_INT, .max = MAX_PORT, .optional = true},
      {MEMBER(message_role, processes), .type = WIRE_INT, .min = 1, .max = PROCESSES_MAX,
       .optional = true, .fallback = 1},
      {MEMBER(message_role, counted), .type = WIRE_BOOL, .optional = true});

TABLE(members, message_members,
      {MEMBER(message_members, first), .type = WIRE_INT, .max = MESSAGE_MAX_MEMBERS},
      {MEMBER(message_members, total), .type = WIRE_INT, .min = 1, .max = MESSAGE_MAX_MEMBERS},
      {MEMBER(message_members, roles), COUNT(message_members, nroles), .type = WIRE_LIST,
       .sub = &role_table},
      {MEMBER(message_members, addresses), .type = WIRE_TEXT},
      {MEMBER(message_members, names), .type = WIRE_TEXT, .optional = true});

void message_members_put(const struct message_members *m, struct buf *out)
{
	wire_put(&members_table, m, out);
}

int message_members_get(struct str json, struct arena *a, struct message_members *ret,
			struct err *err)
{
	int next = 0;

	if (wire_get(&members_table, json, a, ret, err) < 0)
		return -1;
	for (size_t i = 0; i < ret->nroles; i++) {
		if (ret->roles[i].first != next)
			return err_set(err, ERR_PROTOCOL,
				       "members: roles[%zu]: key 'first' must be %d", i, next);
		next += ret->roles[i].count;
	}
	if (next != ret->total)
		return err_set(err, ERR_PROTOCOL, "members: key 'total' must be %d", next);
	return 0;
}

TABLE(peer, message_peer,
      {MEMBER(message_peer, rank), .type = WIRE_INT, .max = MESSAGE_MAX_MEMBERS},
      {MEMBER(message_peer, address), .type = WIRE_TEXT},
      {MEMBER(message_peer, port), .type = WIRE_INT, .min = 1, .max = MAX_PORT});

TABLE(preflight, message_preflight, {MEMBER(message_preflight, round), .type = WIRE_INT, .min = 1},
      {MEMBER(message_preflight, peers), COUNT(message_preflight, npeers), .type = WIRE_LIST,
       .sub = &peer_table, .max = MAX_PEERS},
      {MEMBER(message_preflight, limit_ms), .type = WIRE_INT, .max = MAX_MS});
MESSAGE(preflight, message_preflight)

TABLE(start, message_start, {MEMBER(message_start, attempt), .type = WIRE_INT, .min = 1},
      {MEMBER(message_start, rank), .type = WIRE_INT, .max = MESSAGE_MAX_MEMBERS, .optional = true,
       .fallback = -1},
      {MEMBER(message_start, interface), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_start, argv), COUNT(message_start, argc), .type = WIRE_TEXTS, .min = 1},
      {MEMBER(message_start, env), COUNT(message_start, nenv), .type = WIRE_ENV},
      {MEMBER(message_start, cwd), OPTIONAL_TEXT}, {MEMBER(message_start, hostfile), OPTIONAL_TEXT},
      {MEMBER(message_start, machinefile), OPTIONAL_TEXT},
      {MEMBER(message_start, address), OPTIONAL_TEXT},
      {MEMBER(message_start, port), .type = WIRE_INT, .max = MAX_PORT, .optional = true},
      {MEMBER(message_start, grace_ms), .type = WIRE_INT, .max = MAX_MS},
      {MEMBER(message_start, memory), .type = WIRE_INT, .optional = true},
      {MEMBER(message_start, deadline_ms), .type = WIRE_INT, .max = MAX_MS, .optional = true},
      {MEMBER(message_start, pty), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_start, bind), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_start, rsh), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_start, tail), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_start, tee), .type = WIRE_BOOL, .optional = true},
      {MEMBER(message_start, processes), .type = WIRE_INT, .min = 1, .max = PROCESSES_MAX,
       .optional = true, .fallback = 1});
MESSAGE(start, message_start)

/* ---- a command beside the job ---- */

TABLE(exec, message_exec,
      {MEMBER(message_exec, argv), COUNT(message_exec, argc), .type = WIRE_TEXTS, .min = 1},
      {MEMBER(message_exec, term), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_exec, columns), .type = WIRE_INT, .max = UINT16_MAX, .optional = true},
      {MEMBER(message_exec, rows), .type = WIRE_INT, .max = UINT16_MAX, .optional = true},
      {MEMBER(message_exec, log), .type = WIRE_BOOL, .optional = true});
MESSAGE(exec, message_exec)

TABLE(exec_ask, message_exec_ask, {MEMBER(message_exec_ask, host), .type = WIRE_TEXT},
      {MEMBER(message_exec_ask, command), .type = WIRE_TEXT});
MESSAGE(exec_ask, message_exec_ask)

TABLE(exec_control, message_exec_control,
      {MEMBER(message_exec_control, taken), .type = WIRE_INT, .optional = true},
      {MEMBER(message_exec_control, signal), .type = WIRE_INT, .max = MAX_SIGNAL, .optional = true},
      {MEMBER(message_exec_control, columns), .type = WIRE_INT, .max = UINT16_MAX,
       .optional = true},
      {MEMBER(message_exec_control, rows), .type = WIRE_INT, .max = UINT16_MAX, .optional = true});
MESSAGE(exec_control, message_exec_control)

TABLE(exec_close, message_exec_close,
      {MEMBER(message_exec_close, code), .type = WIRE_INT, .min = -1, .max = MAX_CODE},
      {MEMBER(message_exec_close, signal), .type = WIRE_INT, .max = MAX_SIGNAL, .optional = true},
      {MEMBER(message_exec_close, kind), .type = WIRE_KIND, .optional = true},
      {MEMBER(message_exec_close, reason), .type = WIRE_TEXT, .optional = true});
MESSAGE(exec_close, message_exec_close)

TABLE(signal, message_signal, {MEMBER(message_signal, hurry), .type = WIRE_BOOL});
MESSAGE(signal, message_signal)

TABLE(extend, message_extend, {MEMBER(message_extend, expires_ms), .type = WIRE_INT, .min = 1});
MESSAGE(extend, message_extend)

void message_ack_put(const struct message_ack *m, uint8_t out[static MESSAGE_ACK_BYTES])
{
	data_offset_put(out, m->stored);
	data_offset_put(out + 8, m->scanned);
}

int message_ack_get(struct str payload, struct message_ack *ret, struct err *err)
{
	struct str rest;

	if (payload.n != MESSAGE_ACK_BYTES || !data_payload(payload, &ret->stored, &rest) ||
	    !data_payload(rest, &ret->scanned, &rest))
		return err_set(err, ERR_PROTOCOL, "ack: must be two offsets");
	return 0;
}

/* ---- enrolment ---- */

TABLE(enrol, message_enrol, {MEMBER(message_enrol, proto), .type = WIRE_INT},
      {MEMBER(message_enrol, run), .type = WIRE_TEXT},
      {MEMBER(message_enrol, role), .type = WIRE_TEXT},
      {MEMBER(message_enrol, token), .type = WIRE_TEXT},
      {MEMBER(message_enrol, identity), .type = WIRE_TEXT},
      {MEMBER(message_enrol, place), .type = WIRE_INT, .max = MESSAGE_MAX_MEMBERS, .optional = true,
       .fallback = -1},
      {MEMBER(message_enrol, version), .type = WIRE_TEXT});

bool message_identity_ok(const char *identity)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-";
	size_t n = strlen(identity);

	return n > 0 && n < MESSAGE_IDENTITY_MAX && strspn(identity, allowed) == n;
}

void message_enrol_put(const struct message_enrol *m, struct buf *out)
{
	wire_put(&enrol_table, m, out);
}

int message_enrol_get(struct str json, struct arena *a, struct message_enrol *ret, struct err *err)
{
	const struct doc *d;

	if (wire_parse(&enrol_table, json, a, &d, err) < 0 || check_proto(d, err) < 0 ||
	    wire_read(&enrol_table, d, a, ret, err) < 0)
		return -1;
	if (!message_identity_ok(ret->identity))
		return err_set(err, ERR_PROTOCOL,
			       "enrol: key 'identity' is not the identity of a machine");
	return 0;
}

TABLE(enrolled, message_enrolled, {MEMBER(message_enrolled, node), .type = WIRE_TEXT},
      {MEMBER(message_enrolled, token), .type = WIRE_TEXT},
      {MEMBER(message_enrolled, incarnation), .type = WIRE_INT, .min = 1},
      {MEMBER(message_enrolled, again), .type = WIRE_BOOL, .optional = true});
MESSAGE(enrolled, message_enrolled)

/* ---- hosts ---- */

bool message_host_name_ok(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strlen(name);

	return n > 0 && n < MESSAGE_HOST_NAME_MAX && strspn(name, allowed) == n && name[0] != '.' &&
	       name[0] != '-';
}

TABLE(join, message_join, {MEMBER(message_join, proto), .type = WIRE_INT},
      {MEMBER(message_join, id), .type = WIRE_TEXT},
      {MEMBER(message_join, name), .type = WIRE_TEXT},
      {MEMBER(message_join, token), .type = WIRE_TEXT},
      {MEMBER(message_join, boot_id), .type = WIRE_TEXT},
      {MEMBER(message_join, version), .type = WIRE_TEXT},
      {MEMBER(message_join, machine), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_join, address), .type = WIRE_TEXT, .optional = true},
      {MEMBER(message_join, time_ms), .type = WIRE_INT, .max = MAX_MS},
      {MEMBER(message_join, cpus), .type = WIRE_INT, .min = 1},
      {MEMBER(message_join, gpus), .type = WIRE_INT},
      {MEMBER(message_join, memory), .type = WIRE_INT},
      {MEMBER(message_join, labels), COUNT(message_join, nlabels), .type = WIRE_ENV});

void message_join_put(const struct message_join *m, struct buf *out)
{
	wire_put(&join_table, m, out);
}

int message_join_get(struct str json, struct arena *a, struct message_join *ret, struct err *err)
{
	const struct doc *d;
	struct address ip;

	if (wire_parse(&join_table, json, a, &d, err) < 0 || check_proto(d, err) < 0 ||
	    wire_read(&join_table, d, a, ret, err) < 0)
		return -1;
	if (!message_host_name_ok(ret->name))
		return err_set(err, ERR_PROTOCOL, "join: key 'name' is not a valid host name");
	if (ret->address && !address_ip(&ip, ret->address, 0))
		return err_set(err, ERR_PROTOCOL, "join: key 'address' is not a numeric address");
	return 0;
}

TABLE(host_node, message_host_node, {MEMBER(message_host_node, run), .type = WIRE_TEXT},
      {MEMBER(message_host_node, node), .type = WIRE_TEXT},
      {MEMBER(message_host_node, incarnation), .type = WIRE_INT});
TABLE(host_nodes, message_host_nodes,
      {MEMBER(message_host_nodes, nodes), COUNT(message_host_nodes, nnodes), .type = WIRE_LIST,
       .sub = &host_node_table});
MESSAGE(host_nodes, message_host_nodes)

static const char *const host_op_names[] = {[HOST_CREATE] = "create",
					    [HOST_FIND] = "find",
					    [HOST_OBSERVE] = "observe",
					    [HOST_DESTROY] = "destroy",
					    NULL};

TABLE(host_ask, message_host_ask, {MEMBER(message_host_ask, no), .type = WIRE_INT, .min = 1},
      {MEMBER(message_host_ask, op), .type = WIRE_CHOICE, .choices = host_op_names},
      {MEMBER(message_host_ask, run), .type = WIRE_TEXT},
      {MEMBER(message_host_ask, node), .type = WIRE_TEXT},
      {MEMBER(message_host_ask, incarnation), .type = WIRE_INT},
      {MEMBER(message_host_ask, token), OPTIONAL_TEXT},
      {MEMBER(message_host_ask, id), OPTIONAL_TEXT},
      {MEMBER(message_host_ask, limit_ms), .type = WIRE_INT, .max = MAX_MS});
MESSAGE(host_ask, message_host_ask)

static const char *const outcome_names[] = {[OUTCOME_DONE] = "done",
					    [OUTCOME_REFUSED] = "refused",
					    [OUTCOME_UNSURE] = "unsure",
					    [OUTCOME_ABSENT] = "absent",
					    [OUTCOME_BROKEN] = "broken",
					    [OUTCOME_HELD] = "held",
					    NULL};

TABLE(host_answer, message_host_answer,
      {MEMBER(message_host_answer, no), .type = WIRE_INT, .min = 1},
      {MEMBER(message_host_answer, outcome), .type = WIRE_CHOICE, .choices = outcome_names},
      {MEMBER(message_host_answer, kind), .type = WIRE_KIND, .optional = true},
      {MEMBER(message_host_answer, text), OPTIONAL_TEXT},
      {MEMBER(message_host_answer, id), OPTIONAL_TEXT});
MESSAGE(host_answer, message_host_answer)

/* ---- messages of both ---- */

TABLE(bye, message_bye,
      {MEMBER(message_bye, reason), .type = WIRE_TEXT, .optional = true, .default_text = ""});
MESSAGE(bye, message_bye)
