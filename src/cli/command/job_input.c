#include "cli/command/job_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "dialect/dialect.h"
#include "fmt/jsonw.h"

#define DEFAULT_FILE "job.toml"
#define MAX_REPORT (1024 * 1024)

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

/* With a file, -n and --name are settings like --set. */
static size_t collect_sets(const struct cli_call *c, bool from_file, struct arena *a,
			   const char **sets)
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
	if (call_flag(c, "engine"))
		sets[n++] = arena_printf(a, "engine=\"%s\"", call_text(c, "engine"));
	return n + call_texts(c, "set", sets + n, c->nvalues);
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

static int read_job(const struct cli_call *c, struct job_input *in, const char **ret_text,
		    struct err *err)
{
	const char **sets = arena_array(in->a, const char *, c->nvalues + 3);
	const struct job_rules rules = plan_job_rules();
	const struct job_options opts = {
		.sets = sets,
		.nsets = collect_sets(c, !c->has_rest, in->a, sets),
		.rules = &rules,
		.convert = dialect_convert,
	};

	*ret_text = "";
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

static int make_plan(struct job_input *in)
{
	CLEANUP(freep) struct problems *ps = xcalloc(1, sizeof(*ps));

	CLEANUP(buf_release) struct buf text = {0};
	const char *name = in->path ? in->path : "command line";
	bool ok = plan_make(in->job, NULL, in->a, &in->plan, ps);

	buf_init(&text, MAX_REPORT);
	problems_print_warnings(ps, name, &text);
	if (!ok)
		problems_print(ps, name, &text);
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

int job_input_read(const struct cli_call *c, struct job_input *ret)
{
	struct job_input in = {.a = arena_new()};
	const char *text;
	struct err err;
	int code = 0;

	in.job = arena_new_of(in.a, struct job);
	if (read_job(c, &in, &text, &err) < 0) {
		if (*text)
			print_problems(str_from(text));
		code = *text ? err_exit_code(err.kind) : cli_fail(&err);
	} else {
		print_problems(str_from(text));
		code = make_plan(&in);
		if (code == 0 && check_commands(&in, &err) < 0)
			code = cli_fail(&err);
	}
	if (code != 0) {
		job_input_release(&in);
		return code;
	}
	*ret = in;
	return 0;
}

void job_input_release(struct job_input *in)
{
	in->a = arena_free(in->a);
}
