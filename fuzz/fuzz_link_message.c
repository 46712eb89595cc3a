/*
 * Payloads of both directions, and records of a status file.  The first byte selects the message;
 * what is accepted is used to its end: every text is read, and what is written of it is read
 * again and written again, byte for byte the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shim/status.h"
#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "link/message.h"

#define TEXT_MAX (16 * 1024 * 1024) /* escaping makes a payload at most six times as long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t touched;

static void touch(const char *text)
{
	if (text)
		touched += strlen(text);
}

static void need(bool ok)
{
	if (!ok)
		abort();
}

static void use_blob(const struct message_blob *b)
{
	need(b->sha256 && strlen(b->sha256) == 64);
}

static void use_inputs(const struct message_inputs *m)
{
	need(m->argv0 && m->path && m->address);
	need(m->port >= 0 && m->port <= 65535 && m->sample_ms >= 0);
	if (m->source)
		use_blob(m->source);
	touch(m->metric_prefix);
	for (size_t i = 0; i < m->ndata; i++) {
		touch(m->data[i].src);
		touch(m->data[i].path);
		need(m->data[i].shard_index < m->data[i].shard_count);
		need(m->data[i].src || m->data[i].nblobs || m->data[i].list);
		need(!m->data[i].list || (m->data[i].from && strlen(m->data[i].list) == 64));
		need(m->data[i].input >= 0);
		for (size_t k = 0; k < m->data[i].nblobs; k++)
			use_blob(&m->data[i].blobs[k]);
	}
	for (size_t i = 0; i < m->nmetrics; i++) {
		need(m->metrics[i].pattern != NULL);
		touch(m->metrics[i].name);
	}
	for (size_t i = 0; i < m->nkeep; i++)
		touch(m->keep[i]);
}

static void use_start(const struct message_start *m)
{
	need(m->attempt > 0 && m->argv[0] && m->grace_ms >= 0 && m->deadline_ms >= 0);
	for (const char **v = m->argv; *v; v++)
		touch(*v);
	for (size_t i = 0; i < m->nenv; i++) {
		need(m->env[i].name[0] && !strchr(m->env[i].name, '='));
		touch(m->env[i].value);
	}
}

static void use_status(struct str text)
{
	struct status a, b;
	struct buf out;

	status_parse(text, &a);
	need(a.exit.ngaps <= MESSAGE_MAX_GAPS && a.attempt >= 0 && a.shim.pid >= 0 &&
	     a.job.pid >= 0);
	if (!a.has_exit)
		return;
	/* The same object goes to the master: it must be JSON, whatever the bytes were. */
	struct arena *mem = arena_new();
	struct doc *d;

	buf_init(&out, 64 * 1024);
	message_exit_put(&a.exit, &out);
	need(json_parse(buf_str(&out), mem, &d, NULL) == 0);
	arena_free(mem);
	buf_release(&out);
	/* A torn line behind it changes nothing. */
	buf_init(&out, text.n + 16);
	buf_addstr(&out, text);
	buf_addz(&out, "{\"rec\":\"ex");
	status_parse(buf_str(&out), &b);
	need(b.has_exit || text.p[text.n - 1] != '\n');
	buf_release(&out);
}

static void use_hello(const struct message_hello *m)
{
	need(m->pid > 0 && m->attempt >= 0);
	touch(m->run);
	touch(m->node);
	touch(m->token);
	need(!m->exit || (m->exit->attempt > 0 && m->exit->ngaps <= MESSAGE_MAX_GAPS));
}

static void use_join(const struct message_join *m)
{
	need(m->cpus > 0 && message_host_name_ok(m->name));
	touch(m->token);
	for (size_t i = 0; i < m->nlabels; i++)
		touch(m->labels[i].value);
}

static void use_enrol(const struct message_enrol *m)
{
	need(message_identity_ok(m->identity) && m->place >= -1);
	touch(m->run);
	touch(m->role);
	touch(m->token);
}

static void use_enrolled(const struct message_enrolled *m)
{
	need(m->incarnation > 0);
	touch(m->node);
	touch(m->token);
}

static void use_host_nodes(const struct message_host_nodes *m)
{
	for (size_t i = 0; i < m->nnodes; i++)
		touch(m->nodes[i].node);
}

static void use_host_ask(const struct message_host_ask *m)
{
	need(m->no > 0 && m->op <= HOST_DESTROY && m->limit_ms >= 0);
	touch(m->run);
}

static void use_host_answer(const struct message_host_answer *m)
{
	need(m->no > 0 && m->outcome < OUTCOMES);
	touch(m->text);
}

static void use_ready(const struct message_ready *m)
{
	need(m->ok || (m->kind != ERR_NONE && m->reason));
}

static void use_metrics(const struct message_metrics *m)
{
	need(m->from <= m->to);
	for (size_t i = 0; i < m->nsamples; i++)
		touched += m->samples[i].name.n;
}

