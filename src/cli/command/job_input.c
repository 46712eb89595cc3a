#include "cli/command/job_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/command/env_input.h"
#include "cli/command/prices.h"
#include "dialect/dialect.h"
#include "driver/driver.h"
#include "driver/input_find.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "spec/tag.h"

#define DEFAULT_FILE "job.toml"
#define MAX_REPORT (1024 * 1024)
#define FIND_MS 300000 /* to list the objects of an input */

/* Lines of problems, which quote the file: escaped, their line breaks kept. */
static void print_problems(struct str text)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct err ignored;

	buf_init(&out, 4 * MAX_REPORT);
	while (text.p && text.n) {
		struct str line = str_cut(&text, '\n');
		escape_terminal(&out, line);
		buf_addc(&out, '\n');
	}
	(void)file_write_all(STDERR_FILENO, out.p, out.n, &ignored);
}

/* Options that set a key of the job. */
static const struct {
	const char *option, *key;
} option_keys[] = {
	{"engine", "engine"},
	{"kube-context", "kubernetes.context"},
	{"namespace", "kubernetes.namespace"},
};

/* With a file, -n and --name are settings like --set. */
static size_t collect_sets(const struct cli_call *c, bool from_file, const char *engine,
			   struct arena *a, const char **sets)
{
	size_t n = 0;
	const char *name = call_text(c, "name");

	if (from_file && name) {
		CLEANUP(buf_release) struct buf b = {0};
		struct jsonw w;
		buf_init(&b, 64 * 1024);
		buf_addz(&b, "name=");
		jsonw_init(&w, &b);
		jsonw_z(&w, name);
		sets[n++] = arena_strndup(a, b.p, b.n);
	}
	if (from_file && call_flag(c, "count"))
		sets[n++] = arena_printf(a, "count=%s", call_text(c, "count"));
	if (engine)
		sets[n++] = arena_printf(a, "engine=\"%s\"", engine);
	for (size_t i = 0; i < sizeof(option_keys) / sizeof(option_keys[0]); i++)
		if (call_flag(c, option_keys[i].option))
			sets[n++] = arena_printf(a, "%s=\"%s\"", option_keys[i].key,
						 call_text(c, option_keys[i].option));
	return n + call_texts(c, "set", sets + n, c->nvalues);
}

/* Those of --tag, after those that the list has already. */
static int read_tags(const struct cli_call *c, struct job_input *in, struct err *err)
{
	const char **words = arena_array(in->a, const char *, c->nvalues + 1);
	size_t n = call_texts(c, "tag", words, c->nvalues);
	const char *json;

	if (n && !in->tags)
		in->tags = doc_new(in->a, DOC_ARRAY);
	for (size_t i = 0; i < n; i++)
		doc_append(in->a, in->tags, doc_new_str(in->a, str_from(words[i])));
	return tags_read(in->tags, in->a, &json, err) < 0 ? err_wrap(err, "--tag") : 0;
}

static const char *choose_file(const struct cli_call *c, struct err *err)
{
	const char *path = call_arg(c, 0);

	if (path)
		return path;
	if (file_exists(DEFAULT_FILE))
		return DEFAULT_FILE;
	err_set(err, ERR_INVALID,
		"no job: give a FILE, or a command after '--'; 'regatta init' writes " DEFAULT_FILE);
	return NULL;
}

static int read_job(const struct cli_call *c, const char *engine, struct job_input *in,
		    const char **ret_text, struct err *err)
{
	const char **sets = arena_array(in->a, const char *, c->nvalues + 6);
	const struct job_rules rules = plan_job_rules();

	in->opts = (struct job_options){
		.sets = sets,
		.nsets = collect_sets(c, !c->has_rest, engine, in->a, sets),
		.convert = dialect_convert,
	};
	*ret_text = "";
	if (env_input_read(c, in->a, &in->opts.env, err) < 0 || read_tags(c, in, err) < 0)
		return -1;
	struct job_options opts = in->opts;
	opts.rules = &rules;

	if (c->has_rest) {
		if (call_arg(c, 0))
			return err_set(
				err, ERR_INVALID,
				"both a file '%.80s' and a command after '--': give one of them",
				call_arg(c, 0));
		if (c->nrest == 0)
			return err_set(err, ERR_INVALID, "the command after '--' is missing");
		return job_from_argv(call_text(c, "name"), call_number(c, "count", 1), c->rest,
				     c->nrest, &opts, in->a, in->job, &in->doc, ret_text, err);
	}
	in->path = choose_file(c, err);
	if (!in->path)
		return -1;
	return job_read(in->path, &opts, in->a, in->job, &in->doc, ret_text, err);
}

