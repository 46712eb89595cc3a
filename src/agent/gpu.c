#include "agent/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sys/child.h"
#include "sys/loop.h"

#define ANSWER_MAX (16 * 1024)
#define ANSWER_MS 5000 /* nvidia-smi may hang with the driver */

extern char **environ;

struct gpu {
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_io *io;
	char *file;
	pid_t pid; /* 0: no query runs */
	int fd;
	struct buf text;
	struct gpu_value v[GPU_MAX];
	size_t n;
};

size_t gpu_parse(struct str text, struct gpu_value out[static GPU_MAX])
{
	size_t n = 0;

	while (text.p && text.n > 0 && n < GPU_MAX) {
		struct str line = str_cut(&text, '\n');

		str_cut(&line, ',');
		struct str util = line.p ? str_trim(str_cut(&line, ',')) : STR("");
		struct str memory = line.p ? str_trim(line) : STR("");
		struct gpu_value v;

		if (!str_to_double(util, &v.util) || !str_to_double(memory, &v.memory_bytes))
			continue;
		v.memory_bytes *= 1024.0 * 1024.0;
		out[n++] = v;
	}
	return n;
}

struct gpu *gpu_new(struct loop *l)
{
	const char *path = getenv("PATH");
	char *file;

	if (!path || child_find_command("nvidia-smi", path, "/", &file, NULL) < 0)
		return NULL;
	struct gpu *g = xcalloc(1, sizeof(*g));

	*g = (struct gpu){.loop = l, .file = file, .fd = -1};
	buf_init(&g->text, ANSWER_MAX);
	return g;
}

/* The query is over: answered, given up, or never started. */
static void settle(struct gpu *g)
{
	g->io = loop_io_free(g->io);
	g->timer = loop_timer_free(g->timer);
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
	if (g->pid > 0) {
		kill(g->pid, SIGKILL);
		/* An nvidia-smi that hangs in the driver cannot be waited for; the agent reaps it later. */
		waitpid(g->pid, NULL, WNOHANG);
	}
	g->pid = 0;
}

static void too_late(void *ctx)
{
	struct gpu *g = ctx;

	g->n = 0;
	settle(g);
}

static void answered(void *ctx, int fd, int events)
{
	struct gpu *g = ctx;
	char *room = buf_reserve(&g->text, 1024);
	ssize_t n = room ? read(fd, room, 1024) : 0;

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		buf_commit(&g->text, (size_t)n);
		return;
	}
	g->n = gpu_parse(buf_str(&g->text), g->v);
	settle(g);
}

static void ask(struct gpu *g)
{
	const char *const argv[] = {"nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used",
				    "--format=csv,noheader,nounits", NULL};
	struct child_spec spec = {.file = g->file,
				  .argv = argv,
				  .env = (const char *const *)environ,
				  .in = -1,
				  .err = -1};
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	spec.out = p[1];
	int rc = child_spawn(&spec, &g->pid, NULL);

	close(p[1]);
	if (rc < 0) {
		close(p[0]);
		return;
	}
	buf_reset(&g->text);
	g->fd = p[0];
	g->io = loop_io_new(g->loop, g->fd, LOOP_READ, answered, g);
	g->timer = loop_timer_new(g->loop, too_late, g);
	loop_timer_set(g->timer, ANSWER_MS);
}

size_t gpu_sample(struct gpu *g, struct gpu_value out[static GPU_MAX])
{
	if (g->pid == 0 && g->fd < 0)
		ask(g);
	memcpy(out, g->v, sizeof(g->v));
	return g->n;
}

bool gpu_is(const struct gpu *g, int pid)
{
	return g && g->pid > 0 && g->pid == pid;
}

void gpu_reaped(struct gpu *g, int pid)
{
	if (g && g->pid == pid)
		g->pid = 0;
}

struct gpu *gpu_free(struct gpu *g)
{
	if (!g)
		return NULL;
	settle(g);
	free(g->file);
	buf_release(&g->text);
	free(g);
	return NULL;
}
