/*
 * regatta rerun - a run again, from its record: the job as it was sent, with its settings, and the
 * very archive of its source.  Secrets are not in the record; they come from the caller's environment.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/git_state.h"
#include "cli/command/commands.h"
#include "cli/command/env_input.h"
#include "cli/command/job_input.h"
#include "cli/command/run.h"
#include "fmt/doc.h"
#include "spec/secret.h"

#define MAX_NAMES 800 /* bytes of the list of missing secrets, about */

static bool is_masked(const struct doc *d)
{
	return d->type == DOC_STRING && str_is(d->s, SECRET_SHOWN);
}

/* ---- secrets ---- */

struct masked {
	struct arena *a;
	struct env_list given; /* by --env and --env-file */
	struct buf missing;    /* names, for the refusal */
	size_t more;	       /* that are not in it */
};

static void masked_release(struct masked *m)
{
	buf_release(&m->missing);
}

static void add_missing(struct masked *m, const char *name)
{
	if (m->missing.n + strlen(name) > MAX_NAMES)
		m->more++;
	else
		buf_printf(&m->missing, "%s%s", m->missing.n ? ", " : "", name);
}

static bool is_set(const struct cli_call *c, const char *key)
{
	const char *sets[64];
	size_t n = call_texts(c, "set", sets, 64), len = strlen(key);

	for (size_t i = 0; i < n; i++)
		if (strncmp(sets[i], key, len) == 0 && sets[i][len] == '=')
			return true;
	return false;
}

static bool is_given(const struct env_list *given, const char *name)
{
	for (size_t i = 0; i < given->n; i++)
		if (strcmp(given->v[i].name, name) == 0)
			return true;
	return false;
}

/* Values of an env table that were masked.  where: "env", "roles.trainer.env" */
static void fill_env(const struct cli_call *c, struct masked *m, const struct doc *env,
		     const char *where)
{
	for (size_t i = 0; env && i < env->table.n; i++) {
		struct doc_entry *e = &env->table.v[i];
		const char *name = arena_str(m->a, e->key).p, *value = getenv(name);
		const char *key = arena_printf(m->a, "%s.%s", where, name);

		if (!is_masked(e->value) || is_set(c, key) || is_given(&m->given, name))
			continue;
		if (value) {
			cli_say("%s is taken from the environment", key);
			e->value = doc_new_str(m->a, str_from(value));
		} else {
			add_missing(m, key);
		}
	}
}

/* Secrets that passed from the shell of the run: `pass` takes them from this one. */
static void check_passed(const struct cli_call *c, struct masked *m, const struct doc *record,
			 const struct doc *job)
{
	const struct doc *names = doc_array(record, "passed_secrets"), *env = doc_table(job, "env");

	for (size_t i = 0; names && !is_set(c, "pass") && i < names->array.n; i++) {
		const struct doc *d = names->array.v[i];
		const char *name = d->type == DOC_STRING ? arena_str(m->a, d->s).p : "";

		if (!*name || getenv(name) || is_given(&m->given, name) ||
		    (env && doc_get(env, name)) || is_set(c, arena_printf(m->a, "env.%s", name)))
			continue;
		add_missing(m, name);
	}
}

/* 0, or the exit code after a message. */
static int fill_secrets(const struct cli_call *c, const char *run, const struct doc *record,
			const struct doc *job, struct arena *a)
{
	CLEANUP(masked_release) struct masked m = {.a = a};
	const struct doc *roles = doc_table(job, "roles");
	struct err err;

	buf_init(&m.missing, 2 * MAX_NAMES);
	if (env_input_read(c, a, &m.given, &err) < 0)
		return cli_fail(&err);
	fill_env(c, &m, doc_table(job, "env"), "env");
	for (size_t i = 0; roles && i < roles->table.n; i++)
		fill_env(c, &m, doc_table(roles->table.v[i].value, "env"),
			 arena_printf(a, "roles.%.*s.env", STR_ARG(roles->table.v[i].key)));
	check_passed(c, &m, record, job);
	if (!m.missing.n)
		return 0;
	cli_say("the record of %.60s has no secrets: %s%s; export the variable%s, or give --env",
		run, m.missing.p, m.more ? arena_printf(a, " and %zu more", m.more) : "",
		m.more || memchr(m.missing.p, ',', m.missing.n) ? "s" : "");
	return err_exit_code(ERR_INVALID);
}

