#include "agent/image.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/config.h"
#include "agent/environ.h"
#include "agent/packages.h"
#include "agent/places.h"
#include "agent/transfer.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "link/message.h"
#include "sys/child_run.h"
#include "sys/container.h"

#define OUTPUT_MAX (1024 * 1024)
#define REGISTRY_DIR "registry" /* with the login, while the image is pulled */
#define ASK_MS 60000
#define TRIES 3
#define TRIES_NEW 30 /* on a new machine, whose docker may still be starting */
#define PAUSE_MS 2000
#define DOCKER_HUB "docker.io"

/* ---- why an image cannot be had ---- */

static const struct {
	const char *said;
	enum err_kind kind;
	const char *why;
} reasons[] = {
	{"no space left on device", ERR_CAPACITY, "there is no space left on this machine's disk"},
	{"Cannot connect to the Docker daemon", ERR_UNAVAILABLE,
	 "docker is installed, but its daemon does not run"},
	{"permission denied while trying to connect", ERR_DENIED,
	 "this user may not use docker (is it in the group docker?)"},
	{"toomanyrequests", ERR_THROTTLED,
	 "the registry refuses so many pulls; log in with registry"},
	{"no matching manifest", ERR_INVALID, "it has no variant for this machine's processor"},
	{"no image found in manifest list", ERR_INVALID,
	 "it has no variant for this machine's processor"},
	{"invalid reference format", ERR_INVALID, "this is not the name of an image"},
	{"denied", ERR_DENIED,
	 "the registry denies it: it needs a login (registry), or does not exist"},
	{"unauthorized", ERR_DENIED,
	 "the registry denies it: it needs a login (registry), or does not exist"},
	{"no basic auth credentials", ERR_DENIED, "the registry needs a login (registry)"},
	{"manifest unknown", ERR_NOT_FOUND, "the registry has no such image or tag"},
	{"name unknown", ERR_NOT_FOUND, "the registry has no such image"},
	{"not found", ERR_NOT_FOUND, "the registry has no such image or tag"},
	{"does not exist", ERR_NOT_FOUND, "the registry has no such image"},
	{"no such host", ERR_UNAVAILABLE, "its registry cannot be found by its name"},
	{"connection refused", ERR_UNAVAILABLE, "its registry does not answer"},
	{"timeout", ERR_UNAVAILABLE, "its registry does not answer"},
	{"connection reset", ERR_UNAVAILABLE, "its registry does not answer"},
};

void image_explain(const char *image, const char *text, struct err *err)
{
	struct str last = str_last_line(str_from(text));

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strstr(text, reasons[i].said)) {
			err_set(err, reasons[i].kind, "image '%.100s': %s", image, reasons[i].why);
			return;
		}
	err_set(err, ERR_UNAVAILABLE, "image '%.60s': %.*s", image,
		last.n < 120 ? (int)last.n : 120, last.p);
}

/* ---- the program ---- */

static const char *search_path(void)
{
	const char *own = getenv("PATH");

	return own && own[0] ? own : ENVIRON_PATH;
}

static int run_step(const char *const *argv, const char *what, struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};
	const struct deadline d = deadline_in(-1, NULL);
	int code;

	buf_init(&out, OUTPUT_MAX);
	if (child_run_words(argv, &d, &out, &code, err) < 0)
		return err_wrap(err, "%s", what);
	if (code == 0)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "%s: %.*s", what,
		       STR_ARG(str_last_line(buf_str(&out))));
}

/* On a machine that was made for the run. */
static int install_docker(struct err *err)
{
	static const char *const start[] = {
		"/bin/sh", "-c",
		"systemctl start docker || service docker start || rc-service docker start", NULL};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *apt = NULL;
	bool debian = child_find_command("apt-get", search_path(), "/", &apt, NULL) == 0;
	const char *name = debian ? "docker.io" : "docker";

	if (run_step(packages_command(&name, 1, search_path(), a), "install docker", err) < 0)
		return -1;
	return run_step(start, "start docker", err);
}

static int find_program(const struct message_inputs *in, struct container_tool *ret,
			struct err *err)
{
	bool gpus = file_exists("/dev/nvidiactl");

	if (container_find(search_path(), gpus, ret, err) == 0) {
		if (ret->in_place_of)
			log_warn(
				"image: %s is installed and does not answer: %s runs the containers",
				ret->in_place_of, ret->program);
		return 0;
	}
	if (!in->new_machine)
		return -1;
	*err = (struct err){0};
	return install_docker(err) < 0 ? -1 : container_find(search_path(), gpus, ret, err);
}

static int write_record(const struct message_inputs *in, const struct agent_config *cfg,
			const char *node_dir, struct container_record *r, struct err *err)
{
	CLEANUP(freep) char *path = path_join(node_dir, LAYOUT_CONTAINER);

	r->limited = in->memory > 0;
	snprintf(r->label, sizeof(r->label), "%.80s/%.80s/%d/%.32s", cfg->run, cfg->node,
		 cfg->incarnation, cfg->mark);
	return container_record_write(AT_FDCWD, path, r, err);
}

