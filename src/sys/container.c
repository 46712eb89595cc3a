#include "sys/container.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "sys/child_run.h"

#define RECORD_MAX (2 * PATH_MAX)
#define OUTPUT_MAX (256 * 1024)
#define MAX_LISTED 32 /* containers that one call removes */
#define ANSWER_MS 10000
#define WAIT_MS 50
#define GPUS "gpus"
#define LIMITED "limited"

static const char *const kind_names[] = {
	[CONTAINER_DOCKER] = "docker",
	[CONTAINER_NVIDIA_DOCKER] = "nvidia-docker",
	[CONTAINER_PODMAN] = "podman",
};
#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

static bool has_program(const char *name, const char *path)
{
	CLEANUP(freep) char *file = NULL;

	return child_find_command(name, path, "/", &file, NULL) == 0;
}

/* Is there what gives GPUs to the containers of this program? */
static bool gives_gpus(enum container_kind kind, const char *path)
{
	switch (kind) {
	case CONTAINER_NVIDIA_DOCKER:
		return true;
	case CONTAINER_DOCKER:
		return has_program("nvidia-container-runtime-hook", path) ||
		       has_program("nvidia-container-runtime", path) ||
		       has_program("nvidia-ctk", path);
	case CONTAINER_PODMAN:
		return file_exists("/etc/cdi/nvidia.yaml") ||
		       file_exists("/var/run/cdi/nvidia.yaml");
	}
	return false;
}

/* Docker needs a daemon, podman does not. */
static bool answers(const struct container_tool *t)
{
	static const char *const words[] = {"version", NULL};
	const struct deadline d = deadline_in(ANSWER_MS, NULL);
	CLEANUP(buf_release) struct buf out = {0};
	int code = -1;

	if (t->kind == CONTAINER_PODMAN)
		return true;
	buf_init(&out, OUTPUT_MAX);
	return container_call(t, words, &d, &out, &code, NULL) == 0 && code == 0;
}

static bool find_kind(enum container_kind kind, const char *path, bool has_gpus,
		      struct container_tool *ret)
{
	CLEANUP(freep) char *file = NULL;

	if (child_find_command(kind_names[kind], path, "/", &file, NULL) < 0)
		return false;
	*ret = (struct container_tool){.kind = kind, .gpus = has_gpus && gives_gpus(kind, path)};
	return (size_t)snprintf(ret->program, sizeof(ret->program), "%s", file) <
	       sizeof(ret->program);
}

int container_find(const char *path, bool has_gpus, struct container_tool *ret, struct err *err)
{
	static const enum container_kind order[] = {CONTAINER_NVIDIA_DOCKER, CONTAINER_DOCKER,
						    CONTAINER_PODMAN};

	struct container_tool found[sizeof(order) / sizeof(order[0])];
	size_t n = 0;

	for (size_t i = has_gpus ? 0 : 1; i < sizeof(order) / sizeof(order[0]); i++)
		n += find_kind(order[i], path, has_gpus, &found[n]);
	if (n == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "image: neither docker nor podman is installed on this machine");
	/* One that does not answer is taken only if it is the only one: it may be starting. */
	*ret = found[0];
	for (size_t i = 0; i < n && n > 1; i++)
		if (answers(&found[i])) {
			*ret = found[i];
			ret->in_place_of = i > 0 ? kind_names[found[0].kind] : NULL;
			break;
		}
	return 0;
}

/* ---- the record ---- */

int container_record_write(int dirfd, const char *name, const struct container_record *r,
			   struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(close_fdp)
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_errno(err, errno, "write '%s'", name);
	buf_init(&text, RECORD_MAX);
	buf_printf(&text, "%s\n%s\n%s\n%s\n%s\n", kind_names[r->tool.kind], r->tool.program,
		   r->label, r->tool.gpus ? GPUS : "", r->limited ? LIMITED : "");
	return file_write_all(fd, text.p, text.n, err);
}

static bool take_text(struct str line, char *to, size_t size)
{
	if (line.n == 0 || line.n >= size)
		return false;
	memcpy(to, line.p, line.n);
	to[line.n] = '\0';
	return true;
}

int container_record_read(int dirfd, const char *name, struct container_record *ret,
			  struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	size_t kind = 0;

	buf_init(&text, RECORD_MAX);
	if (file_read_at(dirfd, name, &text, err) < 0)
		return -1;
	struct str rest = buf_str(&text), word = str_cut(&rest, '\n');

	while (kind < KINDS && !str_is(word, kind_names[kind]))
		kind++;
	*ret = (struct container_record){.tool = {.kind = (enum container_kind)kind}};
	if (kind == KINDS ||
	    !take_text(str_cut(&rest, '\n'), ret->tool.program, sizeof(ret->tool.program)) ||
	    !take_text(str_cut(&rest, '\n'), ret->label, sizeof(ret->label)))
		return err_set(err, ERR_INVALID, "'%s' is damaged", name);
	ret->tool.gpus = str_is(str_cut(&rest, '\n'), GPUS);
	ret->limited = str_is(str_cut(&rest, '\n'), LIMITED);
	return 0;
}

