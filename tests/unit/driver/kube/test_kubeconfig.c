/* Which cluster, as whom: the files of KUBECONFIG, and the account of a pod. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "driver/driver.h"
#include "driver/kube/api/access.h"
#include "fmt/doc.h"

static struct arena *arena;
static char *dir;
static const char *variables[8][2];

static int setup(void **state)
{
	void *made = NULL;

	(void)state;
	if (unit_make_dir(&made) < 0)
		return -1;
	dir = made;
	arena = arena_new();
	memset(variables, 0, sizeof(variables));
	variables[0][0] = "HOME";
	variables[0][1] = dir;
	return 0;
}

static int teardown(void **state)
{
	void *made = dir;

	(void)state;
	arena = arena_free(arena);
	return unit_remove_dir(&made);
}

static const char *lookup(void *ctx, const char *name)
{
	(void)ctx;
	for (size_t i = 0; i < 8; i++)
		if (variables[i][0] && strcmp(variables[i][0], name) == 0)
			return variables[i][1];
	return NULL;
}

static void set(size_t i, const char *name, const char *value)
{
	variables[i][0] = name;
	variables[i][1] = value;
}

static const char *write_file(const char *name, const char *text)
{
	const char *path = arena_printf(arena, "%s/%s", dir, name);

	assert_int_equal(file_write(path, str_from(text), 0700, NULL), 0);
	return path;
}

static int read_with(const char *context, const char *namespace, struct kube_access *ret,
		     struct err *err)
{
	const struct deadline d = deadline_in(20000, NULL);
	const struct kubeconfig_input in = {
		.env = {lookup, NULL}, .context = context, .namespace = namespace, .deadline = &d};

	return kubeconfig_read(&in, arena, ret, err);
}

static struct kube_access read_config(const char *context, const char *namespace)
{
	struct kube_access x;
	struct err err;

	if (read_with(context, namespace, &x, &err) < 0)
		fail_msg("%s", err.msg);
	return x;
}

static void refused(const char *context, enum err_kind kind, const char *words)
{
	struct kube_access x;
	struct err err = {0};

	assert_int_equal(read_with(context, NULL, &x, &err), -1);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is not in '%s'", words, err.msg);
	assert_int_equal(err.kind, kind);
}

#define ONE                                                                                        \
	"apiVersion: v1\nkind: Config\ncurrent-context: a\n"                                       \
	"clusters:\n- name: c\n  cluster: {server: \"https://one:6443\", "                         \
	"certificate-authority-data: LS0tLS1CRUdJTiBDQQ==}\n"                                      \
	"users:\n- name: u\n  user: {token: secret}\n"                                             \
	"contexts:\n- name: a\n  context: {cluster: c, user: u, namespace: team}\n"                \
	"- name: plain\n  context: {cluster: c}\n"

static void the_current_context_says_server_namespace_and_token(void **state)
{
	(void)state;
	set(1, "KUBECONFIG", write_file("config", ONE));
	struct kube_access x = read_config(NULL, NULL);

	assert_string_equal(x.server, "https://one:6443");
	assert_string_equal(x.namespace, "team");
	assert_string_equal(x.token, "secret");
	assert_string_equal(x.context, "a");
	assert_true(str_is(x.ca, "-----BEGIN CA"));
	assert_false(x.insecure);
	x = read_config("plain", NULL);
	assert_string_equal(x.namespace, "default");
	assert_null(x.token);
	x = read_config("plain", "other");
	assert_string_equal(x.namespace, "other");
}

static void several_files_are_merged_and_the_first_wins(void **state)
{
	const char *one = write_file(
		"one", "current-context: a\nusers:\n- name: u\n  user: {token: first}\n");
	const char *two = write_file("two", ONE);

	(void)state;
	set(1, "KUBECONFIG", arena_printf(arena, "%s/missing:%s:%s", dir, one, two));
	assert_string_equal(read_config(NULL, NULL).token, "first");
	assert_string_equal(read_config(NULL, NULL).server, "https://one:6443");
}

static void without_the_variable_it_is_the_file_in_the_home(void **state)
{
	struct err err;

	(void)state;
	assert_false(kubeconfig_exists(&(struct env_lookup){lookup, NULL}));
	assert_int_equal(file_mkdir_p(arena_printf(arena, "%s/.kube", dir), 0700, &err), 0);
	write_file(".kube/config", ONE);
	assert_true(kubeconfig_exists(&(struct env_lookup){lookup, NULL}));
	assert_string_equal(read_config(NULL, NULL).server, "https://one:6443");
}

#define WITH_USER(user)                                                                            \
	"current-context: a\nclusters:\n- name: c\n  cluster: {server: \"https://x\", "            \
	"insecure-skip-tls-verify: true, tls-server-name: s, proxy-url: \"http://p\"}\n"           \
	"users:\n- name: u\n  user: " user "\n"                                                    \
	"contexts:\n- name: a\n  context: {cluster: c, user: u}\n"

static void certificates_and_token_files_are_beside_their_file(void **state)
{
	(void)state;
	write_file("cert.pem", "-----BEGIN CERT");
	write_file("token", "from file\n");
	set(1, "KUBECONFIG",
	    write_file(
		    "config",
		    WITH_USER(
			    "{client-certificate: cert.pem, client-key-data: LS0tLS1CRUdJTiBLRVk=, "
			    "tokenFile: token}")));
	struct kube_access x = read_config(NULL, NULL);

	assert_true(str_is(x.cert, "-----BEGIN CERT"));
	assert_true(str_is(x.key, "-----BEGIN KEY"));
	assert_string_equal(x.token, "from file");
	assert_true(x.insecure);
	assert_string_equal(x.server_name, "s");
	assert_string_equal(x.proxy, "http://p");
}

static void a_program_of_the_configuration_prints_the_token(void **state)
{
	(void)state;
	write_file(
		"plugin",
		"#!/bin/sh\n"
		"[ \"$A $1\" = \"set get-token\" ] && [ -n \"$KUBERNETES_EXEC_INFO\" ] || exit 3\n"
		"echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"printed\"}}'\n");
	set(1, "KUBECONFIG",
	    write_file("config", WITH_USER("{exec: {apiVersion: client.authentication.k8s.io/v1, "
					   "command: ./plugin, args: [get-token], env: [{name: A, "
					   "value: set}]}}")));
	assert_string_equal(read_config(NULL, NULL).token, "printed");
}

#define EXPIRES(token, when)                                                                       \
	"{\"status\":{\"token\":\"" token "\",\"expirationTimestamp\":\"" when "\"}}"

static struct err take_err;

static const char *token_taken(const char *json)
{
	struct deadline d = deadline_in(20000, NULL);
	struct kube_access x;

	take_err = (struct err){0};
	return access_from_json(json, &d, arena, &x, &take_err) < 0 ? NULL : x.token;
}

/* What `regatta run` sends, made by a program whose first answer has expired. */
static const char *expired_access(const char *plugin)
{
	write_file("answer", EXPIRES("first", "2020-01-01T00:00:00Z"));
	write_file(plugin,
		   arena_printf(arena, "#!/bin/sh\necho x >>'%s/runs'\ncat '%s/answer' || exit 3\n",
				dir, dir));
	set(1, "KUBECONFIG",
	    write_file("config",
		       arena_printf(arena, WITH_USER("{exec: {command: ./%s}}"), plugin)));
	struct kube_access x = read_config(NULL, NULL);

	assert_string_equal(x.token, "first");
	return doc_json_text(arena, access_to_doc(&x, arena));
}

