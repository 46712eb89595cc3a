/*
 * regatta cp - copy files that a run has kept to this machine.
 *
 * Names and links come from the master's list and are not trusted: nothing is written outside the
 * destination, whatever the names say and whatever links are in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/below.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/download.h"
#include "cli/command/commands.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

struct copy {
	struct api *api;
	const char *run;
	const char *path; /* of the run; "": all outputs */
	const char *to;	  /* as the user wrote it */
	int top;	  /* everything is written below this directory ... */
	const char *name; /* ... under this name; "": beside each other */
	uint64_t files, bytes, left_out;
};

/* ---- what is copied ---- */

/* The part of an output's name below what the user asked for; p NULL: it is not part of that. */
static struct str below_path(const struct copy *k, struct str output)
{
	size_t n = strlen(k->path);

	if (n == 0)
		return output;
	if (!str_starts(output, str_from(k->path)))
		return (struct str){0};
	if (output.n == n)
		return (struct str){output.p + n, 0};
	return output.p[n] == '/' ? (struct str){output.p + n + 1, output.n - n - 1}
				  : (struct str){0};
}

static const struct doc *find_exact(const struct copy *k, const struct doc *files)
{
	for (size_t i = 0; i < files->array.n; i++)
		if (str_is(doc_str(files->array.v[i], "path", STR("")), k->path))
			return files->array.v[i];
	return NULL;
}

static bool has_below(const struct copy *k, const struct doc *files)
{
	for (size_t i = 0; i < files->array.n; i++)
		if (below_path(k, doc_str(files->array.v[i], "path", STR(""))).p)
			return true;
	return false;
}

/* ---- links ---- */

static size_t depth_of(const char *name)
{
	size_t n = 0;

	for (; *name; name++)
		n += *name == '/';
	return n;
}

/*
 * Does a link at this name below the destination stay inside it?  ".." may only stand in front, and not
 * more often than the link's directory is deep: then no way through other such links leads outside.
 */
static bool link_stays_below(const char *name, struct str target)
{
	struct str rest = target;
	size_t up = 0;
	bool down = false;

	if (!target.n || target.p[0] == '/')
		return false;
	while (rest.p) {
		struct str part = str_cut(&rest, '/');
		if (str_is(part, "..")) {
			if (down)
				return false;
			up++;
		} else if (part.n && !str_is(part, ".")) {
			down = true;
		}
	}
	return up <= depth_of(name);
}

static int is_link(const char *name, struct err *err)
{
	return err_set(err, ERR_CONFLICT,
		       "'%.100s' in the destination is a symbolic link: remove it or choose "
		       "another destination",
		       name);
}

