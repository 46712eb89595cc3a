/* What the core asks for a suite: runs are made and cancelled, on_exit is run, the report is made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/suites.h"
#include "master/upkeep/suite_files.h"
#include "sys/child_run.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define CODE_MAX_BYTES (64 * 1024)
#define ON_EXIT_MS (10 * 60 * 1000)
#define ON_EXIT_THREADS 4

/* ---- starting ---- */

/* The submission of an entry: that of its variant, with the variant's job and a request id. */
static int make_body(const struct live_suite *ls, const struct suite_effect *fx, struct arena *a,
		     struct doc **ret, struct err *err)
{
	int variant = ls->core->entries[fx->index].variant;
	const struct doc *list = doc_array(ls->request, "submissions");
	const struct doc *of = doc_array(ls->request, "of")->array.v[variant];
	const struct doc *given = list->array.v[of->i];
	struct doc *body = doc_new(a, DOC_TABLE), *job;

	if (suite_apply(&ls->plan, &ls->plan.variants[variant], doc_table(given, "job"), a, &job,
			err) < 0)
		return -1;
	for (size_t i = 0; i < given->table.n; i++) {
		const struct doc_entry *e = &given->table.v[i];

		/* The id of a run is not the client's to choose. */
		if (!str_is(e->key, "job") && !str_is(e->key, "run"))
			doc_set(a, body, e->key, e->value);
	}
	doc_set(a, body, STR("job"), job);
	doc_set(a, body, STR("request_id"),
		doc_new_str(a, str_from(arena_printf(a, "suite-%s-%d-%d", ls->row.id, fx->index,
						     fx->attempt))));
	*ret = body;
	return 0;
}

static void first_line(const char *text, char *out, size_t size)
{
	struct str rest = str_from(text), line = str_cut(&rest, '\n');

	snprintf(out, size, "%.*s", STR_ARG(line));
}

static void refuse(struct live_suite *ls, const struct suite_effect *fx, const struct err *why,
		   const char *details)
{
	struct suite_event ev = {.kind = SUITE_REFUSED,
				 .index = fx->index,
				 .attempt = fx->attempt,
				 .err_kind = why->kind};

	first_line(details ? details : why->msg, ev.text, sizeof(ev.text));
	log_warn("suite %s: variant %s: %s", ls->row.id,
		 ls->plan.variants[ls->core->entries[fx->index].variant].name, ev.text);
	suite_event(ls, &ev);
}

static void start(struct live_suite *ls, const struct suite_effect *fx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct suite_entry *e = &ls->core->entries[fx->index];
	struct live_run *lr = NULL;
	const char *details = NULL;
	struct err err = {0};
	struct doc *body;
	bool is_new;

	if (e->state != ENTRY_STARTING || e->attempt != fx->attempt)
		return;
	if (make_body(ls, fx, a, &body, &err) < 0 ||
	    runs_submit(ls->m, body, a, &lr, &is_new, &details, &err) < 0) {
		refuse(ls, fx, &err, details);
		return;
	}
	suite_bind(ls, fx->index, lr->row.id);
	suite_event(ls, &(struct suite_event){
				.kind = SUITE_STARTED, .index = fx->index, .attempt = fx->attempt});
	/* It was made before the master was restarted, and has ended since. */
	if (lr->ended)
		suites_run_ended(ls->m->suites, lr);
	if (!is_new)
		live_run_done(lr);
}

static void cancel(struct live_suite *ls, const struct suite_effect *fx)
{
	const char *run = ls->runs[fx->index];
	struct live_run *lr = run ? map_get(ls->m->runs, str_from(run)) : NULL;
	struct event ev = {.kind = EV_CANCEL, .hurry = fx->hurry};

	if (!lr || ls->core->entries[fx->index].attempt != fx->attempt)
		return;
	snprintf(ev.text, sizeof(ev.text), "its suite was stopped");
	run_event(lr, &ev);
}

/* ---- on_exit ---- */

struct closing {
	struct master *m;
	struct live_suite *ls;
	struct arena *a;
	const char *base_dir, *log;
	const char **commands, **env;
	size_t n;
	bool done; /* all commands have run */
	char failed[200];
};

/* The exit code is printed: the loop thread of the master may have reaped the child. */
static const char script[] =
	"(cd \"$1\" && exec /bin/sh -c \"$2\") >>\"$3\" 2>&1 </dev/null; echo $?";