static int64_t runs(void)
{
	struct stat st;

	assert_int_equal(stat(arena_printf(arena, "%s/runs", dir), &st), 0);
	return st.st_size / 2;
}

static void what_has_expired_is_made_anew_by_the_same_program(void **state)
{
	(void)state;
	const char *json = expired_access("plugin");

	write_file("answer", EXPIRES("second", "2999-01-01T00:00:00Z"));
	assert_string_equal(token_taken(json), "second");
	assert_int_equal(runs(), 2);
	write_file("answer", EXPIRES("third", "2999-01-01T00:00:00Z"));
	assert_string_equal(token_taken(json), "second"); /* it still holds */
	assert_int_equal(runs(), 2);
}

/* The master's loop opens logs: it must not wait for a program of the user. */
static void a_log_is_opened_without_the_program_and_read_with_it(void **state)
{
	(void)state;
	struct driver_row row = {
		.kind = "kube.job",
		.name = "w",
		.run = "r1",
		.install = "i1",
		.spec = "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"w\"}}",
		.credentials = expired_access("of-a-log"),
	};
	struct deadline d = deadline_in(20000, NULL);
	struct err err = {0};
	struct buf out;

	assert_int_equal(runs(), 1);
	struct driver_log *l = kube_job_driver.log_open(&row, "p-0/main", "");

	assert_int_equal(runs(), 1);
	unlink(arena_printf(arena, "%s/answer", dir));
	buf_init(&out, 1 << 20);
	assert_int_equal(kube_job_driver.log_read(l, 100, &d, &out, &err), -1);
	assert_non_null(strstr(err.msg, "ended with exit code 3"));
	assert_int_equal(runs(), 2);
	assert_int_equal(kube_job_driver.log_read(l, 100, &d, &out, &err), -1);
	assert_int_equal(runs(), 3); /* and is not given up */
	kube_job_driver.log_free(l);
	buf_release(&out);
}

