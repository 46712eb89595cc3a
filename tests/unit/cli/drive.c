#include "cli/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "cli/cli.h"

#define MAX_OUTPUT (64u << 20)
#define MAX_ARGS 32
#define PATIENCE_MS 30000

/* A test that fails does not release what it looked at.  Known from here it is no leak, neither
 * in this process nor in the later children, whose own leaks are looked for when they exit. */
static void remember(const struct buf *b)
{
	static const void *kept[4096];
	static size_t n;

	kept[n++ % COUNT(kept)] = b->p;
}

void ran_release(struct ran *r)
{
	buf_release(&r->out);
	buf_release(&r->err);
}

int drive_setup(void **state)
{
	/* Nothing of the surroundings may change what is printed. */
	static const char *const unset[] = {"NO_COLOR",	   "COLUMNS",	    "LC_ALL",
					    "LC_CTYPE",	   "LANG",	    "XDG_STATE_HOME",
					    "REGATTA_PIN", "REGATTA_TOKEN", "REGATTA_MASTER",
					    "http_proxy",  "https_proxy",   "HTTPS_PROXY"};

	for (size_t i = 0; i < COUNT(unset); i++)
		unsetenv(unset[i]);
	return unit_make_dir(state);
}

int drive_teardown(void **state)
{
	struct ran r = DRIVE(state, "master", "--stop", "--output", "json");

	if (r.code != 0)
		print_error("stop the master: %.*s\n", STR_ARG(buf_str(&r.err)));
	ran_release(&r);
	return unit_remove_dir(state);
}

void home_put(void **state, const char *name, const char *text)
{
	struct err err;

	if (file_write_atomic(unit_path(state, name), str_from(text), 0600, false, &err) < 0)
		fail_msg("%s", err.msg);
}

char *home_get(void **state, const char *name)
{
	struct buf b;

	buf_init(&b, MAX_OUTPUT);
	if (file_read(unit_path(state, name), &b, NULL) < 0 || b.n == 0) {
		buf_release(&b);
		return xstrdup("");
	}
	return buf_take(&b);
}

int home_count(void **state, const char *name, const char *text)
{
	char *all = home_get(state, name);
	int n = 0;

	for (const char *p = all; (p = strstr(p, text)); p += strlen(text))
		n++;
	free(all);
	return n;
}

void home_await(void **state, const char *name, const char *text, int times)
{
	int64_t deadline = clock_boot_ms() + PATIENCE_MS;

	while (home_count(state, name, text) < times) {
		if (clock_boot_ms() > deadline)
			fail_msg("'%s' is not %d times in %s: %s", text, times, name,
				 home_get(state, name));
		poll(NULL, 0, 1);
	}
}

static void become_cli(void **state, const char *const *argv)
{
	char *words[MAX_ARGS] = {xstrdup("regatta")};
	int n = 1;

	for (; argv[n - 1] && n < MAX_ARGS - 1; n++)
		words[n] = xstrdup(argv[n - 1]);
	if (!getenv("TEST_KEEP_HOME"))
		setenv("REGATTA_HOME", *state, 1);
	int code = cli_main(n, words);
	for (int i = 0; i < n; i++)
		free(words[i]);
	fflush(NULL);
	exit(code);
}

static int temporary(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fail_msg("temporary file: %s", strerror(errno));
	return fd;
}

struct driven drive_begin(void **state, const char *const *argv)
{
	struct driven d = {.out = temporary(), .err = temporary()};

	fflush(NULL);
	d.pid = fork();
	if (d.pid != 0)
		return d;
	int null = open("/dev/null", O_RDONLY);
	const char *to = getenv("TEST_STDOUT");
	int out = to ? open(to, O_WRONLY) : d.out;
	dup2(null, 0);
	dup2(out, 1);
	dup2(d.err, 2);
	become_cli(state, argv);
	abort();
}

void drive_short_reader(void **state)
{
	const char *fifo = unit_path(state, "fifo");
	char byte;

	if (mkfifo(fifo, 0600) < 0)
		fail_msg("%s: %s", fifo, strerror(errno));
	fflush(NULL);
	if (fork() == 0)
		_exit(read(open(fifo, O_RDONLY), &byte, 1) == 1 ? 0 : 1);
	setenv("TEST_STDOUT", fifo, 1);
}

static int wait_for(pid_t pid)
{
	int64_t deadline = clock_boot_ms() + PATIENCE_MS;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_boot_ms() > deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			fail_msg("the command does not end");
		}
		poll(NULL, 0, 1);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void take_file(int fd, struct buf *out)
{
	struct err err;
	off_t size = lseek(fd, 0, SEEK_END);
	size_t n = 0;

	buf_init(out, MAX_OUTPUT);
	buf_addz(out, "");
	char *p = size > 0 ? buf_reserve(out, (size_t)size) : NULL;
	if (p && file_pread_full(fd, p, (size_t)size, 0, &n, &err) < 0)
		fail_msg("%s", err.msg);
	if (p)
		buf_commit(out, n);
	remember(out);
	close(fd);
}

void drive_await(struct driven d, const char *text)
{
	int64_t deadline = clock_boot_ms() + PATIENCE_MS;
	char said[4096];
	ssize_t n;

	while ((n = pread(d.err, said, sizeof(said), 0)) < 0 ||
	       !memmem(said, (size_t)n, text, strlen(text))) {
		if (clock_boot_ms() > deadline)
			fail_msg("it does not say '%s'", text);
		poll(NULL, 0, 1);
	}
}

struct ran drive_end(struct driven d)
{
	struct ran r = {.code = wait_for(d.pid)};

	take_file(d.out, &r.out);
	take_file(d.err, &r.err);
	return r;
}

struct ran drive(void **state, const char *const *argv)
{
	return drive_end(drive_begin(state, argv));
}

struct ran drive_tty(void **state, int columns, int rows, const char *const *argv)
{
	struct winsize ws = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
	struct ran r = {0};
	char name[64];

	buf_init(&r.out, MAX_OUTPUT);
	buf_init(&r.err, 16);
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
	    ptsname_r(master, name, sizeof(name)) != 0)
		fail_msg("pseudo terminal: %s", strerror(errno));
	ioctl(master, TIOCSWINSZ, &ws);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		int tty = open(name, O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(tty, fd);
		setenv("TERM", "xterm", 1);
		become_cli(state, argv);
	}
	char chunk[4096];
	ssize_t n;
	/* The terminal hangs up (EIO) when the last process on it has closed it. */
	while ((n = read(master, chunk, sizeof(chunk))) > 0)
		buf_add(&r.out, chunk, (size_t)n);
	remember(&r.out);
	r.code = wait_for(pid);
	close(master);
	return r;
}

void assert_has(const struct buf *b, const char *text)
{
	if (!b->n || !memmem(b->p, b->n, text, strlen(text)))
		fail_msg("'%s' is not in:\n%.*s", text, STR_ARG(buf_str(b)));
}

void assert_has_not(const struct buf *b, const char *text)
{
	if (b->n && memmem(b->p, b->n, text, strlen(text)))
		fail_msg("'%s' is in:\n%.*s", text, STR_ARG(buf_str(b)));
}

void assert_refused(void **state, int code, const char *message, const char *const *argv)
{
	struct ran r = drive(state, argv);

	assert_int_equal(r.code, code);
	assert_has(&r.err, message);
	assert_int_equal(r.out.n, 0);
	/* One line, or the details below it. */
	assert_true(r.err.n > 0 && r.err.p[r.err.n - 1] == '\n');
	ran_release(&r);
}