static void run_command(struct closing *c, const char *command, const struct deadline *d)
{
	const char *argv[] = {"sh", "-c", script, "sh", c->base_dir, command, c->log, NULL};
	const struct child_spec spec = {.file = "/bin/sh",
					.argv = argv,
					.env = c->env,
					.in = -1,
					.out = CHILD_KEPT,
					.err = -1,
					.session = true};
	const struct deadline limit = deadline_within(d, ON_EXIT_MS);
	CLEANUP(buf_release) struct buf out = {0};
	struct err err = {0};
	int64_t code = -1;
	int status;

	buf_init(&out, CODE_MAX_BYTES);
	int rc = child_run(spec, &limit, &out, &status, &err);

	if (rc < 0 && err.kind == ERR_CANCELLED)
		return; /* the master stops: the next one runs it again */
	if (rc == 0 && !str_to_i64(str_trim(buf_str(&out)), &code))
		err_set(&err, ERR_IO, "it was killed");
	if ((rc < 0 || code != 0) && !*c->failed) {
		if (code > 0)
			snprintf(c->failed, sizeof(c->failed), "'%.100s': exit code %lld", command,
				 (long long)code);
		else
			snprintf(c->failed, sizeof(c->failed), "'%.80s': %.80s", command, err.msg);
	}
}

static void close_work(void *arg, const struct deadline *d)
{
	struct closing *c = arg;
	struct err ignored;

	for (size_t i = 0; i < c->n; i++)
		if (deadline_check(d, "on_exit", &ignored) == 0)
			run_command(c, c->commands[i], d);
	c->done = deadline_check(d, "on_exit", &ignored) == 0;
}

static void close_done(void *arg, enum err_kind how)
{
	struct closing *c = arg;
	struct suite_event ev = {.kind = SUITE_CLOSED};

	c->ls->busy--;
	if (how == ERR_NONE && c->done) {
		snprintf(ev.text, sizeof(ev.text), "%s", c->failed);
		if (*c->failed)
			log_warn("suite %s: on_exit: %s", c->ls->row.id, c->failed);
		suite_event(c->ls, &ev);
	}
	arena_free(c->a);
	free(c);
}

static const char **make_env(const struct live_suite *ls, struct arena *a)
{
	const struct doc *list = doc_array(ls->request, "submissions");
	const struct doc *env = doc_table(list->array.v[0], "client_env");
	size_t n = env ? env->table.n : 0, k = 0;
	const char **v = arena_array(a, const char *, n + 4);

	for (size_t i = 0; i < n; i++)
		if (env->table.v[i].value->type == DOC_STRING)
			v[k++] = arena_printf(a, "%.*s=%.*s", STR_ARG(env->table.v[i].key),
					      STR_ARG(env->table.v[i].value->s));
	v[k++] = arena_printf(a, "REGATTA_SUITE=%s", ls->row.id);
	v[k++] = arena_printf(a, "REGATTA_SUITE_DIR=%s", ls->dir);
	v[k++] = arena_printf(a, "REGATTA_SUITE_STATE=%s",
			      suite_phase_name(suite_outcome(ls->core)));
	return v;
}

static void close_suite(struct live_suite *ls)
{
	struct closing *c = xcalloc(1, sizeof(*c));
	const struct strs *commands = &ls->plan.runs.on_exit;

	*c = (struct closing){.m = ls->m, .ls = ls, .a = arena_new()};
	CLEANUP(freep) char *log = path_join(ls->dir, "on_exit.log");
	c->log = arena_strdup(c->a, log);
	c->base_dir = arena_strdup(c->a, ls->row.base_dir);
	c->commands = arena_array(c->a, const char *, commands->n + 1);
	for (; c->n < commands->n; c->n++)
		c->commands[c->n] = arena_strdup(c->a, commands->v[c->n]);
	c->env = make_env(ls, c->a);
	ls->busy++;
	workers_submit(pools_get(ls->m->pools, "on_exit", ON_EXIT_THREADS), close_work, close_done,
		       c, -1);
}

/* ---- effects ---- */

/* The submission has secrets and credentials in it: it stays only as long as the suite may be resumed. */
static void end(struct live_suite *ls)
{
	CLEANUP(freep) char *request = path_join(ls->dir, SUITE_REQUEST_FILE);

	ls->ended = true;
	if (suite_outcome(ls->core) == SUITE_SUCCEEDED)
		unlink(request);
	suite_write_files(ls, NULL, NULL);
}

static void carry_out(struct live_suite *ls, const struct suite_effect *fx)
{
	switch (fx->kind) {
	case SUITE_FX_START:
		if (!ls->m->stopping)
			start(ls, fx);
		return;
	case SUITE_FX_CANCEL:
		cancel(ls, fx);
		return;
	case SUITE_FX_CLOSE:
		close_suite(ls);
		return;
	case SUITE_FX_ENDED:
		return; /* done at once */
	}
}

void suite_carry_out(struct live_suite *ls)
{
	struct suite_effects due = ls->due;

	ls->due = (struct suite_effects){0};
	/* The master leaves: the next one carries out the effects. */
	for (size_t i = 0; i < due.v.n && ls->m->pools && !ls->m->exit_code; i++)
		carry_out(ls, &due.v.v[i]);
	suite_effects_release(&due);
}

bool suite_effects_take(struct live_suite *ls, const struct suite_effects *fx)
{
	for (size_t i = 0; i < fx->v.n; i++) {
		if (fx->v.v[i].kind == SUITE_FX_ENDED)
			end(ls);
		else
			*vec_push(&ls->due.v) = fx->v.v[i];
	}
	return ls->due.v.n > 0;
}
