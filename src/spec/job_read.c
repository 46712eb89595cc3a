/*
 * job_read - a job from a file or from the command line, with --set applied.
 *
 * A problem of a value from --set is reported with that --set, not with a place
 * in the file: everything that setting i put into the tree has the line
 * -(i + 1), and so has what the job remembers of its place.
 */
#include "spec/job.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/suggest.h"

#define MAX_SETS 256
#define MAX_TEXT 500		 /* bytes of one problem shown */
#define MAX_REPORT (1024 * 1024) /* bytes of all problems shown */

/* Tables of the file in which a mistyped name must not become a new entry. */
static const struct {
	const char *key, *what;
} closed_tables[] = {{"roles", "role"}, {"params", "parameter"}};
#define CLOSED_TABLES (sizeof(closed_tables) / sizeof(closed_tables[0]))

struct reading {
	const char *name; /* of the file, in messages */
	const struct job_options *opts;
	struct arena *a;
	struct problems ps;
	bool closed[CLOSED_TABLES]; /* the file has this one */
};

static struct doc_pos set_pos(size_t i)
{
	return (struct doc_pos){.line = -(int)i - 1};
}

/* Replaces every position of the tree by pos. */
static void stamp(struct doc *d, struct doc_pos pos)
{
	d->pos = pos;
	for (size_t i = 0; d->type == DOC_ARRAY && i < d->array.n; i++)
		stamp(d->array.v[i], pos);
	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++) {
		d->table.v[i].key_pos = pos;
		stamp(d->table.v[i].value, pos);
	}
}

/* 8, true, "a b", ["a", "b"] as TOML; anything else is a string as it stands. */
static struct doc *set_value(struct str text, struct arena *a)
{
	CLEANUP(buf_release) struct buf line = {0};
	struct doc *root;

	buf_init(&line, DOC_MAX_BYTES);
	buf_addz(&line, "v = ");
	buf_addstr(&line, text);
	/* More than one key: the text holds a line break and would set other keys. */
	if (line.overflow || toml_parse(buf_str(&line), a, &root, NULL) < 0 || root->table.n != 1 ||
	    !str_is(root->table.v[0].key, "v"))
		return doc_new_str(a, text);
	return root->table.v[0].value;
}

/* New keys and tables on the path to the value get the position of the setting too. */
static bool stamp_way(struct doc *d, const struct doc *value, struct doc_pos pos)
{
	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++) {
		struct doc_entry *e = &d->table.v[i];
		if (e->value != value && !stamp_way(e->value, value, pos))
			continue;
		if (e->key_pos.line == 0)
			e->key_pos = pos;
		if (e->value->pos.line == 0)
			e->value->pos = pos;
		return true;
	}
	return false;
}

static void refuse_new(struct reading *r, struct doc *table, const char *what, struct doc_pos pos)
{
	struct str given = table->table.v[--table->table.n].key;
	const char **names = arena_array(r->a, const char *, table->table.n);

	for (size_t i = 0; i < table->table.n; i++)
		names[i] = arena_strndup(r->a, table->table.v[i].key.p, table->table.v[i].key.n);
	const char *near = suggest_word(names, table->table.n, given);
	if (near)
		problems_add(&r->ps, r->a, pos, "there is no %s '%.*s': did you mean '%s'?", what,
			     STR_ARG(given), near);
	else
		problems_add(&r->ps, r->a, pos, "there is no %s '%.*s' in the file", what,
			     STR_ARG(given));
}

/* How many entries the closed table k has; 0: it is not there. */
static size_t closed_entries(const struct doc *root, size_t k)
{
	const struct doc *t = doc_table(root, closed_tables[k].key);

	return t ? t->table.n : 0;
}

