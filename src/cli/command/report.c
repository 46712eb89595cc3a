/* regatta report - the report files of a run, written into its directory or another one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/download.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

static const struct {
	const char *name, *path;
} files[] = {{"report.html", "/report"}, {"metrics.csv", "/metrics.csv"}, {"summary.json", ""}};
#define FILES (sizeof(files) / sizeof(files[0]))

static int fetch(struct api *api, const char *id, size_t i, const char *dir, struct err *err)
{
	CLEANUP(freep) char *url = api_run_path(id, files[i].path);
	CLEANUP(close_fdp) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	if (download_file(api, url, &(struct download){.dir = fd, .name = files[i].name}, err) < 0)
		return err_wrap(err, "'%s'", dir);
	return 0;
}

/* The master writes the report into the run's directory. */
static int make_in_run_dir(struct api *api, const char *id, struct arena *a, const char **ret_dir,
			   struct err *err)
{
	CLEANUP(freep) char *url = api_run_path(id, "/report?files=1");
	struct doc *answer;

	if (api_get_doc(api, url, a, &answer, err) < 0)
		return -1;
	struct str dir = doc_str(answer, "dir", STR(""));
	if (!dir.n)
		return err_set(err, ERR_PROTOCOL, "the master's answer has no directory");
	*ret_dir = arena_str(a, dir).p;
	return 0;
}

/* The whole id of the run that a word means: all three files are of one run. */
static int resolve(struct api *api, const char *word, struct arena *a, const char **ret_id,
		   struct err *err)
{
	CLEANUP(freep) char *url = api_run_path(word, "");
	struct doc *run;

	if (api_get_doc(api, url, a, &run, err) < 0)
		return -1;
	*ret_id = arena_str(a, doc_str(run, "id", str_from(word))).p;
	return 0;
}

static int make_in_dir(struct api *api, const char *id, const char *dir, struct err *err)
{
	if (file_mkdir_p(dir, 0777, err) < 0)
		return -1;
	for (size_t i = 0; i < FILES; i++)
		if (fetch(api, id, i, dir, err) < 0)
			return -1;
	return 0;
}

static void print_files(const struct cli_call *c, const char *id, const char *dir, struct buf *out)
{
	struct jsonw w;

	if (c->output != OUTPUT_JSON) {
		for (size_t i = 0; i < FILES; i++) {
			CLEANUP(freep) char *path = path_join(dir, files[i].name);
			text_add_escaped(out, str_from(path));
			buf_addc(out, '\n');
		}
		return;
	}
	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", id);
	jsonw_kz(&w, "dir", dir);
	jsonw_key(&w, "files");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < FILES; i++) {
		CLEANUP(freep) char *path = path_join(dir, files[i].name);
		jsonw_z(&w, path);
	}
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int command_report(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf out = {0};
	CLEANUP(freep) char *word = NULL;
	const char *id, *dir = call_text(c, "to");
	struct err err;

	buf_init(&out, CLI_MAX_TEXT);
	if (dir && !*dir) {
		cli_say("report: the directory has no name");
		return 2;
	}
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &word, &err) < 0 ||
	    resolve(&api, word, a, &id, &err) < 0)
		return api_fail(&api, &err);
	/* The run's directory is on the machine of its master. */
	if (!dir && api_remote(&api))
		dir = id;
	if ((dir ? make_in_dir(&api, id, dir, &err) : make_in_run_dir(&api, id, a, &dir, &err)) < 0)
		return api_fail(&api, &err);
	print_files(c, id, dir, &out);
	return cli_print(&out);
}
