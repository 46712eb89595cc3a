/* kubeconfig - clusters, users and contexts from the files of KUBECONFIG. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "driver/kube/api/internal.h"
#include "fmt/doc.h"

#define MAX_FILE (1024 * 1024)
#define MAX_FILES 32
#define PEM "-----BEGIN "

struct config_file {
	const char *path, *dir;
	const struct doc *doc;
};

struct kubeconfig {
	const struct kubeconfig_input *in;
	struct arena *a;
	struct config_file v[MAX_FILES];
	size_t n;
	const char *tried; /* for the message that there is none */
};

/* An entry of a list, and the directory that its paths are relative to. */
struct config_entry {
	const struct doc *doc;
	const char *dir, *name;
};

static int add_file(struct kubeconfig *c, struct str name, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	const char *path = arena_strndup(c->a, name.p, name.n);
	struct doc *doc = NULL;

	if (name.n == 0 || !file_exists(path))
		return 0; /* kubectl takes a missing file for an empty one */
	buf_init(&text, MAX_FILE);
	if (file_read(path, &text, err) < 0 ||
	    yaml_parse(arena_str(c->a, buf_str(&text)), c->a, &doc, err) < 0)
		return err_wrap(err, "kubeconfig '%s'", path);
	if (c->n == MAX_FILES)
		return err_set(err, ERR_INVALID, "KUBECONFIG names more than %d files", MAX_FILES);
	c->v[c->n++] = (struct config_file){
		.path = path,
		.dir = arena_strndup(c->a, path, (size_t)(path_base(path) - path)),
		.doc = doc,
	};
	return 0;
}

static int add_files(struct kubeconfig *c, struct err *err)
{
	const char *list = env_get(&c->in->env, "KUBECONFIG"), *home = env_get(&c->in->env, "HOME");

	c->tried = list ? list : arena_printf(c->a, "%s/.kube/config", home ? home : "");
	for (struct str rest = str_from(c->tried); rest.p;)
		if (add_file(c, list ? str_cut(&rest, ':') : str_cut(&rest, '\0'), err) < 0)
			return -1;
	return 0;
}

bool kubeconfig_exists(const struct env_lookup *env)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct kubeconfig_input in = {.env = *env};
	struct kubeconfig c = {.in = &in, .a = a};
	struct kube_access unused;

	return add_files(&c, NULL) < 0 || c.n > 0 || access_in_cluster(env, a, &unused, NULL) == 0;
}

/* The first entry of that name in `list` ("clusters") of any file, and its table ("cluster"). */
static int find(const struct kubeconfig *c, const char *list, const char *key, struct str name,
		struct config_entry *ret, struct err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct doc *all = doc_array(c->v[i].doc, list);

		for (size_t k = 0; all && k < all->array.n; k++)
			if (str_eq(doc_str(all->array.v[k], "name", STR("")), name)) {
				*ret = (struct config_entry){doc_table(all->array.v[k], key),
							     c->v[i].dir, name.p};
				return 0;
			}
	}
	return err_set(err, ERR_INVALID, "the kubeconfig (%s) has no %s '%.*s'", c->tried, key,
		       STR_ARG(name));
}

/* PEM of KEY-data, which is base64, or of the file that KEY names. */
static int read_pem(const struct kubeconfig *c, const struct config_entry *e, const char *key,
		    struct str *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct str data = doc_str(e->doc, arena_printf(c->a, "%s-data", key), (struct str){0});
	struct str path = doc_str(e->doc, key, (struct str){0});

	buf_init(&text, MAX_FILE);
	if (data.n > 0) {
		b64_decode(&text, data);
	} else if (path.n > 0) {
		CLEANUP(freep) char *file = path_join(*e->dir ? e->dir : ".", path.p);

		if (file_read(file, &text, err) < 0)
			return err_wrap(err, "kubeconfig: %s of '%s'", key, e->name);
	}
	if ((data.n > 0 || path.n > 0) &&
	    (text.n == 0 || !memmem(text.p, text.n, PEM, sizeof(PEM) - 1)))
		return err_set(err, ERR_INVALID, "kubeconfig: %s%s of '%s' is no PEM%s", key,
			       data.n > 0 ? "-data" : "", e->name, data.n > 0 ? " in base64" : "");
	*ret = arena_str(c->a, buf_str(&text));
	return 0;
}

static int read_cluster(const struct kubeconfig *c, const struct config_entry *e,
			struct kube_access *ret, struct err *err)
{
	struct str none = {0};

