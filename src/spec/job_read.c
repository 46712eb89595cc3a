/*
 * job_read - a job from a file or from the command line, with --set applied.
 *
 * A problem of a value from --set is reported with that --set, not with a place
 * in the file: everything that setting i put into the tree has the line
 * -(i + 1) until the tree is loaded, and 0 (unknown) afterwards.
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

struct reading {
	const char *name; /* of the file, in messages */
	const struct job_options *opts;
	struct arena *a;
	struct problems ps;
};

static struct doc_pos set_pos(size_t i)
{
	return (struct doc_pos){.line = -(int)i - 1};
}

/* Replaces every position of the tree that `from` matches by pos. */
static void stamp(struct doc *d, bool (*from)(struct doc_pos pos), struct doc_pos pos)
{
	if (from(d->pos))
		d->pos = pos;
	for (size_t i = 0; d->type == DOC_ARRAY && i < d->array.n; i++)
		stamp(d->array.v[i], from, pos);
	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++) {
		struct doc_entry *e = &d->table.v[i];
		if (from(e->key_pos))
			e->key_pos = pos;
		stamp(e->value, from, pos);
	}
}

static bool any_place(struct doc_pos pos)
{
	(void)pos;
	return true;
}

static bool place_of_set(struct doc_pos pos)
{
	return pos.line < 0;
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

/* A mistyped role must not become a new one: a setting that added an entry to roles is refused. */
static void refuse_new_role(struct reading *r, struct doc *roles, struct doc_pos pos)
{
	struct str given = roles->table.v[--roles->table.n].key;
	const char **names = arena_array(r->a, const char *, roles->table.n);

	for (size_t i = 0; i < roles->table.n; i++)
		names[i] = arena_strndup(r->a, roles->table.v[i].key.p, roles->table.v[i].key.n);
	const char *near = suggest_word(names, roles->table.n, given);
	if (near)
		problems_add(&r->ps, r->a, pos, "there is no role '%.*s': did you mean '%s'?",
			     STR_ARG(given), near);
	else
		problems_add(&r->ps, r->a, pos, "there is no role '%.*s' in the file",
			     STR_ARG(given));
}

static struct doc *roles_of(struct doc *root)
{
	for (size_t i = 0; i < root->table.n; i++)
		if (str_is(root->table.v[i].key, "roles") &&
		    root->table.v[i].value->type == DOC_TABLE)
			return root->table.v[i].value;
	return NULL;
}

static void apply_set(struct reading *r, struct doc *root, size_t i)
{
	struct str rest = str_from(r->opts->sets[i]), path = str_trim(str_cut(&rest, '='));
	struct doc *roles = roles_of(root);
	size_t nroles = roles ? roles->table.n : 0;
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
	stamp(value, any_place, set_pos(i));
	if (doc_set_path(r->a, root, path, value, &err) < 0)
		problems_add(&r->ps, r->a, set_pos(i), "%s", err.msg);
	else if (nroles > 0 && roles_of(root) == roles && roles->table.n > nroles)
		refuse_new_role(r, roles, set_pos(i));
	else
		stamp_way(root, value, set_pos(i));
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

/* "--set roles.x.y: text", or "file:line:col: text" for the others. */
static const char *report(struct reading *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct problems of_file = {.more = r->ps.more};

	buf_init(&text, MAX_REPORT);
	for (size_t i = 0; i < r->ps.n; i++) {
		struct problem *p = &r->ps.v[i];
		p->text = cut(r->a, p->text);
		if (p->pos.line >= 0) {
			of_file.v[of_file.n++] = *p;
			continue;
		}
		struct str rest = str_from(r->opts->sets[-(p->pos.line + 1)]);
		struct str path = str_trim(str_cut(&rest, '='));
		buf_addz(&text, "--set ");
		escape_terminal(&text, path);
		buf_addz(&text, ": ");
		escape_terminal(&text, str_from(p->text));
		buf_addc(&text, '\n');
	}
	problems_print(&of_file, r->name, &text);
	struct str all = buf_str(&text);
	return arena_strndup(r->a, all.p, all.n);
}

static const char *warnings(struct reading *r)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_REPORT);
	problems_print_warnings(&r->ps, r->name, &text);
	return arena_strndup(r->a, buf_str(&text).p, text.n);
}

static int fail(struct reading *r, const char **ret_text, struct err *err)
{
	size_t n = r->ps.n + r->ps.more;

	*ret_text = report(r);
	return err_set(err, ERR_INVALID, "%s has %zu problem%s", r->name, n, n == 1 ? "" : "s");
}

static int finish(struct reading *r, struct doc *doc, struct job *ret_job, struct doc **ret_doc,
		  const char **ret_text, struct err *err)
{
	struct job job;

	if (r->opts->nsets > MAX_SETS)
		return err_set(err, ERR_INVALID, "%zu times --set: at most %d; write a file",
			       r->opts->nsets, MAX_SETS);
	if (r->opts->convert && doc->type == DOC_TABLE)
		doc = r->opts->convert(doc, r->a, &r->ps);
	for (size_t i = 0; doc->type == DOC_TABLE && i < r->opts->nsets; i++)
		apply_set(r, doc, i);
	job_load(doc, r->opts->rules, r->a, &job, &r->ps);
	if (r->ps.n > 0)
		return fail(r, ret_text, err);
	if (r->opts->nsets > 0) {
		/* Loaded again without the stamps, so that the job has no positions of settings. */
		stamp(doc, place_of_set, (struct doc_pos){0});
		job_load(doc, r->opts->rules, r->a, &job, &r->ps);
	}
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
	struct doc *doc;
	struct job job;
	const char *dir = NULL;

	*ret_text = "";
	if (!err)
		err = &own;
	buf_init(&text, DOC_MAX_BYTES);
	if (read_text(path, &text, err) < 0 || directory_of(path, a, &dir, err) < 0)
		return -1;
	if (doc_parse_named(path, buf_str(&text), a, &doc, err) < 0)
		return bad_text(&r, ret_text, err);
	if (finish(&r, doc, &job, ret_doc, ret_text, err) < 0)
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

int job_from_argv(const char *name, int64_t count, const char *const *argv, size_t argc,
		  const struct job_options *opts, struct arena *a, struct job *ret_job,
		  struct doc **ret_doc, const char **ret_text, struct err *err)
{
	struct reading r = {.name = "command line", .opts = opts, .a = a};
	const char *dir = NULL;
	struct job job;

	*ret_text = "";
	if (directory_of(".", a, &dir, err) < 0)
		return -1;
	struct doc *doc = argv_doc(&r, name, count, argv, argc);
	if (finish(&r, doc, &job, ret_doc, ret_text, err) < 0)
		return -1;
	job.base_dir = dir;
	*ret_job = job;
	return 0;
}
