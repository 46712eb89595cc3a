#include "cli/client/git_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/str.h"
#include "base/vec.h"
#include "fmt/jsonw.h"
#include "sys/child_run.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define GIT_MS 10000 /* for all calls together */
#define MAX_STATUS (64u << 10)
#define MAX_CONFIG (1u << 20)
#define MAX_REF 4096
#define MAX_PACKED (16u << 20)
#define MAX_FILTERS 64
#define MAX_WORDS (32 + 6 * MAX_FILTERS)
#define MAX_UNTRACKED (16u << 10) /* bytes of their names */
#define CUT "# cut here: the difference is longer than 256 KiB\n"

extern char **environ;

struct git_asked {
	struct arena *a;
	const char *dir;    /* the directory that was asked for */
	const char *gitdir; /* of HEAD */
	const char *common; /* of refs and config: the same, except in a linked work tree */
	const char *git;    /* the program; NULL: there is none */
	struct deadline limit;
	const char *filters[2 * MAX_FILTERS]; /* "filter.lfs.clean=": switches a filter off */
	size_t nfilters;
};

/* ---- the files of a repository ---- */

static bool read_small(struct arena *a, const char *path, size_t max, struct str *ret)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, max);
	if (file_read(path, &b, NULL) < 0)
		return false;
	*ret = str_trim(arena_str(a, buf_str(&b)));
	return true;
}

/* ".git" of a linked work tree is a file: "gitdir: PATH". */
static const char *git_dir_at(struct arena *a, const char *dir)
{
	const char *path = arena_printf(a, "%s/.git", dir);
	struct str text;
	struct stat st;

	if (stat(path, &st) < 0)
		return NULL;
	if (S_ISDIR(st.st_mode))
		return path;
	if (!read_small(a, path, MAX_REF, &text) || !str_starts(text, STR("gitdir: ")))
		return NULL;
	text = str_trim((struct str){text.p + 8, text.n - 8});
	CLEANUP(freep) char *joined = path_join(dir, arena_str(a, text).p);

	return arena_strdup(a, joined);
}

static bool find_repository(const char *dir, struct git_asked *r)
{
	CLEANUP(freep) char *real = realpath(dir, NULL);
	struct str common;

	for (char *end = real; real && end; *end = '\0') {
		r->gitdir = git_dir_at(r->a, real);
		if (r->gitdir)
			break;
		end = strrchr(real, '/');
		if (!end)
			break;
	}
	if (!r->gitdir)
		return false;
	r->common = r->gitdir;
	if (read_small(r->a, arena_printf(r->a, "%s/commondir", r->gitdir), MAX_REF, &common)) {
		CLEANUP(freep) char *joined = path_join(r->gitdir, arena_str(r->a, common).p);

		r->common = arena_strdup(r->a, joined);
	}
	return true;
}

static bool is_commit(struct str s)
{
	if (s.n != 40 && s.n != 64)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (hex_digit(s.p[i]) < 0)
			return false;
	return true;
}

static bool packed_commit(struct git_asked *r, struct str ref, struct str *ret)
{
	struct str text, line;

	if (!read_small(r->a, arena_printf(r->a, "%s/packed-refs", r->common), MAX_PACKED, &text))
		return false;
	while (text.p) {
		line = str_cut(&text, '\n');
		struct str commit = str_cut(&line, ' ');
		if (line.p && str_eq(str_trim(line), ref) && is_commit(commit)) {
			*ret = commit;
			return true;
		}
	}
	return false;
}

/* Without git: the commit that is checked out, as the files say. */
static void read_head(struct git_asked *r, struct git_state *g)
{
	struct str head, commit;

	if (!read_small(r->a, arena_printf(r->a, "%s/HEAD", r->gitdir), MAX_REF, &head))
		return;
	if (!str_starts(head, STR("ref: "))) {
		g->revision = is_commit(head) ? arena_str(r->a, head).p : NULL;
		return;
	}
	struct str ref = arena_str(r->a, str_trim((struct str){head.p + 5, head.n - 5}));

	if (path_is_below(ref) &&
	    (read_small(r->a, arena_printf(r->a, "%s/%s", r->common, ref.p), MAX_REF, &commit) ||
	     packed_commit(r, ref, &commit)) &&
	    is_commit(commit)) {
		g->revision = arena_str(r->a, commit).p;
		g->branch = str_starts(ref, STR("refs/heads/")) ? ref.p + 11 : NULL;
	}
}