static void use_sample(const struct message_sample *m)
{
	for (size_t i = 0; i < m->nvalues; i++)
		touched += m->values[i].name.n;
}

static void use_exit(const struct exit_report *m)
{
	need(m->attempt > 0 && m->ngaps <= MESSAGE_MAX_GAPS);
}

#define USE_NOTHING(name, tag)                                                                     \
	static void use_##name(const struct tag *m)                                                \
	{                                                                                          \
		(void)m;                                                                           \
	}
USE_NOTHING(welcome, message_welcome)
USE_NOTHING(refuse, message_refuse)
USE_NOTHING(signal, message_signal)
USE_NOTHING(bye, message_bye)
USE_NOTHING(started, message_started)
USE_NOTHING(serving, message_serving)
USE_NOTHING(preempt, message_preempt)
USE_NOTHING(extend, message_extend)
USE_NOTHING(exec, message_exec)
USE_NOTHING(exec_close, message_exec_close)
USE_NOTHING(exec_control, message_exec_control)
USE_NOTHING(collected, message_collected)

/* Read, used, written, read, written: the second text is the first. */
#define FUZZ(name, tag)                                                                            \
	static void fuzz_##name(struct str json, struct arena *a)                                  \
	{                                                                                          \
		struct err err = {0};                                                              \
		struct buf one, two;                                                               \
		struct tag m;                                                                      \
                                                                                                   \
		if (message_##name##_get(json, a, &m, &err) < 0) {                                 \
			need(err.kind == ERR_PROTOCOL || err.kind == ERR_UNAVAILABLE);             \
			return;                                                                    \
		}                                                                                  \
		use_##name(&m);                                                                    \
		buf_init(&one, TEXT_MAX);                                                          \
		buf_init(&two, TEXT_MAX);                                                          \
		message_##name##_put(&m, &one);                                                    \
		need(message_##name##_get(buf_str(&one), a, &m, &err) == 0);                       \
		message_##name##_put(&m, &two);                                                    \
		need(str_eq(buf_str(&one), buf_str(&two)));                                        \
		buf_release(&one);                                                                 \
		buf_release(&two);                                                                 \
	}
FUZZ(welcome, message_welcome)
FUZZ(refuse, message_refuse)
FUZZ(inputs, message_inputs)
FUZZ(start, message_start)
FUZZ(signal, message_signal)
FUZZ(bye, message_bye)
FUZZ(hello, message_hello)
FUZZ(join, message_join)
FUZZ(enrol, message_enrol)
FUZZ(enrolled, message_enrolled)
FUZZ(host_nodes, message_host_nodes)
FUZZ(host_ask, message_host_ask)
FUZZ(host_answer, message_host_answer)
FUZZ(ready, message_ready)
FUZZ(started, message_started)
FUZZ(serving, message_serving)
FUZZ(preempt, message_preempt)
FUZZ(extend, message_extend)
FUZZ(exec, message_exec)
FUZZ(exec_close, message_exec_close)
FUZZ(exec_control, message_exec_control)
FUZZ(metrics, message_metrics)
FUZZ(sample, message_sample)
FUZZ(exit, exit_report)
FUZZ(collected, message_collected)

static void fuzz_ack(struct str payload, struct arena *a)
{
	uint8_t out[MESSAGE_ACK_BYTES];
	struct message_ack m;
	struct err err = {0};

	(void)a;
	if (message_ack_get(payload, &m, &err) < 0)
		return;
	message_ack_put(&m, out);
	need(memcmp(out, payload.p, payload.n) == 0);
}

static void (*const targets[256])(struct str json, struct arena *a) = {
	['w'] = fuzz_welcome,	  ['r'] = fuzz_refuse,	     ['i'] = fuzz_inputs,
	['s'] = fuzz_start,	  ['g'] = fuzz_signal,	     ['b'] = fuzz_bye,
	['h'] = fuzz_hello,	  ['y'] = fuzz_ready,	     ['d'] = fuzz_started,
	['v'] = fuzz_serving,	  ['m'] = fuzz_metrics,	     ['p'] = fuzz_sample,
	['e'] = fuzz_exit,	  ['c'] = fuzz_collected,    ['a'] = fuzz_ack,
	['j'] = fuzz_join,	  ['n'] = fuzz_host_nodes,   ['q'] = fuzz_host_ask,
	['o'] = fuzz_host_answer, ['l'] = fuzz_enrol,	     ['L'] = fuzz_enrolled,
	['t'] = fuzz_preempt,	  ['x'] = fuzz_extend,	     ['E'] = fuzz_exec,
	['X'] = fuzz_exec_close,  ['z'] = fuzz_exec_control,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct arena *a = arena_new();
	struct str payload = {(const char *)data + 1, size - 1};

	if (targets[data[0]])
		targets[data[0]](payload, a);
	else
		use_status(payload);
	arena_free(a);
	return 0;
}