static void apply_set(struct reading *r, struct doc *root, size_t i)
{
	struct str rest = str_from(r->opts->sets[i]), path = str_trim(str_cut(&rest, '='));
	size_t had[CLOSED_TABLES];
	struct err err = {0};

	if (!str_is_utf8(str_from(r->opts->sets[i]))) {
		problems_add(&r->ps, r->a, set_pos(i), "the text is not UTF-8");
		return;
	}
	if (!rest.p || path.n == 0) {
		problems_add(&r->ps, r->a, set_pos(i),
			     "expected key=value, as in --set roles.trainer.count=8");
		return;
	}
	struct doc *value = set_value(rest, r->a);
	stamp(value, set_pos(i));
	for (size_t k = 0; k < CLOSED_TABLES; k++)
		had[k] = closed_entries(root, k);
	if (doc_set_path(r->a, root, path, value, &err) < 0) {
		problems_add(&r->ps, r->a, set_pos(i), "%s", err.msg);
		return;
	}
	for (size_t k = 0; k < CLOSED_TABLES; k++) {
		struct doc *t = (struct doc *)doc_table(root, closed_tables[k].key);

		if (t != value && r->closed[k] && closed_entries(root, k) > had[k]) {
			refuse_new(r, t, closed_tables[k].what, set_pos(i));
			return;
		}
	}
	stamp_way(root, value, set_pos(i));
}

static void put_variable(struct arena *a, struct doc *env, const struct env_pair *v)
{
	doc_set(a, env, str_from(v->name), doc_new_str(a, str_from(v->value)));
}

/* An env that is no table stays, for job_load() to report it. */
static void apply_env(struct reading *r, struct doc *root)
{
	const struct env_list *given = &r->opts->env;
	const struct doc *roles = doc_table(root, "roles");

	if (given->n && !doc_get(root, "env"))
		doc_set(r->a, root, STR("env"), doc_new(r->a, DOC_TABLE));
	struct doc *env = (struct doc *)doc_table(root, "env");

	for (size_t i = 0; env && i < given->n; i++) {
		put_variable(r->a, env, &given->v[i]);
		for (size_t k = 0; roles && k < roles->table.n; k++) {
			const struct doc *of = doc_table(roles->table.v[k].value, "env");

			if (of && doc_get(of, given->v[i].name))
				put_variable(r->a, (struct doc *)of, &given->v[i]);
		}
	}
}

/* A key or value of a megabyte is not shown as a whole. */
static const char *cut(struct arena *a, const char *text)
{
	size_t n = strnlen(text, MAX_TEXT + 1);

	if (n <= MAX_TEXT)
		return text;
	for (n = MAX_TEXT; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
		n--;
	return arena_printf(a, "%.*s...", (int)n, text);
}

/* "--set roles.x.y", or where else the setting is written. */
static void print_place(const struct job_options *opts, size_t set, struct buf *out)
{
	struct str rest = str_from(opts->sets[set]);

	if (opts->places) {
		escape_terminal(out, str_from(opts->places[set].text));
		opts->places[set].blamed = true;
		return;
	}
	buf_addz(out, "--set ");
	escape_terminal(out, str_trim(str_cut(&rest, '=')));
}

/* Moves the problems of settings out of the list: "--set roles.x.y: [warning: ]text" each. */
static size_t print_sets(const struct job_options *opts, struct problem *v, size_t n,
			 const char *word, struct buf *out)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].pos.line >= 0) {
			v[left++] = v[i];
			continue;
		}
		print_place(opts, (size_t) - (v[i].pos.line + 1), out);
		buf_printf(out, ": %s", word);
		escape_terminal(out, str_from(v[i].text));
		buf_addc(out, '\n');
	}
	return left;
}

void job_print_problems(const struct job_options *opts, struct problems *ps, const char *name,
			struct buf *out)
{
	ps->n = print_sets(opts, ps->v, ps->n, "", out);
	problems_print(ps, name, out);
}

void job_print_warnings(const struct job_options *opts, struct problems *ps, const char *name,
			struct buf *out)
{
	ps->nwarnings = print_sets(opts, ps->warnings, ps->nwarnings, "warning: ", out);
	problems_print_warnings(ps, name, out);
}