/* ---- the program ---- */

/* What the caller's own git was told (in a hook, say) is about another repository. */
static const char **plain_environment(struct arena *a)
{
	size_t n = 0, k = 0;

	while (environ[n])
		n++;
	const char **env = arena_array(a, const char *, n + 4);

	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "GIT_", 4) != 0)
			env[k++] = environ[i];
	env[k++] = "GIT_TERMINAL_PROMPT=0";
	env[k++] = "GIT_NO_LAZY_FETCH=1";
	return env;
}

/* *ret_whole is false if it prints more than the buffer may have. */
static int run_git(const struct git_asked *r, const char *const *words, struct buf *out,
		   bool *ret_whole, struct err *err)
{
	static const char *const safe[] = {
		"git",
		"--no-pager",
		"--no-optional-locks",
		"-c",
		"core.fsmonitor=false",
		"-c",
		"core.hooksPath=/dev/null",
	};
	const char *argv[MAX_WORDS + 1] = {0};
	size_t n = 0;
	int status = 0;

	for (; n < sizeof(safe) / sizeof(safe[0]); n++)
		argv[n] = safe[n];
	for (size_t i = 0; i < r->nfilters; i++) {
		argv[n++] = "-c";
		argv[n++] = r->filters[i];
	}
	argv[n++] = "-C";
	argv[n++] = r->dir;
	for (size_t i = 0; words[i] && n < MAX_WORDS; i++)
		argv[n++] = words[i];
	const struct child_spec spec = {.file = r->git,
					.argv = argv,
					.env = plain_environment(r->a),
					.in = -1,
					.out = CHILD_KEPT,
					.err = -1};

	*ret_whole = true;
	if (child_run(spec, &r->limit, out, &status, err) < 0) {
		*ret_whole = false;
		return err->kind == ERR_CAPACITY ? 0 : err_wrap(err, "git %s", words[0]);
	}
	if (status != 0)
		return err_set(err, ERR_UNAVAILABLE, "'git %s' fails there", words[0]);
	return 0;
}

static bool has_word(struct str text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.n; i++)
		if (strncasecmp(text.p + i, word, len) == 0)
			return true;
	return false;
}

static int add_filter(struct git_asked *r, struct str name, const char *value, struct err *err)
{
	if (memchr(name.p, '=', name.n) || r->nfilters == 2 * MAX_FILTERS)
		return err_set(err, ERR_INVALID,
			       "the filters of the repository cannot be switched off");
	r->filters[r->nfilters++] = arena_printf(r->a, "%.*s=%s", STR_ARG(name), value);
	return 0;
}

/* Filters that the repository itself defines are programs of its own: they are switched off.  Those
 * of the user's settings stay. */
static int find_filters(struct git_asked *r, struct err *err)
{
	static const char *const list[] = {"config", "--list", "--show-scope", "--name-only", NULL};
	CLEANUP(buf_release) struct buf out = {0};
	struct str config = {0};
	bool whole;

	if (!read_small(r->a, arena_printf(r->a, "%s/config", r->common), MAX_CONFIG, &config) ||
	    (!has_word(config, "filter") && !has_word(config, "include") &&
	     !has_word(config, "worktreeconfig")))
		return 0;
	buf_init(&out, MAX_CONFIG);
	if (run_git(r, list, &out, &whole, err) < 0)
		return -1;
	struct str rest = buf_str(&out);

	while (rest.p) {
		struct str name = str_cut(&rest, '\n'), scope = str_cut(&name, '\t');
		bool own = str_is(scope, "local") || str_is(scope, "worktree");

		if (!own || !str_starts(name, STR("filter.")))
			continue;
		if (add_filter(r, arena_str(r->a, name),
			       str_ends(name, STR(".required")) ? "false" : "", err) < 0)
			return -1;
	}
	return 0;
}