/* An engine whose facts are asked for here has machines that cost. */
static int read_prices(const struct cli_call *c, struct job_input *in, struct err *err)
{
	const char *path = call_text(c, "prices");
	const struct resolver *r = resolver_for(in->job->engine);

	if (!path)
		return 0;
	if (!r || !r->at_client)
		return err_set(err, ERR_INVALID, "--prices: engine %s costs nothing",
			       in->job->engine);
	return prices_read(path, in->a, &in->facts, err);
}

static int make_plan(struct job_input *in)
{
	CLEANUP(freep) struct problems *ps = xcalloc(1, sizeof(*ps));

	CLEANUP(buf_release) struct buf text = {0};
	const char *name = in->path ? in->path : JOB_OF_ARGV;
	bool ok = plan_make(in->job, in->facts, in->a, &in->plan, ps);

	buf_init(&text, MAX_REPORT);
	job_print_warnings(&in->opts, ps, name, &text);
	if (!ok)
		job_print_problems(&in->opts, ps, name, &text);
	if (text.n)
		print_problems(buf_str(&text));
	return ok ? 0 : 2;
}

/* Nodes of other machines without source have an empty work directory: a command that names a
 * file beside the job file cannot run there. */
static int check_commands(const struct job_input *in, struct err *err)
{
	const struct crew *crew = &in->plan.crew;

	if (in->job->source || plan_shares_files(in->job))
		return 0;
	for (int r = 0; r < crew->nroles; r++)
		for (size_t i = 0; i < crew->roles[r].command.n; i++) {
			const char *word = crew->roles[r].command.v[i];
			CLEANUP(freep) char *path = path_join(in->job->base_dir, word);
			struct stat st;

			if (word[0] != '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode))
				return err_set(
					err, ERR_INVALID,
					"role '%s': the nodes do not have '%.80s', which is beside the job "
					"file: source = \".\" (or --set source=.) sends it along",
					crew->roles[r].name, word);
		}
	return 0;
}

/* rc: of reading the job; text: its problems or warnings. */
static int finish(int rc, struct job_input *in, const char *text, struct err *err,
		  struct job_input *ret)
{
	int code = 0;

	if (rc < 0 && !*text)
		code = cli_fail(err);
	print_problems(str_from(text));
	if (rc < 0 && *text)
		code = err_exit_code(err->kind);
	if (rc == 0)
		code = make_plan(in);
	if (code == 0 && check_commands(in, err) < 0)
		code = cli_fail(err);
	if (code == 0)
		*ret = *in;
	else
		job_input_release(in);
	return code;
}

int job_input_read(const struct cli_call *c, struct job_input *ret)
{
	return job_input_read_for(c, NULL, ret);
}

int job_input_read_for(const struct cli_call *c, const char *engine, struct job_input *ret)
{
	struct job_input in = {.a = arena_new()};
	const char *text;
	struct err err;

	in.job = arena_new_of(in.a, struct job);
	int rc = read_job(c, engine, &in, &text, &err);

	if (rc == 0 && read_prices(c, &in, &err) < 0) {
		job_input_release(&in);
		return cli_fail(&err);
	}
	return finish(rc, &in, text, &err, ret);
}

int job_input_file(const struct cli_call *c, struct arena *a, const char *path,
		   const struct job_options *settings, struct job_input *ret)
{
	struct job_input in = {.a = a, .path = path, .job = arena_new_of(a, struct job)};
	const struct job_rules rules = plan_job_rules();
	const char *text;
	struct err err;

	in.opts = *settings;
	in.opts.convert = dialect_convert;
	struct job_options opts = in.opts;
	opts.rules = &rules;
	int rc = job_read(path, &opts, a, in.job, &in.doc, &text, &err);

	if (rc == 0 && (read_prices(c, &in, &err) < 0 || read_tags(c, &in, &err) < 0)) {
		job_input_release(&in);
		return cli_fail(&err);
	}
	return finish(rc, &in, text, &err, ret);
}

int job_input_convert(struct arena *a, struct doc *doc, job_convert_fn *convert,
		      struct job_input *ret)
{
	struct job_input in = {.a = a, .job = arena_new_of(a, struct job)};
	const struct job_rules rules = plan_job_rules();
	const struct job_options opts = {.rules = &rules, .convert = convert};
	const char *text;
	struct err err;

	int rc = job_from_doc(doc, &opts, a, in.job, &in.doc, &text, &err);
	return finish(rc, &in, text, &err, ret);
}

int job_input_again(const struct cli_call *c, const struct doc *record, const struct doc *job,
		    struct job_input *ret)
{
	struct job_input in = {.a = arena_new()};
	const char **sets = arena_array(in.a, const char *, c->nvalues + 6);
	const struct job_rules rules = plan_job_rules();
	struct str dir = doc_str(record, "base_dir", STR("/"));
	struct str source = doc_str(record, "source_sha256", STR(""));
	const char *text;
	struct err err;

	in.job = arena_new_of(in.a, struct job);
	in.opts = (struct job_options){.sets = sets,
				       .nsets = collect_sets(c, true, NULL, in.a, sets)};
	const struct doc *tags = doc_array(record, "tags");

	in.tags = tags ? doc_copy(in.a, tags) : NULL;
	if (env_input_read(c, in.a, &in.opts.env, &err) < 0 || read_tags(c, &in, &err) < 0) {
		job_input_release(&in);
		return cli_fail(&err);
	}
	struct job_options opts = in.opts;
	opts.rules = &rules;
	int rc = job_from_doc(doc_copy(in.a, job), &opts, in.a, in.job, &in.doc, &text, &err);

	in.job->base_dir = arena_str(in.a, dir).p;
	/* A source that is given is packed anew, even under the same name. */
	for (size_t i = 0; i < in.opts.nsets; i++)
		if (strncmp(sets[i], "source=", 7) == 0)
			source = STR("");
	in.source_sha256 = source.n ? arena_str(in.a, source).p : NULL;
	in.source_state = source.n ? doc_table(record, "source") : NULL;
	return finish(rc, &in, text, &err, ret);
}

int job_input_find(const struct job_input *in, const struct data_spec *d, int fd,
		   struct input_found *ret, struct err *err)
{
	const struct crew *crew = &in->plan.crew;
	const struct deadline limit = deadline_in(FIND_MS, NULL);
	/* Services get all of the data: no node has less then. */
	const struct input_question q = {
		.url = d->src,
		.in_dir = strcmp(d->path, ".") == 0,
		.shards = d->shard && crew->ncounted == crew->n ? (size_t)crew->n : 1,
		.options = plan_engine_options(in->job, in->a),
	};

	if (input_find(&q, fd, &limit, in->a, ret, err) < 0)
		return -1;
	if (d->shard && !str_ends(str_from(ret->from), STR("/")))
		return err_set(err, ERR_INVALID, "one object cannot be sharded");
	if (d->unpack && ret->objects > 1)
		return err_set(err, ERR_INVALID, "unpack: it is more than one object");
	return 0;
}

int job_input_print(const struct cli_call *c, const struct job_input *in)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		doc_to_json(in->doc, &text);
		buf_addc(&text, '\n');
	} else {
		doc_to_toml(in->doc, &text);
	}
	return cli_print(&text);
}

void job_input_release(struct job_input *in)
{
	in->a = arena_free(in->a);
}
