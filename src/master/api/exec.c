/* Commands on a node beside its job. */
#include "base/arena.h"
#include "fmt/doc.h"
#include "link/message.h"
#include "master/api/api.h"
#include "master/execs.h"
#include "master/live_run.h"
#include "master/runs.h"

#define MAX_WORDS 1000
#define MAX_SIGNAL 64

static int read_int(const struct doc *d, const char *key, int max, int *ret, struct err *err)
{
	int64_t v = doc_int(d, key, 0);

	if (v < 0 || v > max)
		return err_set(err, ERR_INVALID, "'%s' must be from 0 to %d", key, max);
	*ret = (int)v;
	return 0;
}

static int read_command(struct api_call *c, struct message_exec *m, struct err *err)
{
	struct doc *body;

	if (api_read_body(c, &body, err) < 0)
		return -1;
	const struct doc *argv = body ? doc_array(body, "argv") : NULL;

	if (!argv || argv->array.n == 0 || argv->array.n > MAX_WORDS)
		return err_set(err, ERR_INVALID, "'argv' must be a list of 1 to %d words",
			       MAX_WORDS);
	*m = (struct message_exec){.argv = arena_array(c->arena, const char *, argv->array.n + 1),
				   .argc = argv->array.n};
	for (size_t i = 0; i < m->argc; i++) {
		if (argv->array.v[i]->type != DOC_STRING)
			return err_set(err, ERR_INVALID, "'argv' must be a list of words");
		m->argv[i] = argv->array.v[i]->s.p;
	}
	struct str term = doc_str(body, "term", STR(""));

	m->term = term.n ? term.p : NULL;
	return read_int(body, "columns", UINT16_MAX, &m->columns, err) < 0
		       ? -1
		       : read_int(body, "rows", UINT16_MAX, &m->rows, err);
}

int api_run_exec(struct api_call *c, struct err *err)
{
	struct message_exec m;
	struct live_run *lr;

	if (read_command(c, &m, err) < 0 || api_stream_allowed(c, err) < 0 ||
	    !(lr = api_run(c, err)))
		return -1;
	int rank = run_find_rank(lr, c->params[1]);

	if (rank < 0)
		err_set(err, ERR_NOT_FOUND,
			"run '%s' has no node '%.*s': 'regatta status %s' lists them", lr->row.id,
			STR_ARG(c->params[1]), lr->row.id);
	else if (exec_begin(lr, rank, &m, c->x, err) == 0)
		return 0;
	live_run_done(lr);
	return -1;
}

int api_exec_input(struct api_call *c, struct err *err)
{
	if (exec_write(c->m->execs, c->params[0], c->req->body, err) < 0)
		return -1;
	http_reply(c->x, 200, "application/json", STR("{}\n"));
	return 0;
}

int api_exec_control(struct api_call *c, struct err *err)
{
	struct message_exec_control m = {0};
	struct doc *body;

	if (api_read_body(c, &body, err) < 0)
		return -1;
	if (body && (read_int(body, "signal", MAX_SIGNAL, &m.signal, err) < 0 ||
		     read_int(body, "columns", UINT16_MAX, &m.columns, err) < 0 ||
		     read_int(body, "rows", UINT16_MAX, &m.rows, err) < 0))
		return -1;
	if (exec_steer(c->m->execs, c->params[0], &m, err) < 0)
		return -1;
	http_reply(c->x, 200, "application/json", STR("{}\n"));
	return 0;
}
