/* exec_plugin - a program that a kubeconfig names prints the credentials of its user, for instance
 * `aws eks get-token`.  They may expire before a run has ended: those of EKS do after fourteen minutes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "driver/kube/api/internal.h"
#include "fmt/doc.h"
#include "net/digest.h"
#include "sys/child_run.h"
#include "sys/machine.h"

#define MAX_OUTPUT (256 * 1024)
#define EARLY_MS 60000 /* before it expires: clocks differ, and calls take a while */
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

extern char **environ;

static bool is_set_by(const struct doc *env, struct str name)
{
	for (size_t i = 0; env && i < env->array.n; i++)
		if (str_eq(doc_str(env->array.v[i], "name", STR("")), name))
			return true;
	return false;
}

/* The environment of this process, with the variables of the configuration. */
static const char **environment(const struct doc *exec, struct arena *a)
{
	const struct doc *env = doc_array(exec, "env");
	size_t n = 0, at = 0;

	while (environ[n])
		n++;
	const char **all = arena_array(a, const char *, n + (env ? env->array.n : 0) + 2);

	for (size_t i = 0; i < n; i++) {
		struct str rest = str_from(environ[i]), name = str_cut(&rest, '=');

		if (!is_set_by(env, name))
			all[at++] = environ[i];
	}
	for (size_t i = 0; env && i < env->array.n; i++)
		all[at++] = arena_printf(a, "%s=%s", doc_str(env->array.v[i], "name", STR("")).p,
					 doc_str(env->array.v[i], "value", STR("")).p);
	all[at] = arena_printf(
		a,
		"KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\","
		"\"spec\":{\"interactive\":false}}",
		doc_str(exec, "apiVersion", STR("client.authentication.k8s.io/v1")).p);
	return all;
}

static const char **arguments(const struct doc *exec, const char *command, struct arena *a)
{
	const struct doc *args = doc_array(exec, "args");
	size_t n = args ? args->array.n : 0;
	const char **argv = arena_array(a, const char *, n + 2);

	argv[0] = command;
	for (size_t i = 0; i < n; i++)
		argv[i + 1] = args->array.v[i]->type == DOC_STRING ? args->array.v[i]->s.p : "";
	return argv;
}

static int run(const struct kubeconfig_input *in, const struct doc *exec, const char *dir,
	       struct arena *a, struct buf *out, const char **ret_file, struct err *err)
{
	const char *command = doc_str(exec, "command", STR("")).p;
	const char *path = env_get(&in->env, "PATH");
	CLEANUP(freep) char *file = NULL;

	if (!*command)
		return err_set(err, ERR_INVALID, "exec: it has no command");
	if (child_find_command(command, path ? path : "/usr/local/bin:/usr/bin:/bin", dir, &file,
			       err) < 0) {
		struct str hint = arena_line(a, str_trim(doc_str(exec, "installHint", STR(""))));

		return err_set(err, ERR_INVALID, "exec: %s%s%.*s", err->msg, hint.n ? ": " : "",
			       STR_ARG(hint));
	}
	const struct child_spec spec = {.file = file,
					.argv = arguments(exec, command, a),
					.env = environment(exec, a),
					.in = -1};

	if (child_run_helper(spec, in->deadline, out, err) < 0)
		return err_wrap(err, "exec: '%s'", command);
	*ret_file = arena_strdup(a, file);
	return 0;
}

/* This machine and this user, as a digest.  Where a machine has no name for good, as in many containers, it is
 * known until it boots again. */
static const char *machine_here(struct arena *a)
{
	CLEANUP(buf_release) struct buf text = {0};
	uint8_t digest[SHA256_BYTES];
	char *hex = arena_alloc(a, SHA256_TEXT), id[MACHINE_ID_LEN + 1], host[256] = "";

	buf_init(&text, 4096);
	if (machine_id(id)) {
		buf_addz(&text, id);
	} else {
		(void)gethostname(host, sizeof(host) - 1);
		if (file_read(BOOT_ID, &text, NULL) < 0)
			return "";
	}
	buf_printf(&text, " regatta kube %s %u", host, (unsigned)getuid());
	sha256_of(buf_str(&text).p, text.n, digest);
	hex_encode(digest, sizeof(digest), hex);
	return hex;
}

