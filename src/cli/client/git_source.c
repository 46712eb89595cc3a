#include "cli/client/git_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "sys/child.h"

#define WORDS 12
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define MAX_OUTPUT 65536

extern char **environ;

struct repository {
	const char *git; /* the program */
	const char *home, *dir, *url, *rev;
	struct arena *a;
};

/* ---- the program ---- */

static const char **quiet_environment(struct arena *a)
{
	size_t n = 0;

	while (environ[n])
		n++;
	const char **env = arena_array(a, const char *, n + 2);

	for (size_t i = 0; i < n; i++)
		env[i] = environ[i];
	env[n] = "GIT_TERMINAL_PROMPT=0";
	return env;
}

static int start_git(const struct repository *r, const char *const *words, int out, pid_t *ret_pid,
		     struct err *err)
{
	const char *argv[WORDS] = {"git", "-C", r->dir};

	for (size_t i = 0; words[i]; i++)
		argv[3 + i] = words[i];
	const struct child_spec spec = {
		.file = r->git,
		.argv = argv,
		.env = quiet_environment(r->a),
		.in = -1,
		.out = out,
		.err = out,
	};

	return child_spawn(&spec, ret_pid, err);
}

/* The first line that is no warning: the reason.  What follows it is advice. */
static struct str reason_in(struct str text)
{
	while (text.p) {
		struct str line = str_trim(str_cut(&text, '\n'));

		if (line.n > 0 && !str_starts(line, STR("warning: ")) &&
		    !str_starts(line, STR("Warning: ")))
			return line;
	}
	return STR("it failed");
}

/* What git prints is appended to `out`; if it fails, the error has the reason that it gives. */
static int run_git(const struct repository *r, const char *const *words, struct buf *out,
		   struct err *err)
{
	CLEANUP(close_fdp) int fd = file_temporary(r->home, err);
	int status = 0;
	pid_t pid;

	if (fd < 0 || start_git(r, words, fd, &pid, err) < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(err, errno, "wait for git");
	buf_reset(out);
	char *room = buf_reserve(out, MAX_OUTPUT);
	size_t n = 0;

	if (!room || file_pread_full(fd, room, MAX_OUTPUT, 0, &n, err) < 0)
		return -1;
	buf_commit(out, n);
	struct str said = reason_in(buf_str(out));

	return status == 0 ? 0
			   : err_set(err, ERR_NOT_FOUND, "git %s: %.*s", words[0],
				     (int)(said.n < 160 ? said.n : 160), said.p);
}

/* ---- the repository ---- */

/* Splits "git+https://host/repository@rev".  The @ of a user before the host is none of a revision. */
static int parse_source(const char *source, struct repository *r, struct err *err)
{
	const char *url = source + strlen("git+"), *there = strstr(url, "://");
	const char *path = there ? strchr(there + 3, '/') : NULL;
	const char *at = path ? strrchr(path, '@') : NULL;

	if (!path || (strncmp(url, "https://", 8) != 0 && strncmp(url, "ssh://", 6) != 0 &&
		      strncmp(url, "file://", 7) != 0))
		return err_set(err, ERR_INVALID, "write git+https://HOST/REPOSITORY@REVISION");
	r->url = at ? arena_strndup(r->a, url, (size_t)(at - url)) : url;
	r->rev = at ? at + 1 : "HEAD";
	if (!*r->rev || *r->rev == '-')
		return err_set(err, ERR_INVALID, "what follows the @ is no revision");
	return 0;
}

/* Only the commit if the server can do that; else everything, to look the revision up here.  Branches go
 * below refs/remotes/, where names are looked up too: git refuses to fetch into the branch that is checked out. */
static int fetch_commit(const struct repository *r, struct buf *out, struct err *err)
{
	const char *one[] = {"fetch", "-q", "--depth", "1", r->url, r->rev, NULL};
	const char *all[] = {"fetch", "-q", "--tags", r->url, "+refs/heads/*:refs/remotes/*", NULL};
	const char *of_fetch[] = {"rev-parse", "-q", "--verify", "FETCH_HEAD^{commit}", NULL};
	const char *named = arena_printf(r->a, "%s^{commit}", r->rev);
	const char *of_name[] = {"rev-parse", "-q", "--verify", named, NULL};

	if (run_git(r, one, out, err) == 0)
		return run_git(r, of_fetch, out, err);
	struct err first = *err;

	if (run_git(r, all, out, err) < 0)
		return -1;
	if (run_git(r, of_name, out, err) == 0)
		return 0;
	*err = first;
	return -1;
}

static int check_out(const struct repository *r, const char **ret_commit, struct err *err)
{
	CLEANUP(freep) char *own = path_join(r->dir, ".git");
	CLEANUP(buf_release) struct buf out = {0};
	const char *init[] = {"init", "-q", NULL};

	buf_init(&out, MAX_OUTPUT + 1);
	if (run_git(r, init, &out, err) < 0 || fetch_commit(r, &out, err) < 0)
		return -1;
	const char *commit = arena_str(r->a, str_last_line(buf_str(&out))).p;
	const char *checkout[] = {"checkout", "-q", "--detach", commit, NULL};

	if (run_git(r, checkout, &out, err) < 0 || file_remove_tree(own, err) < 0)
		return -1;
	*ret_commit = commit;
	return 0;
}

int git_source_fetch(const char *source, const char *home, struct arena *a, char **ret_dir,
		     const char **ret_pinned, struct err *err)
{
	const char *path = getenv("PATH"), *commit;
	CLEANUP(freep) char *git = NULL;
	CLEANUP(freep) char *dir = path_join(home, "source-git-XXXXXX");
	struct repository r = {.a = a};

	if (parse_source(source, &r, err) < 0)
		return -1;
	if (child_find_command("git", path ? path : DEFAULT_PATH, "/", &git, NULL) < 0)
		return err_set(err, ERR_NOT_FOUND,
			       "this machine has no git to fetch it with: install git");
	if (file_mkdir_p(home, 0700, err) < 0)
		return -1;
	if (!mkdtemp(dir))
		return err_errno(err, errno, "make a directory in '%s'", home);
	r.git = git;
	r.home = home;
	r.dir = dir;
	if (check_out(&r, &commit, err) < 0) {
		(void)file_remove_tree(dir, NULL);
		return -1;
	}
	*ret_pinned = arena_printf(a, "git+%s@%s", r.url, commit);
	*ret_dir = TAKE_PTR(dir);
	return 0;
}