/* ---- what differs ---- */

static void say_change(const char *key, const struct doc *old, const struct doc *new,
		       struct arena *a)
{
	if (old && is_masked(old))
		cli_say("  %s: %s", key, new ? "given anew" : "left out");
	else
		cli_say("  %s: %s -> %s", key, old ? doc_json_text(a, old) : "not set",
			new ? doc_json_text(a, new) : "not set");
}

/* Number of keys that differ; each is said. */
static size_t say_changes(const struct doc *old, const struct doc *new, const char *prefix,
			  struct arena *a)
{
	size_t n = 0;

	for (size_t i = 0; i < new->table.n; i++) {
		const struct doc_entry *e = &new->table.v[i];
		const char *name = arena_str(a, e->key).p;
		const char *key = arena_printf(a, "%s%s", prefix, name);
		const struct doc *was = doc_get(old, name);

		if (was && was->type == DOC_TABLE && e->value->type == DOC_TABLE) {
			n += say_changes(was, e->value, arena_printf(a, "%s.", key), a);
		} else if (!was || strcmp(doc_json_text(a, was), doc_json_text(a, e->value)) != 0) {
			say_change(key, was, e->value, a);
			n++;
		}
	}
	for (size_t i = 0; i < old->table.n; i++) {
		const char *name = arena_str(a, old->table.v[i].key).p;

		if (doc_get(new, name))
			continue;
		say_change(arena_printf(a, "%s%s", prefix, name), old->table.v[i].value, NULL, a);
		n++;
	}
	return n;
}

static const char *describe(struct str revision, bool dirty, struct arena *a)
{
	return revision.n ? arena_printf(a, "%.*s%s", revision.n < 12 ? (int)revision.n : 12,
					 revision.p,
					 dirty ? " with changes that are not committed" : "")
			  : "unknown";
}

/* A job that runs in its directory finds there what is there now.  1 if that is another commit, or if
 * something of either was not committed. */
static size_t say_revision(const struct doc *record, const struct job_input *in, struct arena *a)
{
	const struct doc *old = doc_table(record, "source");
	CLEANUP(git_state_release) struct git_state g = {0};
	struct str was = doc_str(old, "revision", STR(""));
	bool was_dirty = doc_bool(old, "dirty", false);
	struct err err;

	if (in->source_sha256 || in->job->source)
		return 0;
	(void)git_state_read(in->job->base_dir, a, &g,
			     &err); /* a warning follows with the submission */
	struct str now = str_from(g.revision);

	if (str_eq(was, now) && !was_dirty && !g.dirty)
		return 0;
	cli_say("  git revision: %s -> %s", describe(was, was_dirty, a), describe(now, g.dirty, a));
	return 1;
}

static void say_what_differs(const char *run, const struct doc *record, const struct job_input *in,
			     struct arena *a)
{
	const struct doc *old = doc_table(record, "job");

	cli_say("%s again%s", run, in->source_sha256 ? ", with the source that it had" : "");
	if (say_changes(old, in->doc, "", a) + say_revision(record, in, a) == 0)
		cli_say("  nothing differs");
}

/* ---- the command ---- */

static int read_record(const struct cli_call *c, struct arena *a, struct doc **ret,
		       const char **ret_id, struct err *err)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *path = api_run_path(call_arg(c, 0), "/record");

	if (api_open_named(&api, c, true, err) < 0 || api_get_doc(&api, path, a, ret, err) < 0)
		return -1;
	if (!doc_table(*ret, "job"))
		return err_set(err, ERR_PROTOCOL, "the master's answer has no job");
	*ret_id = arena_str(a, doc_str(*ret, "id", str_from(call_arg(c, 0)))).p;
	return 0;
}

int command_rerun(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *record;
	struct job_input in;
	const char *id;
	struct err err;

	if (read_record(c, a, &record, &id, &err) < 0)
		return cli_fail(&err);
	struct doc *job = doc_copy(a, doc_table(record, "job"));

	int code = fill_secrets(c, id, record, job, a);

	if (code == 0)
		code = job_input_again(c, record, job, &in);
	if (code != 0)
		return code;
	say_what_differs(id, record, &in, a);
	code = run_job(c, &in, NULL);
	job_input_release(&in);
	return code;
}