/* How to make new ones, if they expire. */
static struct kube_renewal renewal_of(const struct doc *exec, const char *file,
				      const struct doc *status, struct arena *a)
{
	struct kube_renewal r = {.machine = machine_here(a)};
	CLEANUP(freep) char *here = getcwd(NULL, 0);
	struct doc *absolute;

	if (!clock_parse(doc_str(status, "expirationTimestamp", STR("")), &r.expires_ms) ||
	    !*r.machine || !here)
		return (struct kube_renewal){0};
	CLEANUP(freep) char *path = path_join(here, file); /* an absolute one stays */

	absolute = doc_copy(a, exec);
	doc_set(a, absolute, STR("command"), doc_new_str(a, arena_str(a, str_from(path))));
	r.exec = absolute;
	return r;
}

int exec_plugin_run(const struct kubeconfig_input *in, const struct doc *exec, const char *dir,
		    struct arena *a, struct kube_access *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct doc *said = NULL;
	const char *file;

	buf_init(&out, MAX_OUTPUT);
	if (run(in, exec, dir, a, &out, &file, err) < 0)
		return -1;
	if (json_parse(buf_str(&out), a, &said, err) < 0)
		return err_set(err, ERR_DENIED, "exec: '%s' prints no JSON: run it to see why",
			       doc_str(exec, "command", STR("")).p);
	const struct doc *status = doc_table(said, "status");

	ret->token = doc_str(status, "token", (struct str){0}).p;
	ret->cert = doc_str(status, "clientCertificateData", (struct str){0});
	ret->key = doc_str(status, "clientKeyData", (struct str){0});
	if (!ret->token && !ret->cert.n)
		return err_set(err, ERR_DENIED, "exec: '%s' prints no credentials",
			       doc_str(exec, "command", STR("")).p);
	ret->renewal = renewal_of(exec, file, status, a);
	return 0;
}

/* ---- what it printed last, for all threads ---- */

#define KEPT 8 /* programs; more are run again for each call */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of kept */
static struct kept {
	char *exec; /* JSON; NULL: free */
	char *token, *cert, *key;
	int64_t expires_ms;
} kept[KEPT];

static bool holds(int64_t expires_ms)
{
	return clock_wall_ms() + EARLY_MS < expires_ms;
}

static bool take_kept(const char *exec, struct arena *a, struct kube_access *ret)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < KEPT && !found; i++) {
		const struct kept *k = &kept[i];

		if (!k->exec || strcmp(k->exec, exec) != 0 || !holds(k->expires_ms))
			continue;
		found = true;
		ret->token = k->token ? arena_strdup(a, k->token) : NULL;
		ret->cert = arena_str(a, str_from(k->cert));
		ret->key = arena_str(a, str_from(k->key));
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* In the place of what it printed before, or of what has expired. */
static void keep(const char *exec, const struct kube_access *x)
{
	struct kept *to = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < KEPT; i++)
		if (kept[i].exec && strcmp(kept[i].exec, exec) == 0)
			to = &kept[i];
	for (size_t i = 0; i < KEPT && !to; i++)
		if (!kept[i].exec || !holds(kept[i].expires_ms))
			to = &kept[i];
	if (to) {
		free(to->exec);
		free(to->token);
		free(to->cert);
		free(to->key);
		*to = (struct kept){.exec = xstrdup(exec),
				    .token = x->token ? xstrdup(x->token) : NULL,
				    .cert = xstrdup(x->cert.n ? x->cert.p : ""),
				    .key = xstrdup(x->key.n ? x->key.p : ""),
				    .expires_ms = x->renewal.expires_ms};
	}
	pthread_mutex_unlock(&lock);
}

int exec_plugin_renew(struct kube_access *x, const struct deadline *d, struct arena *a,
		      struct err *err)
{
	const struct kubeconfig_input in = {.deadline = d};
	const struct doc *exec = x->renewal.exec;

	if (!exec || holds(x->renewal.expires_ms) ||
	    strcmp(x->renewal.machine, machine_here(a)) != 0)
		return 0;
	const char *text = doc_json_text(a, exec);

	if (take_kept(text, a, x))
		return 0;
	if (exec_plugin_run(&in, exec, "/", a, x, err) < 0)
		return -1;
	if (x->renewal.exec)
		keep(text, x);
	return 0;
}