/* A line of "status --porcelain=v2 --branch". */
static void take_status(struct arena *a, struct git_state *g, struct str line)
{
	static const struct str oid = {"# branch.oid ", 13}, head = {"# branch.head ", 14};
	struct str rest;

	if (str_starts(line, oid)) {
		rest = (struct str){line.p + oid.n, line.n - oid.n};
		g->revision = is_commit(rest) ? arena_str(a, rest).p : NULL;
	} else if (str_starts(line, head)) {
		rest = (struct str){line.p + head.n, line.n - head.n};
		g->branch = str_is(rest, "(detached)") ? NULL : arena_str(a, rest).p;
	} else if (line.n > 2 && line.p[0] != '#') {
		g->dirty = true;
		if (line.p[0] == '?' && g->diff.n + line.n < MAX_UNTRACKED)
			buf_printf(&g->diff, "# not tracked: %.*s\n", (int)line.n - 2, line.p + 2);
	}
}

static int ask_git(struct git_asked *r, struct git_state *g, struct err *err)
{
	static const char *const status[] = {"status",
					     "--porcelain=v2",
					     "--branch",
					     "--untracked-files=normal",
					     "--ignore-submodules=dirty",
					     "--",
					     ".",
					     NULL};
	static const char *const diff[] = {"diff",
					   "--no-color",
					   "--no-ext-diff",
					   "--no-textconv",
					   "--src-prefix=a/",
					   "--dst-prefix=b/",
					   "--ignore-submodules=dirty",
					   "HEAD",
					   "--",
					   ".",
					   NULL};
	CLEANUP(buf_release) struct buf out = {0};
	bool whole;

	buf_init(&out, MAX_STATUS);
	if (find_filters(r, err) < 0 || run_git(r, status, &out, &whole, err) < 0)
		return -1;
	struct str rest = buf_str(&out);

	while (rest.p)
		take_status(r->a, g, str_cut(&rest, '\n'));
	g->known = true;
	if (!g->dirty || !g->revision)
		return 0;
	if (run_git(r, diff, &g->diff, &whole, err) < 0)
		return -1;
	if (!whole) {
		g->diff.overflow = false;
		g->diff.max += sizeof(CUT);
		buf_addz(&g->diff, g->diff.n && g->diff.p[g->diff.n - 1] != '\n' ? "\n" CUT : CUT);
	}
	return 0;
}

int git_state_read(const char *dir, struct arena *a, struct git_state *ret, struct err *err)
{
	struct git_asked r = {.a = a, .dir = dir, .limit = deadline_in(GIT_MS, NULL)};
	const char *path = getenv("PATH");
	CLEANUP(freep) char *git = NULL;

	*ret = (struct git_state){0};
	buf_init(&ret->diff, GIT_STATE_DIFF_MAX);
	if (!find_repository(dir, &r))
		return 0;
	if (child_find_command("git", path ? path : DEFAULT_PATH, "/", &git, NULL) < 0) {
		read_head(&r, ret);
		return 0;
	}
	r.git = git;
	if (ask_git(&r, ret, err) == 0)
		return 0;
	if (!ret->known)
		read_head(&r, ret);
	return err_wrap(err, "state of the repository at '%.100s'", dir);
}

void git_state_release(struct git_state *g)
{
	buf_release(&g->diff);
}

void git_state_to_json(const struct git_state *g, bool with_diff, struct jsonw *w)
{
	CLEANUP(buf_release) struct buf text = {0};

	jsonw_open(w, '{');
	jsonw_kz(w, "revision", g->revision);
	if (g->branch && str_is_utf8(str_from(g->branch)))
		jsonw_kz(w, "branch", g->branch);
	if (g->known)
		jsonw_kbool(w, "dirty", g->dirty);
	if (g->diff.n && with_diff) {
		buf_init(&text, 2 * GIT_STATE_DIFF_MAX);
		b64_encode(&text, g->diff.p, g->diff.n);
		jsonw_kstr(w, "diff", buf_str(&text));
	}
	jsonw_close(w);
}