/* ---- calls ---- */

int container_call(const struct container_tool *t, const char *const *words,
		   const struct deadline *d, struct buf *out, int *ret_code, struct err *err)
{
	const char *argv[MAX_LISTED + 8] = {t->program};

	for (size_t i = 0; words[i] && i + 2 < sizeof(argv) / sizeof(argv[0]); i++)
		argv[i + 1] = words[i];
	if (child_run_words(argv, d, out, ret_code, err) < 0)
		return err_wrap(err, "%s %s", kind_names[t->kind], words[0]);
	return 0;
}

int container_wait(const struct container_tool *t, const char *name, const struct deadline *d,
		   struct err *err)
{
	const char *words[] = {"inspect", "--format", "{{.State.Running}}", name, NULL};

	for (;;) {
		CLEANUP(buf_release) struct buf out = {0};
		int code = -1;

		buf_init(&out, OUTPUT_MAX);
		if (container_call(t, words, d, &out, &code, err) < 0)
			return -1;
		if (code == 0 && out.n > 0 && memmem(out.p, out.n, "true", 4))
			return 0;
		if (deadline_check(d, "the container of the job did not start", err) < 0)
			return -1;
		poll(NULL, 0, WAIT_MS);
	}
}

static bool is_id(struct str word)
{
	return word.n >= 12 && word.n <= 64 && strspn(word.p, "0123456789abcdef") >= word.n;
}

/* Podman warns of things that have nothing to do with the question. */
static bool is_warning(const char *line)
{
	return !*line || strstr(line, "level=warning") || strncmp(line, "WARN", 4) == 0;
}

/* The ids of the record's containers, in text. */
static int list(const struct container_record *r, const struct deadline *d, struct buf *text,
		const char *ret_ids[static MAX_LISTED], size_t *ret_n, struct err *err)
{
	char filter[sizeof("label=" CONTAINER_LABEL "=") + CONTAINER_LABEL_MAX];
	const char *words[] = {"ps", "--all", "--quiet", "--no-trunc", "--filter", filter, NULL};
	const char *other = NULL; /* the exit code may be lost (child_run.h), a message is not */
	int code;

	*ret_n = 0;
	snprintf(filter, sizeof(filter), "label=" CONTAINER_LABEL "=%s", r->label);
	if (container_call(&r->tool, words, d, text, &code, err) < 0)
		return -1;
	buf_addc(text, '\n');
	for (char *at = text->p, *end; *at && *ret_n < MAX_LISTED; at = end) {
		end = at + strcspn(at, "\n");
		if (*end)
			*end++ = '\0';
		if (is_id(str_from(at)))
			ret_ids[(*ret_n)++] = at;
		else if (!is_warning(at))
			other = at;
	}
	if (*ret_n == 0 && (code != 0 || other))
		return err_set(err, ERR_UNAVAILABLE, "%s cannot list containers: %.120s",
			       kind_names[r->tool.kind], other ? other : "it failed");
	return 0;
}

static void call_for(const struct container_record *r, const char *const *before,
		     const char *const *ids, size_t n, const struct deadline *d, struct buf *out)
{
	const char *words[MAX_LISTED + 4] = {0};
	size_t at = 0;
	int ignored;

	for (; before[at]; at++)
		words[at] = before[at];
	for (size_t i = 0; i < n; i++)
		words[at++] = ids[i];
	container_call(&r->tool, words, d, out, &ignored, NULL);
}

static bool any_oom(const struct container_record *r, const char *const *ids, size_t n,
		    const struct deadline *d)
{
	static const char *const inspect[] = {"inspect", "--format", "{{.State.OOMKilled}}", NULL};
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, OUTPUT_MAX);
	call_for(r, inspect, ids, n, d, &text);
	return text.n > 0 && memmem(text.p, text.n, "true", 4);
}

int container_remove(const struct container_record *r, const struct deadline *d, bool *ret_oom,
		     struct err *err)
{
	/* Killed first: podman's rm would ask politely, and wait for ten seconds. */
	static const char *const kill[] = {"kill", NULL};
	static const char *const rm[] = {"rm", "--force", "--volumes", NULL};

	for (;;) {
		CLEANUP(buf_release) struct buf text = {0}, answer = {0};
		const char *ids[MAX_LISTED];
		size_t n;

		buf_init(&text, OUTPUT_MAX);
		buf_init(&answer, OUTPUT_MAX);
		if (list(r, d, &text, ids, &n, err) < 0)
			return -1;
		if (n == 0)
			return 0;
		if (deadline_check(d, "the containers were not removed", err) < 0)
			return -1;
		if (r->limited && any_oom(r, ids, n, d))
			*ret_oom = true;
		call_for(r, kill, ids, n, d, &answer);
		call_for(r, rm, ids, n, d, &answer);
	}
}