/* ---- the login ---- */

/* "host.example:5000/a/b" -> its first part.  Without a dot, a colon or "localhost" that is part of the name. */
static const char *registry_of(const char *image, struct arena *a)
{
	size_t n = strcspn(image, "/");
	const char *host = arena_strndup(a, image, n);
	bool is_host = image[n] && (strpbrk(host, ".:") || strcmp(host, "localhost") == 0);

	return is_host ? host : DOCKER_HUB;
}

static void put_login(struct jsonw *w, const char *registry, const char *auth)
{
	jsonw_key(w, registry);
	jsonw_open(w, '{');
	jsonw_kz(w, "auth", auth);
	jsonw_close(w);
}

struct login {
	const char *user, *password;
};

static int read_login(const struct buf *text, struct arena *a, struct login *ret, struct err *err)
{
	struct doc *d;

	if (json_parse(arena_str(a, buf_str(text)), a, &d, err) < 0)
		return err_wrap(err, "the master's answer");
	ret->user = doc_str(d, "user", (struct str){0}).p;
	ret->password = doc_str(d, "password", (struct str){0}).p;
	if (!ret->user || !ret->password)
		return err_set(err, ERR_PROTOCOL, "the master's answer has no login");
	return 0;
}

/* Of a registry whose passwords are good for a while only, the master gets one now. */
static int ask_login(const struct agent_config *cfg, struct arena *a, struct login *ret,
		     struct err *err)
{
	CLEANUP(freep) char *path = NULL;
	struct http_answer answer;
	struct transfer master;
	int rc;

	transfer_init(&master, cfg, NULL);
	path = transfer_path(&master, "registry");
	const struct http_outgoing r = {
		.method = "POST",
		.path = path,
		.type = "application/json",
		.timeout_ms = ASK_MS,
		.body = STR("{}"),
	};

	http_answer_init(&answer, OUTPUT_MAX);
	while ((rc = transfer_call(&master, &r, &answer, err)) > 0)
		;
	if (rc == 0)
		rc = read_login(&answer.body, a, ret, err);
	http_answer_release(&answer);
	transfer_release(&master);
	return rc;
}

/* The file that `docker login` and `podman login` write. */
static int write_login(const struct message_inputs *in, const struct login *l, const char *dir,
		       struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf auth = {0}, out = {0};
	CLEANUP(freep) char *path = path_join(dir, "config.json");
	const char *pair = arena_printf(a, "%s:%s", l->user, l->password);
	const char *registry = registry_of(in->image, a);
	struct jsonw w;

	buf_init(&auth, OUTPUT_MAX);
	buf_init(&out, OUTPUT_MAX);
	b64_encode(&auth, pair, strlen(pair));
	buf_addc(&auth, '\0');
	jsonw_init(&w, &out);
	jsonw_open(&w, '{');
	jsonw_key(&w, "auths");
	jsonw_open(&w, '{');
	put_login(&w, registry, auth.p);
	if (strcmp(registry, DOCKER_HUB) == 0)
		put_login(&w, "https://index.docker.io/v1/", auth.p);
	jsonw_close(&w);
	jsonw_close(&w);
	return file_mkdir_p(dir, 0700, err) < 0 ? -1 : file_write(path, buf_str(&out), 0600, err);
}

/* ---- the image ---- */

static bool is_here(const struct container_tool *t, const char *image)
{
	const char *words[] = {"image", "inspect", "--format", "{{.Id}}", image, NULL};
	const struct deadline d = deadline_in(-1, NULL);
	CLEANUP(buf_release) struct buf out = {0};
	int code;

	buf_init(&out, OUTPUT_MAX);
	return container_call(t, words, &d, &out, &code, NULL) == 0 && code == 0;
}

/* Docker takes names without a registry for those of Docker Hub; podman would ask which one. */
static const char *full_name(const struct container_tool *t, const char *image, struct arena *a)
{
	bool hub = strcmp(registry_of(image, a), DOCKER_HUB) == 0 &&
		   strncmp(image, DOCKER_HUB "/", strlen(DOCKER_HUB "/")) != 0;

	if (t->kind != CONTAINER_PODMAN || !hub)
		return image;
	return arena_printf(a, DOCKER_HUB "/%s%s", strchr(image, '/') ? "" : "library/", image);
}

static int pull_once(const struct container_tool *t, const char *image, const char *login,
		     struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	const struct deadline d = deadline_in(-1, NULL);
	const char *words[8] = {0};
	size_t n = 0;
	int code;

	if (login && t->kind != CONTAINER_PODMAN) {
		words[n++] = "--config";
		words[n++] = login;
	}
	words[n++] = "pull";
	words[n++] = "--quiet";
	if (login && t->kind == CONTAINER_PODMAN) {
		words[n++] = "--authfile";
		words[n++] = arena_printf(a, "%s/config.json", login);
	}
	words[n] = full_name(t, image, a);
	buf_init(&out, OUTPUT_MAX);
	if (container_call(t, words, &d, &out, &code, err) < 0)
		return -1;
	if (code != 0)
		image_explain(image, out.p ? out.p : "", err);
	return code == 0 ? 0 : -1;
}