static const char *report(struct reading *r)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_REPORT);
	for (size_t i = 0; i < r->ps.n; i++)
		r->ps.v[i].text = cut(r->a, r->ps.v[i].text);
	job_print_problems(r->opts, &r->ps, r->name, &text);
	struct str all = buf_str(&text);
	return arena_strndup(r->a, all.p, all.n);
}

static const char *warnings(struct reading *r)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_REPORT);
	job_print_warnings(r->opts, &r->ps, r->name, &text);
	return arena_strndup(r->a, buf_str(&text).p, text.n);
}

static int fail(struct reading *r, const char **ret_text, struct err *err)
{
	size_t n = r->ps.n + r->ps.more;

	*ret_text = report(r);
	return err_set(err, ERR_INVALID, "%s has %zu problem%s", r->name, n, n == 1 ? "" : "s");
}

/* The list of the documents of a file stands nowhere in its text. */
static bool is_several(const struct doc *list)
{
	return list->pos.line == 0 && list->array.n > 1;
}

/* The first document, so that its problems are shown too. */
static struct doc *refuse_second(struct reading *r, const struct doc *all)
{
	problems_add(
		&r->ps, r->a, all->array.v[1]->pos,
		"found a second document: a job file has one, only manifests of Kubernetes may be "
		"several in a file");
	return all->array.v[0];
}

/* True: it is one.  One line, instead of one for each of its tables. */
static bool refuse_suite(struct reading *r, const struct doc *doc)
{
	const struct doc *suite = doc_table(doc, "suite");

	if (suite)
		problems_add(&r->ps, r->a, suite->pos,
			     "this is a suite, not a job: regatta suite run %s", r->name);
	return suite;
}

static int finish(struct reading *r, struct doc *doc, struct job *ret_job, struct doc **ret_doc,
		  const char **ret_text, struct err *err)
{
	struct job job;

	if (r->opts->nsets > MAX_SETS)
		return err_set(err, ERR_INVALID, "%zu times --set: at most %d; write a file",
			       r->opts->nsets, MAX_SETS);
	if (r->opts->convert && (doc->type == DOC_TABLE || doc->type == DOC_ARRAY))
		doc = r->opts->convert(doc, r->a, &r->ps);
	if (!doc || refuse_suite(r, doc))
		return fail(r, ret_text, err);
	if (doc->type == DOC_ARRAY && is_several(doc))
		doc = refuse_second(r, doc);
	for (size_t k = 0; doc->type == DOC_TABLE && k < CLOSED_TABLES; k++)
		r->closed[k] = closed_entries(doc, k) > 0;
	for (size_t i = 0; doc->type == DOC_TABLE && i < r->opts->nsets; i++)
		apply_set(r, doc, i);
	if (doc->type == DOC_TABLE)
		apply_env(r, doc);
	job_load(doc, r->opts->rules, r->a, &job, &r->ps);
	if (r->ps.n > 0)
		return fail(r, ret_text, err);
	*ret_text = warnings(r);
	*ret_job = job;
	*ret_doc = doc;
	return 0;
}

/* The error of a parser starts with "line:col: " if it is about a place. */
static int bad_text(struct reading *r, const char **ret_text, struct err *err)
{
	bool placed = err->msg[0] >= '0' && err->msg[0] <= '9';

	*ret_text = arena_printf(r->a, "%s:%s%s\n", r->name, placed ? "" : " ", err->msg);
	return err_set(err, ERR_INVALID, "%s has 1 problem", r->name);
}

static int read_text(const char *path, struct buf *text, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(err, ERR_NOT_FOUND, "job file '%s' does not exist", path);
		return err_errno(err, errno, "job file '%s'", path);
	}
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is a directory: give the job file in it",
			       path);
	if (file_read(path, text, err) == 0)
		return 0;
	/* A file that is too large is invalid input; exit code 2, not that of a full machine. */
	if (err->kind == ERR_CAPACITY)
		err->kind = ERR_INVALID;
	return err_wrap(err, "job file");
}

