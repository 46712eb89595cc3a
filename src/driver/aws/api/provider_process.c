/* credential_process: a program of the user's that prints credentials as JSON. */
#include "driver/aws/api/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"
#include "fmt/argv.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "sys/child.h"

#define MAX_OUTPUT (256 * 1024)
#define REAP_MS 20

/* What such a program may need. */
static const char *const passed[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"LANG",
	"TMPDIR",
	"AWS_PROFILE",
	"AWS_CONFIG_FILE",
	"AWS_REGION",
	"SSL_CERT_FILE",
	"https_proxy",
	"HTTPS_PROXY",
	"http_proxy",
	"HTTP_PROXY",
	"no_proxy",
	"NO_PROXY",
	"XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS",
	"AWS_SHARED_CREDENTIALS_FILE",
};

static const char **environment_for(const struct aws_search *q)
{
	size_t n = sizeof(passed) / sizeof(passed[0]), at = 0;
	const char **env = arena_array(q->a, const char *, n + 1);

	for (size_t i = 0; i < n; i++) {
		const char *value = env_get(&q->s->places.env, passed[i]);

		if (value)
			env[at++] = arena_printf(q->a, "%s=%s", passed[i], value);
	}
	return env;
}

static int start(const struct aws_search *q, const char *command, int out, pid_t *ret_pid,
		 struct err *err)
{
	CLEANUP(freep) char *file = NULL;
	const char *path = env_get(&q->s->places.env, "PATH"), *why = NULL;
	struct strs words = {0};

	if (!argv_split(str_from(command), q->a, &words, &why) || words.n == 0)
		return err_set(err, ERR_INVALID, "credential_process: %s",
			       why ? why : "no command");
	const char **argv = arena_array(q->a, const char *, words.n + 1);

	for (size_t i = 0; i < words.n; i++)
		argv[i] = words.v[i];
	if (child_find_command(argv[0], path ? path : "/usr/local/bin:/usr/bin:/bin", "/", &file,
			       err) < 0)
		return -1;
	struct child_spec spec = {.file = file,
				  .argv = argv,
				  .env = environment_for(q),
				  .in = -1,
				  .out = out,
				  .err = -1,
				  .session = true};

	return child_spawn(&spec, ret_pid, err);
}

static int read_output(int fd, const struct deadline *d, struct buf *out, struct err *err)
{
	for (;;) {
		char *room = buf_reserve(out, 4096);

		if (!room)
			return err_set(err, ERR_CAPACITY, "it prints more than %d bytes",
				       MAX_OUTPUT);
		if (deadline_poll(d, fd, POLLIN, "it did not end", err) < 0)
			return -1;
		ssize_t n = read(fd, room, 4096);

		if (n < 0 && errno != EINTR)
			return err_errno(err, errno, "read its output");
		if (n == 0)
			return 0;
		buf_commit(out, n > 0 ? (size_t)n : 0);
	}
}

/* Waits for the exit of the program; one that has closed its output and goes on is killed at the
 * deadline. */
static int reap(pid_t pid, const struct deadline *d, bool kill_it, int *ret_status, struct err *err)
{
	if (kill_it)
		kill(-pid, SIGKILL);
	for (;;) {
		pid_t got = waitpid(pid, ret_status, kill_it ? 0 : WNOHANG);

		if (got == pid)
			return 0;
		if (got < 0 && errno != EINTR) {
			*ret_status = 0; /* a process that reaps all of its children was faster */
			return 0;
		}
		if (got == 0 && deadline_check(d, "it did not end", err) < 0) {
			int ignored;

			reap(pid, d, true, &ignored, NULL);
			return -1;
		}
		if (got == 0)
			poll(NULL, 0, REAP_MS);
	}
}

static int run(const struct aws_search *q, const char *command, struct buf *out, struct err *err)
{
	CLEANUP(close_fdp) int in = -1;
	int pipes[2], status = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_errno(err, errno, "pipe");
	in = pipes[0];
	int rc = start(q, command, pipes[1], &pid, err);

	close(pipes[1]);
	if (rc < 0)
		return -1;
	rc = read_output(in, q->d, out, err);
	if (reap(pid, q->d, rc < 0, &status, rc < 0 ? NULL : err) < 0 || rc < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, ERR_DENIED, "it ended with %s %d",
			       WIFEXITED(status) ? "exit code" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return 0;
}

int provider_process(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};
	const char *command = profile_get(q->s->places.profiles, q->profile, "credential_process");
	const char *source =
		arena_printf(q->a, "credential_process of the profile '%s'", q->profile);
	struct doc *doc;

	if (!command)
		return 0;
	buf_init(&out, MAX_OUTPUT);
	if (run(q, command, &out, err) < 0)
		return err_wrap(err, "%s", source);
	if (json_parse(buf_str(&out), q->a, &doc, err) < 0 || doc_int(doc, "Version", 0) != 1)
		return err_set(err, ERR_DENIED, "%s: it prints no JSON with \"Version\": 1",
			       source);
	return provider_read(q, doc, source, ret, err) < 0 ? -1 : 1;
}