static bool may_pass(const struct err *err)
{
	return err->kind == ERR_UNAVAILABLE || err->kind == ERR_THROTTLED;
}

static int pull(const struct message_inputs *in, const struct container_tool *t, const char *login,
		struct err *err)
{
	int tries = in->new_machine ? TRIES_NEW : TRIES;

	while (pull_once(t, in->image, login, err) < 0) {
		if (--tries == 0 || !may_pass(err))
			return -1;
		*err = (struct err){0};
		poll(NULL, 0, PAUSE_MS);
	}
	return 0;
}

/* A copy, because a container sees neither other files of this machine nor its /proc. */
static int copy_program(const char *node_dir, struct err *err)
{
	CLEANUP(freep) char *path = path_join(node_dir, LAYOUT_INSIDE);

	if (file_copy("/proc/self/exe", path, err) < 0)
		return err_wrap(err, "image: copy this program");
	return 0;
}

/* The working directory has the same path in the container. */
static int check_mounts(const struct message_inputs *in, const struct agent_config *cfg,
			const char *node_dir, struct err *err)
{
	CLEANUP(freep) char *cwd = place_cwd(cfg, node_dir, in);
	const char *bad = strchr(cwd, ':') || strcmp(cwd, "/") == 0 ? cwd
			  : strchr(node_dir, ':')		    ? node_dir
								    : NULL;

	if (bad)
		return err_set(err, ERR_INVALID,
			       "image: a container cannot have the directory '%.120s'", bad);
	return 0;
}

int image_prepare(const struct message_inputs *in, const struct agent_config *cfg,
		  const char *node_dir, struct err *err)
{
	CLEANUP(freep) char *dir = path_join(node_dir, REGISTRY_DIR);
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct login l = {in->registry_user, in->registry_password};
	bool login = (l.user && l.password) || in->registry_login;
	struct container_record r = {0};
	int rc = 0;

	if (check_mounts(in, cfg, node_dir, err) < 0 || find_program(in, &r.tool, err) < 0)
		return -1;
	if (!is_here(&r.tool, in->image)) {
		if ((in->registry_login && ask_login(cfg, a, &l, err) < 0) ||
		    (login && write_login(in, &l, dir, err) < 0))
			return err_wrap(err, "log in to the registry");
		rc = pull(in, &r.tool, login ? dir : NULL, err);
		if (login && file_remove_tree(dir, rc == 0 ? err : NULL) < 0)
			return -1;
	}
	/* Only now: a node whose program never answered has no containers for which its removal would have to wait. */
	return rc < 0 || copy_program(node_dir, err) < 0 ? -1
							 : write_record(in, cfg, node_dir, &r, err);
}

/* ---- files of the image ---- */

static int call_checked(const struct container_record *r, const char *const *words,
			const char *image, struct err *err)
{
	const struct deadline d = deadline_in(-1, NULL);
	CLEANUP(buf_release) struct buf out = {0};
	int code;

	buf_init(&out, OUTPUT_MAX);
	if (container_call(&r->tool, words, &d, &out, &code, err) < 0)
		return -1;
	if (code == 0)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "image '%.60s': %.*s", image,
		       STR_ARG(str_last_line(buf_str(&out))));
}

/* By a container that is never started. */
int image_copy_out(const struct message_inputs *in, const char *node_dir, const char *to,
		   struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = path_join(node_dir, LAYOUT_CONTAINER);
	struct container_record r;
	struct err not_a_directory = {0};
	bool ignored = false;

	if (container_record_read(AT_FDCWD, path, &r, err) < 0)
		return -1;
	const char *name = arena_printf(a, "regatta-source-%.150s", r.label);

	for (char *p = (char *)(uintptr_t)name; *p; p++)
		if (*p == '/')
			*p = '-';
	const char *label = arena_printf(a, CONTAINER_LABEL "=%s", r.label);
	const char *create[] = {"create",  "--pull", "never",	"--name", name,
				"--label", label,    in->image, "true",	  NULL};
	const char *content[] = {"cp", arena_printf(a, "%s:%s/.", name, in->image_source), to,
				 NULL};
	const char *file[] = {"cp", arena_printf(a, "%s:%s", name, in->image_source), to, NULL};
	const struct deadline d = deadline_in(-1, NULL);
	int rc = container_remove(&r, &d, &ignored, err);

	if (rc == 0)
		rc = call_checked(&r, create, in->image, err);
	if (rc == 0)
		rc = call_checked(&r, content, in->image, &not_a_directory) == 0
			     ? 0
			     : call_checked(&r, file, in->image, err);
	return container_remove(&r, &d, &ignored, rc == 0 ? err : NULL) < 0 ? -1 : rc;
}
