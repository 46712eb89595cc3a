/* exec_plugin - a program that a kubeconfig names prints the credentials of its user, for instance
 * `aws eks get-token`. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/kube/api/internal.h"
#include "fmt/doc.h"
#include "sys/child_run.h"

#define MAX_OUTPUT (256 * 1024)

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
	       struct arena *a, struct buf *out, struct err *err)
{
	const char *command = doc_str(exec, "command", STR("")).p;
	const char *path = env_get(&in->env, "PATH");
	CLEANUP(freep) char *file = NULL;
	int status = 0;

	if (!*command)
		return err_set(err, ERR_INVALID, "exec: it has no command");
	if (child_find_command(command, path ? path : "/usr/local/bin:/usr/bin:/bin", dir, &file,
			       err) < 0) {
		struct str hint = doc_str(exec, "installHint", STR(""));

		return err_set(err, ERR_INVALID, "exec: %s%s%.*s", err->msg, hint.n ? ": " : "",
			       STR_ARG(hint));
	}
	const struct child_spec spec = {.file = file,
					.argv = arguments(exec, command, a),
					.env = environment(exec, a),
					.in = -1,
					.out = CHILD_KEPT,
					.err = -1};

	if (child_run(spec, in->deadline, out, &status, err) < 0)
		return err_wrap(err, "exec: %s", command);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, ERR_DENIED, "exec: '%s' ended with %s %d: run it to see why",
			       command, WIFEXITED(status) ? "exit code" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return 0;
}

int exec_plugin_run(const struct kubeconfig_input *in, const struct doc *exec, const char *dir,
		    struct arena *a, struct kube_access *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct doc *said = NULL;

	buf_init(&out, MAX_OUTPUT);
	if (run(in, exec, dir, a, &out, err) < 0)
		return -1;
	if (json_parse(buf_str(&out), a, &said, err) < 0)
		return err_set(err, ERR_DENIED, "exec: '%s' prints no JSON",
			       doc_str(exec, "command", STR("")).p);
	const struct doc *status = doc_table(said, "status");

	ret->token = doc_str(status, "token", (struct str){0}).p;
	ret->cert = doc_str(status, "clientCertificateData", (struct str){0});
	ret->key = doc_str(status, "clientKeyData", (struct str){0});
	if (!ret->token && !ret->cert.n)
		return err_set(err, ERR_DENIED, "exec: '%s' prints no credentials",
			       doc_str(exec, "command", STR("")).p);
	return 0;
}