/* The directory that the file's name is in, without links: absolute and clean. */
static int directory_of(const char *path, struct arena *a, const char **ret_dir, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? arena_strndup(a, path, slash == path ? 1 : (size_t)(slash - path))
			  : arena_strdup(a, ".");
	CLEANUP(freep) char *real = realpath(dir, NULL);

	if (!real)
		return err_errno(err, errno, "directory '%s'", dir);
	*ret_dir = arena_strdup(a, real);
	return 0;
}

int job_read(const char *path, const struct job_options *opts, struct arena *a, struct job *ret_job,
	     struct doc **ret_doc, const char **ret_text, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct reading r = {.name = path, .opts = opts, .a = a};
	struct err own = {0};
	struct doc *all;
	struct job job;
	const char *dir = NULL;

	*ret_text = "";
	if (!err)
		err = &own;
	buf_init(&text, DOC_MAX_BYTES);
	if (read_text(path, &text, err) < 0 || directory_of(path, a, &dir, err) < 0)
		return -1;
	if (doc_parse_named(path, buf_str(&text), a, &all, err) < 0)
		return bad_text(&r, ret_text, err);
	if (finish(&r, all->array.n == 1 ? all->array.v[0] : all, &job, ret_doc, ret_text, err) < 0)
		return -1;
	job.base_dir = dir;
	*ret_job = job;
	return 0;
}

static struct doc *argv_doc(struct reading *r, const char *name, int64_t count,
			    const char *const *argv, size_t argc)
{
	struct doc *doc = doc_new(r->a, DOC_TABLE), *command = doc_new(r->a, DOC_ARRAY);

	for (size_t i = 0; i < argc; i++) {
		/* The tree goes to the master as JSON, which has no other bytes. */
		if (!str_is_utf8(str_from(argv[i])))
			problems_add(&r->ps, r->a, (struct doc_pos){0},
				     "word %zu of the command is not UTF-8: put it in a script",
				     i + 1);
		doc_append(r->a, command, doc_new_str(r->a, str_from(argv[i])));
	}
	if (name)
		doc_set(r->a, doc, STR("name"), doc_new_str(r->a, str_from(name)));
	doc_set(r->a, doc, STR("command"), command);
	doc_set(r->a, doc, STR("count"), doc_new_int(r->a, count));
	return doc;
}

/* A job that comes from no file: relative paths are below the current directory. */
static int load_here(struct reading *r, struct doc *doc, struct job *ret_job, struct doc **ret_doc,
		     const char **ret_text, struct err *err)
{
	const char *dir = NULL;
	struct job job;

	*ret_text = "";
	if (directory_of(".", r->a, &dir, err) < 0 ||
	    finish(r, doc, &job, ret_doc, ret_text, err) < 0)
		return -1;
	job.base_dir = dir;
	*ret_job = job;
	return 0;
}

int job_from_argv(const char *name, int64_t count, const char *const *argv, size_t argc,
		  const struct job_options *opts, struct arena *a, struct job *ret_job,
		  struct doc **ret_doc, const char **ret_text, struct err *err)
{
	struct reading r = {.name = JOB_OF_ARGV, .opts = opts, .a = a};

	return load_here(&r, argv_doc(&r, name, count, argv, argc), ret_job, ret_doc, ret_text,
			 err);
}

int job_from_doc(struct doc *doc, const struct job_options *opts, struct arena *a,
		 struct job *ret_job, struct doc **ret_doc, const char **ret_text, struct err *err)
{
	struct reading r = {.name = JOB_OF_ARGV, .opts = opts, .a = a};

	return load_here(&r, doc, ret_job, ret_doc, ret_text, err);
}
