/*
 * Payloads from a master, and records of a status file.  The first byte selects
 * the message; what is accepted is used to its end: every text is read, and what
 * could be written is written and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/message.h"
#include "agent/status.h"
#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"

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

static void use_inputs(const struct msg_inputs *m)
{
	need(m->argv0 && m->cwd && m->path && m->address && m->output_dir);
	need(m->port >= 0 && m->port <= 65535 && m->sample_ms >= 0);
	touch(m->source);
	touch(m->source_sha256);
	touch(m->metric_prefix);
	for (size_t i = 0; i < m->ndata; i++) {
		touch(m->data[i].src);
		touch(m->data[i].path);
		need(m->data[i].shard_index < m->data[i].shard_count);
	}
	for (size_t i = 0; i < m->nmetrics; i++) {
		need(m->metrics[i].pattern != NULL);
		touch(m->metrics[i].name);
	}
	for (size_t i = 0; i < m->nkeep; i++)
		touch(m->keep[i]);
}

static void use_start(const struct msg_start *m)
{
	need(m->attempt > 0 && m->argv[0] && m->grace_ms >= 0 && m->deadline_ms >= 0);
	for (const char **v = m->argv; *v; v++)
		touch(*v);
	for (size_t i = 0; i < m->nenv; i++)
		need(m->env[i][0] != '=' && strchr(m->env[i], '='));
	need(m->env[m->nenv] == NULL);
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
	msg_put_exit(&out, &a.exit);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct msg_welcome welcome;
	struct msg_refuse refuse;
	struct msg_inputs inputs;
	struct msg_start start;
	struct err err = {0};
	bool hurry;

	if (size > 0) {
		struct str json = {(const char *)data + 1, size - 1};

		switch (data[0]) {
		case 'w':
			msg_welcome(json, a, &welcome, &err);
			break;
		case 'r':
			if (msg_refuse(json, a, &refuse, &err) == 0)
				touch(refuse.reason);
			break;
		case 'i':
			if (msg_inputs(json, a, &inputs, &err) == 0)
				use_inputs(&inputs);
			break;
		case 's':
			if (msg_start(json, a, &start, &err) == 0)
				use_start(&start);
			break;
		case 'g':
			msg_signal(json, a, &hurry, &err);
			break;
		case 'b':
			touch(msg_bye(json, a));
			break;
		default:
			use_status(json);
			break;
		}
	}
	arena_free(a);
	return 0;
}