static void a_program_that_gives_nothing_new_is_named(void **state)
{
	(void)state;
	const char *json = expired_access("later-gone");

	unlink(arena_printf(arena, "%s/answer", dir));
	assert_null(token_taken(json));
	assert_int_equal(take_err.kind, ERR_DENIED);
	assert_non_null(strstr(take_err.msg, "the credentials of the run have expired: exec: "));
	assert_non_null(strstr(take_err.msg, "ended with exit code 3"));
}

/* A team's master has credentials of its own, and must not use them for somebody else's run. */
static void only_the_machine_of_the_kubeconfig_runs_its_program(void **state)
{
	struct doc *d = NULL;
	struct err err;

	(void)state;
	assert_int_equal(json_parse(str_from(expired_access("plugin")), arena, &d, &err), 0);
	doc_set(arena, (struct doc *)doc_table(d, "renewal"), STR("machine"),
		doc_new_str(arena, STR("another")));
	assert_string_equal(token_taken(doc_json_text(arena, d)), "first");
	assert_int_equal(runs(), 1);
}

static void a_program_that_fails_or_is_missing_is_named(void **state)
{
	(void)state;
	write_file("fails", "#!/bin/sh\nexit 3\n");
	write_file("complains",
		   "#!/bin/sh\nseq 1000 >&2\necho 'the session has expired' >&2\nexit 3\n");
	write_file("dies", "#!/bin/sh\necho no >&2\nkill -9 $$\n");
	/* Errors are read while its output is closed, too: nobody is held up by a pipe that is full. */
	write_file("talks", "#!/bin/sh\nexec >&-\nseq 100000 >&2\necho the reason >/dev/stderr\n"
			    "printf '\\n \\n' >&2\nexit 3\n");
	write_file("rambles", "#!/bin/sh\nprintf 'most\\rTHE \\0START %01000d' 0 >&2\nexit 3\n");
	write_file("mute", "#!/bin/sh\necho '{}'\n");
	write_file("babbles", "#!/bin/sh\necho no\n");
	set(1, "KUBECONFIG", write_file("config", WITH_USER("{exec: {command: ./fails}}")));
	refused(NULL, ERR_DENIED, "'./fails': it ended with exit code 3: run it to see why");
	write_file("config", WITH_USER("{exec: {command: ./complains}}"));
	refused(NULL, ERR_DENIED,
		"'./complains': it ended with exit code 3: the session has expired");
	write_file("config", WITH_USER("{exec: {command: ./dies}}"));
	refused(NULL, ERR_DENIED, "'./dies': it ended with signal 9: no");
	write_file("config", WITH_USER("{exec: {command: ./talks}}"));
	refused(NULL, ERR_DENIED, "'./talks': it ended with exit code 3: the reason");
	write_file("config", WITH_USER("{exec: {command: ./rambles}}"));
	refused(NULL, ERR_DENIED, "'./rambles': it ended with exit code 3: THE START 000");
	write_file("config", WITH_USER("{exec: {command: ./mute}}"));
	refused(NULL, ERR_DENIED, "prints no credentials");
	write_file("config", WITH_USER("{exec: {command: ./babbles}}"));
	refused(NULL, ERR_DENIED, "prints no JSON");
	write_file("config",
		   WITH_USER("{exec: {command: ./nowhere, installHint: \"get\\nit\\n\"}}"));
	refused(NULL, ERR_INVALID, ": get it");
	write_file("config", WITH_USER("{exec: {args: [x]}}"));
	refused(NULL, ERR_INVALID, "no command");
	write_file("config", WITH_USER("{auth-provider: {name: gcp}}"));
	refused(NULL, ERR_INVALID, "auth-provider");
}

