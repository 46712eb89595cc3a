#include "driver/kube/api/internal.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/doc.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define MAX_FILE (1024 * 1024)

static void put(struct arena *a, struct doc *d, const char *key, struct str value)
{
	if (value.n > 0)
		doc_set(a, d, str_from(key), doc_new_str(a, value));
}

struct doc *access_to_doc(const struct kube_access *x, struct arena *a)
{
	struct doc *d = doc_new(a, DOC_TABLE);

	put(a, d, "server", str_from(x->server));
	put(a, d, "namespace", str_from(x->namespace));
	put(a, d, "context", str_from(x->context));
	put(a, d, "ca", x->ca);
	put(a, d, "server_name", str_from(x->server_name));
	put(a, d, "cert", x->cert);
	put(a, d, "key", x->key);
	put(a, d, "token", str_from(x->token));
	put(a, d, "token_file", str_from(x->token_file));
	put(a, d, "proxy", str_from(x->proxy));
	put(a, d, "no_proxy", str_from(x->no_proxy));
	if (x->insecure)
		doc_set(a, d, STR("insecure"), doc_new_bool(a, true));
	if (x->renewal.exec) {
		struct doc *renewal = doc_new(a, DOC_TABLE);

		doc_set(a, renewal, STR("exec"), doc_copy(a, x->renewal.exec));
		put(a, renewal, "machine", str_from(x->renewal.machine));
		doc_set(a, renewal, STR("expires_ms"), doc_new_int(a, x->renewal.expires_ms));
		doc_set(a, d, STR("renewal"), renewal);
	}
	return d;
}

int access_from_json(const char *json, const struct deadline *deadline, struct arena *a,
		     struct kube_access *ret, struct err *err)
{
	struct str none = {0};
	struct doc *d = NULL;

	if (json_parse(str_from(json), a, &d, err) < 0)
		return err_wrap(err, "the credentials of the run");
	*ret = (struct kube_access){
		.server = doc_str(d, "server", none).p,
		.namespace = doc_str(d, "namespace", STR("default")).p,
		.context = doc_str(d, "context", STR("")).p,
		.ca = doc_str(d, "ca", none),
		.server_name = doc_str(d, "server_name", none).p,
		.insecure = doc_bool(d, "insecure", false),
		.cert = doc_str(d, "cert", none),
		.key = doc_str(d, "key", none),
		.token = doc_str(d, "token", none).p,
		.token_file = doc_str(d, "token_file", none).p,
		.proxy = doc_str(d, "proxy", none).p,
		.no_proxy = doc_str(d, "no_proxy", none).p,
	};
	const struct doc *renewal = doc_table(d, "renewal");

	ret->renewal = (struct kube_renewal){
		.exec = doc_table(renewal, "exec"),
		.machine = doc_str(renewal, "machine", STR("")).p,
		.expires_ms = doc_int(renewal, "expires_ms", 0),
	};
	if (!ret->server)
		return err_set(err, ERR_INVALID,
			       "the credentials of the run are not of a Kubernetes cluster");
	if (exec_plugin_renew(ret, deadline, a, err) < 0)
		return err_wrap(err, "the credentials of the run have expired");
	return 0;
}

static int read_trimmed(const char *path, struct arena *a, struct str *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_FILE);
	if (file_read(path, &text, err) < 0)
		return -1;
	*ret = arena_str(a, str_trim(buf_str(&text)));
	return 0;
}

int access_in_cluster(const struct env_lookup *env, struct arena *a, struct kube_access *ret,
		      struct err *err)
{
	const char *host = env_get(env, "KUBERNETES_SERVICE_HOST");
	const char *port = env_get(env, "KUBERNETES_SERVICE_PORT");
	const char *dir = env_get(env, "REGATTA_SERVICE_ACCOUNT");
	struct str namespace = {0}, ca = {0};

	dir = dir ? dir : ACCOUNT;
	if (!host || !file_exists(arena_printf(a, "%s/token", dir)))
		return err_set(err, ERR_NOT_FOUND, "this is no pod with a service account");
	if (read_trimmed(arena_printf(a, "%s/ca.crt", dir), a, &ca, err) < 0 ||
	    read_trimmed(arena_printf(a, "%s/namespace", dir), a, &namespace, err) < 0)
		return err_wrap(err, "the service account of this pod");
	bool v6 = strchr(host, ':') != NULL;

	*ret = (struct kube_access){
		.server = arena_printf(a, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
				       port ? port : "443"),
		.namespace = namespace.p,
		.context = "",
		.ca = ca,
		.token_file = arena_printf(a, "%s/token", dir),
	};
	return 0;
}