/* A link on the way would lead elsewhere: the user moves it away or chooses another destination. */
static int check_way(const struct copy *k, const char *name, struct err *err)
{
	CLEANUP(freep) char *way = xstrdup(name);

	for (char *slash = strchr(way, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (below_is_link(k->top, way))
			return is_link(way, err);
		*slash = '/';
	}
	return 0;
}

/* ---- copying ---- */

static int copy_link(struct copy *k, const char *name, struct str target, struct err *err)
{
	CLEANUP(freep) char *text = xstrndup(target.p, target.n);

	if (!link_stays_below(name, target)) {
		cli_say("'%s' is left out: it is a symbolic link to '%s', outside of what is copied",
			name, text);
		k->left_out++;
		return 0;
	}
	CLEANUP(close_fdp) int dir = below_enter_parent(k->top, name, err);

	if (dir < 0)
		return -1;
	if (below_is_link(dir, path_base(name)))
		unlinkat(dir, path_base(name), 0);
	if (symlinkat(text, dir, path_base(name)) < 0)
		return err_errno(err, errno, "make the link '%.100s'", name);
	k->files++;
	return 0;
}

static char *file_url(const struct copy *k, struct str output)
{
	CLEANUP(freep) char *start = api_run_path(k->run, "/outputs/file");
	CLEANUP(freep) char *path = xstrndup(output.p, output.n);
	CLEANUP(buf_release) struct buf url = {0};

	buf_init(&url, 64 * 1024);
	buf_addz(&url, start);
	api_add_query(&url, "path", path);
	return buf_take(&url);
}

static struct download download_of(const struct doc *file, struct arena *a)
{
	struct str sha256 = doc_str(file, "sha256", STR(""));

	return (struct download){
		.executable = (doc_int(file, "mode", 0) & 0100) != 0,
		.sha256 = sha256.n ? arena_str(a, sha256).p : NULL,
	};
}

static int copy_file(struct copy *k, const char *name, const struct doc *file, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *url = file_url(k, doc_str(file, "path", STR("")));
	struct download d = download_of(file, a);
	CLEANUP(close_fdp) int dir = below_enter_parent(k->top, name, err);

	if (dir < 0)
		return -1;
	d.dir = dir;
	d.name = path_base(name);
	if (download_file(k->api, url, &d, err) < 0)
		return -1;
	k->files++;
	k->bytes += d.bytes;
	return 0;
}

static int copy_one(struct copy *k, const struct doc *file, bool links, struct err *err)
{
	struct str output = doc_str(file, "path", STR("")), link = doc_str(file, "link", STR(""));
	struct str below = below_path(k, output);

	if (!below.p || links != (link.n > 0))
		return 0;
	CLEANUP(freep)
	char *name =
		xasprintf("%s%s%.*s", k->name, k->name[0] && below.n ? "/" : "", STR_ARG(below));
	if (!path_is_below(str_from(name)))
		return err_set(
			err, ERR_PROTOCOL,
			"the list of outputs has '%.100s', which is no name below a directory",
			name);
	if (check_way(k, name, err) < 0)
		return -1;
	return links ? copy_link(k, name, link, err) : copy_file(k, name, file, err);
}

/* Would the next file fail in the same way? */
static bool stops_all(enum err_kind kind)
{
	return kind == ERR_CAPACITY || kind == ERR_CONFLICT || kind == ERR_UNAVAILABLE ||
	       kind == ERR_TIMEOUT || kind == ERR_CANCELLED;
}

/*
 * Links last: no file is then written through one.  A file that cannot be copied does not keep the others;
 * the first error is the result.
 */
static int copy_all(struct copy *k, const struct doc *files, struct err *err)
{
	struct err why;
	int rc = 0;

	for (int links = 0; links < 2; links++)
		for (size_t i = 0; i < files->array.n; i++) {
			if (copy_one(k, files->array.v[i], links, &why) == 0)
				continue;
			if (rc == 0)
				*err = why;
			else
				cli_say("%s", why.msg);
			rc = -1;
			if (stops_all(why.kind))
				return -1;
		}
	return rc;
}

/* ---- the destination ---- */

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* As cp -r: into a directory that exists, or ends with '/', under its own name; else as that name, which is not that
 * of a link such as /dev/stdout. */
static int open_destination(struct copy *k, bool one_file, struct arena *a, struct err *err)
{
	size_t n = strlen(k->to);
	bool into = is_dir(k->to) || (n && k->to[n - 1] == '/');
	const char *top = k->to;

	k->name = into && k->path[0] ? arena_strdup(a, path_base(k->path)) : "";
	if (!into && one_file) {
		const char *base = path_base(k->to);

		if (below_is_link(AT_FDCWD, k->to))
			return is_link(k->to, err);
		k->name = arena_strdup(a, base);
		top = base == k->to ? "." : arena_strndup(a, k->to, (size_t)(base - k->to));
	}
	if (file_mkdir_p(top, 0777, err) < 0)
		return -1;
	k->top = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return k->top < 0 ? err_errno(err, errno, "open '%s'", top) : 0;
}

static int copy_to_stdout(struct copy *k, const struct doc *file, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *url = file_url(k, str_from(k->path));
	struct download d = download_of(file, a);

	if (download_to(k->api, url, STDOUT_FILENO, &d, err) == 0)
		return 0;
	return cli_reader_gone() ? 0 : -1; /* as of logs: the reader has seen enough */
}

static int copy_outputs(struct copy *k, const struct doc *files, struct arena *a, struct err *err)
{
	const struct doc *exact = find_exact(k, files);
	struct str link = doc_str(exact, "link", STR(""));

	if (link.n)
		return err_set(err, ERR_INVALID,
			       "'%.80s' is a symbolic link to '%.*s': copy that one", k->path,
			       (int)(link.n < 100 ? link.n : 100), link.p);
	if (!exact && !has_below(k, files))
		return err_set(
			err, ERR_NOT_FOUND,
			"run '%.60s' has no output '%.80s': 'regatta outputs %.60s' lists them",
			k->run, k->path, k->run);
	if (strcmp(k->to, "-") == 0)
		return exact ? copy_to_stdout(k, exact, err)
			     : err_set(err, ERR_INVALID,
				       "'%.80s' is a directory: standard output takes one file",
				       k->path);
	if (open_destination(k, exact != NULL, a, err) < 0)
		return -1;
	return copy_all(k, files, err);
}

/* ---- the command ---- */

/* "RUN:PATH"; the path without slashes at its ends. */
static int read_source(const char *word, struct arena *a, const char **ret_run,
		       const char **ret_path, struct err *err)
{
	struct str rest = str_from(word), run = str_cut(&rest, ':');

	if (!rest.p || !run.n)
		return err_set(
			err, ERR_INVALID,
			"'%.80s' is not RUN:PATH, e.g. ctr:trainer-0/model.pt; 'RUN:' is all "
			"outputs",
			word);
	while (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	if (rest.n && !path_is_below(rest))
		return err_set(
			err, ERR_INVALID,
			"'%.80s': the path is that of an output, without '..' or a '/' in front",
			word);
	*ret_run = arena_str(a, run).p;
	*ret_path = rest.n ? arena_str(a, rest).p : "";
	return 0;
}

static int print_done(const struct cli_call *c, const struct copy *k)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct jsonw w;

	buf_init(&out, 64 * 1024);
	if (c->output != OUTPUT_JSON) {
		cli_say("%" PRIu64 " file%s, %" PRIu64 " bytes in '%s'", k->files,
			k->files == 1 ? "" : "s", k->bytes, k->to);
		return 0;
	}
	jsonw_init(&w, &out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", k->run);
	jsonw_kz(&w, "to", k->to);
	jsonw_kint(&w, "files", (int64_t)k->files);
	jsonw_kint(&w, "bytes", (int64_t)k->bytes);
	jsonw_kint(&w, "left_out", (int64_t)k->left_out);
	jsonw_close(&w);
	buf_addc(&out, '\n');
	return cli_print(&out);
}

int command_cp(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *id = NULL;
	struct copy k = {.api = &api, .to = call_arg(c, 1), .top = -1};
	const char *run;
	struct doc *root;
	struct err err;

	if (read_source(call_arg(c, 0), a, &run, &k.path, &err) < 0)
		return cli_fail(&err);
	if (!k.to[0]) {
		cli_say("cp: the destination has no name");
		return 2;
	}
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, run, &id, &err) < 0)
		return api_fail(&api, &err);
	k.run = id;
	CLEANUP(freep) char *url = api_run_path(id, "/outputs");
	int rc = api_get_doc(&api, url, a, &root, &err);
	const struct doc *files = rc == 0 ? doc_array(root, "files") : NULL;

	if (rc == 0)
		rc = copy_outputs(&k, files ? files : doc_new(a, DOC_ARRAY), a, &err);
	close_fdp(&k.top);
	if (rc < 0)
		return api_fail(&api, &err);
	return strcmp(k.to, "-") == 0 ? 0 : print_done(c, &k);
}