static void what_is_missing_is_said(void **state)
{
	(void)state;
	set(1, "KUBECONFIG", arena_printf(arena, "%s/none", dir));
	refused(NULL, ERR_INVALID, "there is no kubeconfig");
	set(1, "KUBECONFIG", write_file("config", "apiVersion: v1\n"));
	refused(NULL, ERR_INVALID, "no current context");
	write_file("config", ONE);
	refused("other", ERR_INVALID, "no context 'other'");
	write_file("config", "current-context: a\ncontexts:\n- name: a\n  context: {cluster: c}\n");
	refused(NULL, ERR_INVALID, "no cluster 'c'");
	write_file("config", "current-context: a\ncontexts:\n- name: a\n  context: {cluster: c}\n"
			     "clusters:\n- name: c\n  cluster: {}\n");
	refused(NULL, ERR_INVALID, "has no server");
	write_file("config", WITH_USER("{client-certificate: nowhere.pem}"));
	refused(NULL, ERR_NOT_FOUND, "client-certificate of 'u'");
	write_file("config", WITH_USER("{client-certificate-data: \"%%%\"}"));
	refused(NULL, ERR_INVALID, "client-certificate-data of 'u' is no PEM in base64");
	write_file("rubbish", "rubbish");
	write_file("config", WITH_USER("{client-key: rubbish}"));
	refused(NULL, ERR_INVALID, "client-key of 'u' is no PEM");
	write_file("config", WITH_USER("{tokenFile: nowhere}"));
	refused(NULL, ERR_NOT_FOUND, "token file of 'u'");
	write_file("config", "a: [");
	refused(NULL, ERR_INVALID, "kubeconfig '");
}

static void in_a_pod_it_is_the_service_account(void **state)
{
	(void)state;
	write_file("token", "t");
	write_file("ca.crt", "-----BEGIN CA");
	write_file("namespace", "mine\n");
	set(1, "KUBERNETES_SERVICE_HOST", "fd00::1");
	set(2, "KUBERNETES_SERVICE_PORT", "6443");
	set(3, "REGATTA_SERVICE_ACCOUNT", dir);
	struct kube_access x = read_config(NULL, NULL);

	assert_string_equal(x.server, "https://[fd00::1]:6443");
	assert_string_equal(x.namespace, "mine");
	assert_string_equal(x.token_file, arena_printf(arena, "%s/token", dir));
	assert_null(x.token);
	assert_string_equal(read_config(NULL, "other").namespace, "other");
	assert_int_equal(remove(arena_printf(arena, "%s/ca.crt", dir)), 0);
	refused(NULL, ERR_INVALID, "there is no kubeconfig");
}

static void what_travels_is_read_back_as_it_was(void **state)
{
	(void)state;
	set(1, "KUBECONFIG",
	    write_file(
		    "config",
		    WITH_USER(
			    "{client-certificate-data: LS0tLS1CRUdJTiBDRVJU, client-key-data: LS0tLS1CRUdJTiBLRVk=}")));
	struct kube_access x = read_config(NULL, NULL), y;
	struct err err;

	assert_int_equal(access_from_json(doc_json_text(arena, access_to_doc(&x, arena)), NULL,
					  arena, &y, &err),
			 0);
	assert_string_equal(y.server, x.server);
	assert_true(str_eq(y.cert, x.cert) && str_eq(y.key, x.key));
	assert_true(y.insecure);
	assert_int_equal(access_from_json("{}", NULL, arena, &y, &err), -1);
	assert_int_equal(access_from_json("x", NULL, arena, &y, &err), -1);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_current_context_says_server_namespace_and_token),
		T(several_files_are_merged_and_the_first_wins),
		T(without_the_variable_it_is_the_file_in_the_home),
		T(certificates_and_token_files_are_beside_their_file),
		T(a_program_of_the_configuration_prints_the_token),
		T(what_has_expired_is_made_anew_by_the_same_program),
		T(a_log_is_opened_without_the_program_and_read_with_it),
		T(a_program_that_gives_nothing_new_is_named),
		T(only_the_machine_of_the_kubeconfig_runs_its_program),
		T(a_program_that_fails_or_is_missing_is_named),
		T(what_is_missing_is_said),
		T(in_a_pod_it_is_the_service_account),
		T(what_travels_is_read_back_as_it_was),
	};

	return cmocka_run_group_tests_name("kubeconfig", tests, NULL, NULL);
}