	ret->server = doc_str(e->doc, "server", none).p;
	ret->server_name = doc_str(e->doc, "tls-server-name", none).p;
	ret->insecure = doc_bool(e->doc, "insecure-skip-tls-verify", false);
	ret->proxy = doc_str(e->doc, "proxy-url", none).p;
	if (!ret->proxy) {
		const char *small = env_get(&c->in->env, "https_proxy");

		ret->proxy = small ? small : env_get(&c->in->env, "HTTPS_PROXY");
		ret->no_proxy = env_get(&c->in->env, "no_proxy");
		ret->no_proxy = ret->no_proxy ? ret->no_proxy : env_get(&c->in->env, "NO_PROXY");
	}
	if (!ret->server)
		return err_set(err, ERR_INVALID, "the cluster '%s' of the kubeconfig has no server",
			       e->name);
	return read_pem(c, e, "certificate-authority", &ret->ca, err);
}

static int read_token_file(const struct kubeconfig *c, const struct config_entry *e,
			   struct kube_access *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct str path = doc_str(e->doc, "tokenFile", (struct str){0});

	if (path.n == 0)
		return 0;
	CLEANUP(freep) char *file = path_join(*e->dir ? e->dir : ".", path.p);

	buf_init(&text, MAX_FILE);
	if (file_read(file, &text, err) < 0)
		return err_wrap(err, "kubeconfig: the token file of '%s'", e->name);
	ret->token = arena_str(c->a, str_trim(buf_str(&text))).p;
	return 0;
}

static int read_user(const struct kubeconfig *c, const struct config_entry *e,
		     struct kube_access *ret, struct err *err)
{
	const struct doc *exec = doc_table(e->doc, "exec");

	if (doc_table(e->doc, "auth-provider"))
		return err_set(
			err, ERR_INVALID,
			"the user '%s' of the kubeconfig has an auth-provider, which clusters "
			"no longer take: use exec",
			e->name);
	if (read_pem(c, e, "client-certificate", &ret->cert, err) < 0 ||
	    read_pem(c, e, "client-key", &ret->key, err) < 0)
		return -1;
	ret->token = doc_str(e->doc, "token", (struct str){0}).p;
	if (!ret->token && read_token_file(c, e, ret, err) < 0)
		return -1;
	if (exec && !ret->token && !ret->cert.n &&
	    exec_plugin_run(c->in, exec, *e->dir ? e->dir : ".", c->a, ret, err) < 0)
		return err_wrap(err, "the user '%s' of the kubeconfig", e->name);
	return 0;
}

/* --kube-context or the first current-context of the files. */
static struct str choose_context(const struct kubeconfig *c)
{
	struct str name = str_from(c->in->context);

	for (size_t i = 0; i < c->n && name.n == 0; i++)
		name = doc_str(c->v[i].doc, "current-context", (struct str){0});
	return name;
}

static int no_context(const struct kubeconfig *c, struct arena *a, struct kube_access *ret,
		      struct err *err)
{
	if (c->n == 0 && access_in_cluster(&c->in->env, a, ret, NULL) == 0) {
		if (c->in->namespace)
			ret->namespace = c->in->namespace;
		return 0;
	}
	if (c->n == 0)
		return err_set(err, ERR_INVALID,
			       "no Kubernetes cluster: there is no kubeconfig (%s): set KUBECONFIG",
			       c->tried);
	return err_set(err, ERR_INVALID,
		       "the kubeconfig (%s) has no current context: give --kube-context NAME, or "
		       "'kubectl config use-context NAME'",
		       c->tried);
}

int kubeconfig_read(const struct kubeconfig_input *in, struct arena *a, struct kube_access *ret,
		    struct err *err)
{
	struct kubeconfig c = {.in = in, .a = a};
	struct config_entry context, cluster, user = {0};
	struct kube_access x = {0};

	if (add_files(&c, err) < 0)
		return -1;
	struct str name = choose_context(&c);

	if (name.n == 0)
		return no_context(&c, a, ret, err);
	if (find(&c, "contexts", "context", name, &context, err) < 0 ||
	    find(&c, "clusters", "cluster", doc_str(context.doc, "cluster", STR("")), &cluster,
		 err) < 0 ||
	    read_cluster(&c, &cluster, &x, err) < 0)
		return -1;
	struct str of = doc_str(context.doc, "user", STR(""));

	if (of.n > 0 &&
	    (find(&c, "users", "user", of, &user, err) < 0 || read_user(&c, &user, &x, err) < 0))
		return -1;
	x.context = name.p;
	x.namespace =
		in->namespace ? in->namespace : doc_str(context.doc, "namespace", STR("default")).p;
	*ret = x;
	return 0;
}
