#include "agent/container.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"

/* Names that the program itself reads: a job's value must not reach it.  A name that ends with '*' is a prefix. */
static const char *const read_by_program[] = {
	"PATH",
	"HOME",
	"TMPDIR",
	"LD_*",
	"XDG_*",
	"DOCKER_HOST",
	"DOCKER_CONFIG",
	"DOCKER_CONTEXT",
	"DOCKER_TLS*",
	"DOCKER_CERT_PATH",
	"DOCKER_API_VERSION",
	"DOCKER_DEFAULT_PLATFORM",
	"CONTAINER_HOST",
	"CONTAINERS_*",
	"STORAGE_*",
	"GODEBUG",
	"GOMAXPROCS",
	"GOGC",
	"NV_GPU",
};

static bool is_read_by_program(const char *entry)
{
	size_t name = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(read_by_program) / sizeof(read_by_program[0]); i++) {
		const char *p = read_by_program[i];
		size_t n = strlen(p);

		if (p[n - 1] == '*' ? name >= n - 1 && strncmp(entry, p, n - 1) == 0
				    : name == n && strncmp(entry, p, n) == 0)
			return true;
	}
	return false;
}

static size_t count(const char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

struct arg_list {
	const char **v;
	size_t n;
	struct arena *a;
};

static void add(struct arg_list *w, const char *word)
{
	w->v[w->n++] = word;
}

static void add_option(struct arg_list *w, const char *name, const char *value)
{
	add(w, name);
	add(w, value);
}

static void add_gpus(struct arg_list *w, const struct container_tool *t)
{
	if (!t->gpus)
		return;
	switch (t->kind) {
	case CONTAINER_DOCKER:
		add_option(w, "--gpus", "all");
		break;
	case CONTAINER_PODMAN:
		add_option(w, "--device", "nvidia.com/gpu=all");
		break;
	case CONTAINER_NVIDIA_DOCKER: /* it gives them by itself */
		break;
	}
}

/* Podman without root usually may not limit CPUs, and would start nothing. */
static void add_cpus(struct arg_list *w, const struct container_job *j)
{
	if (j->cpus && j->record->tool.kind != CONTAINER_PODMAN)
		add_option(w, "--cpuset-cpus", j->cpus);
}

/* In the user namespace of a podman without root, root is the user. */
static void add_user(struct arg_list *w, const struct container_job *j)
{
	bool mapped = j->record->tool.kind == CONTAINER_PODMAN;

	add_option(w, "--user",
		   mapped ? "0:0"
			  : arena_printf(w->a, "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)j->uid,
					 (uintmax_t)j->gid));
}

static void add_env(struct arg_list *w, const char *const *env)
{
	for (; *env; env++)
		add_option(w, "--env",
			   is_read_by_program(*env)
				   ? *env
				   : arena_strndup(w->a, *env, strcspn(*env, "=")));
}

const char *const *container_argv(const struct container_job *j, struct arena *a)
{
	const struct container_tool *t = &j->record->tool;
	struct arg_list w = {.a = a};

	w.v = arena_array(a, const char *, 2 * count(j->env) + count(j->argv) + 40);
	add(&w, t->program);
	add(&w, "run");
	if (j->memory)
		add_option(&w, "--memory", arena_printf(a, "%" PRIu64, j->memory));
	else
		add(&w, "--rm");
	add_option(&w, "--name", j->name);
	add_option(&w, "--label", arena_printf(a, CONTAINER_LABEL "=%s", j->record->label));
	add_option(&w, "--pull", "never");
	add_option(&w, "--network", "host");
	add_option(&w, "--ipc", "host");
	add_option(&w, "--log-driver", "none");
	add_option(&w, "--security-opt", "label=disable");
	add_user(&w, j);
	add_gpus(&w, t);
	add_cpus(&w, j);
	if (j->pty) {
		add(&w, "--interactive");
		add(&w, "--tty");
	}
	for (size_t i = 0; i < CONTAINER_MOUNTS && j->mounts[i]; i++)
		add_option(&w, "--volume", arena_printf(a, "%s:%s", j->mounts[i], j->mounts[i]));
	if (j->workdir)
		add_option(&w, "--workdir", j->workdir);
	add_env(&w, j->env);
	add(&w, j->image);
	for (const char *const *p = j->argv; *p; p++)
		add(&w, *p);
	return w.v;
}

const char *const *container_exec_argv(const struct container_tool *t, const char *name,
				       const char *term, const char *const *argv, struct arena *a)
{
	struct arg_list w = {.a = a, .v = arena_array(a, const char *, count(argv) + 8)};

	add(&w, t->program);
	add(&w, "exec");
	add(&w, "--interactive");
	if (term) {
		add(&w, "--tty");
		add_option(&w, "--env", arena_printf(a, "TERM=%s", term));
	}
	add(&w, name);
	for (; *argv; argv++)
		add(&w, *argv);
	return w.v;
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && strncmp(a, b, n) == 0;
}

const char *const *container_env(const struct container_job *j, const char *const *own,
				 struct arena *a)
{
	const char **v = arena_array(a, const char *, count(own) + count(j->env) + 1);
	size_t n = 0;

	for (const char *const *e = j->env; *e; e++)
		if (!is_read_by_program(*e))
			v[n++] = *e;
	size_t given = n;

	for (; *own; own++) {
		bool replaced = false;

		for (size_t i = 0; i < given; i++)
			replaced = replaced || same_name(v[i], *own);
		if (!replaced)
			v[n++] = *own;
	}
	return v;
}
