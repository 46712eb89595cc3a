/* call - one call of the API, and lists in pages. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "driver/kube/api/internal.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "net/http_client.h"
#include "fmt/http_url.h"

#define MAX_ANSWER (32u << 20)
#define MAX_NODES 2000000
#define PAGE 100 /* items of one answer to a list: pods of 10 kB each, and their tree, are 15 MB */
#define CONNECT_MS 10000
#define CALL_MS 30000
#define MOST_TRIES 5
#define FIRST_PAUSE_MS 200
#define MAX_TOKEN 65536

struct kube_client {
	const struct kube_access *access;
	struct http_url url;
	char *prefix; /* path of the server's URL, without a slash at its end */
	struct http_client *client;
};

int kube_open(const struct kube_access *access, struct kube_client **ret, struct err *err)
{
	struct kube_client *k = xcalloc(1, sizeof(*k));

	k->access = access;
	if (http_url_parse(&k->url, str_from(access->server), false, err) < 0) {
		free(k);
		return err_wrap(err, "the server '%.100s' of the cluster", access->server);
	}
	struct str path = k->url.path;

	while (path.n > 0 && path.p[path.n - 1] == '/')
		path.n--;
	k->prefix = xstrndup(path.n ? path.p : "", path.n);
	*ret = k;
	return 0;
}

struct kube_client *kube_free(struct kube_client *k)
{
	if (!k)
		return NULL;
	http_client_free(k->client);
	free(k->prefix);
	free(k);
	return NULL;
}

static int timeout_ms(const struct deadline *d, int64_t most)
{
	int64_t left = deadline_left_ms(d);

	return (int)(left < most ? left : most);
}

static struct http_target target_of(const struct kube_client *k, const struct deadline *d)
{
	const struct kube_access *x = k->access;

	return (struct http_target){
		.host = k->url.host,
		.port = k->url.port,
		.tls = {.mode = !k->url.tls   ? TLS_OFF
				: x->insecure ? TLS_ANYONE
					      : TLS_CA,
			.ca_pem = x->ca,
			.server_name = x->server_name,
			.cert_pem = x->cert,
			.key_pem = x->key},
		.proxy = {.https_proxy = x->proxy, .http_proxy = x->proxy, .no_proxy = x->no_proxy},
		.stop = d->stop,
	};
}

static int connect_to(struct kube_client *k, const struct deadline *d, struct err *err)
{
	const struct kube_access *x = k->access;
	const struct http_target to = target_of(k, d);

	if (k->client)
		return 0;
	if (http_client_open(&to, timeout_ms(d, CONNECT_MS), &k->client, err) < 0)
		return err_wrap(err, "the cluster at %.80s", x->server);
	return 0;
}

/* Behind `before`, in out; nothing without a token. */
static int add_token(const struct kube_client *k, const char *before, struct buf *out,
		     struct err *err)
{
	const char *file = k->access->token_file;
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_TOKEN);
	if (file && file_read(file, &text, err) < 0)
		return err_wrap(err, "the token of the service account");
	struct str token = file ? str_trim(buf_str(&text)) : str_from(k->access->token);

	if (token.n > 0)
		buf_printf(out, "%s%.*s", before, STR_ARG(token));
	return 0;
}

int kube_gateway(const struct kube_access *access, const char *path, const char *inner_token,
		 const struct deadline *d, struct http_client **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf prefix = {0}, token = {0};
	CLEANUP(kube_freep) struct kube_client *k = NULL;

	buf_init(&prefix, HTTP_URL_MAX);
	buf_init(&token, MAX_TOKEN);
	if (kube_open(access, &k, err) < 0 || add_token(k, "", &token, err) < 0)
		return -1;
	buf_printf(&prefix, "%s%s", k->prefix, path);
	struct http_target to = target_of(k, d);

	to.prefix = prefix.p;
	to.inner_token = inner_token;
	to.token = token.n > 0 ? token.p : NULL;
	if (http_client_open(&to, timeout_ms(d, CONNECT_MS), ret, err) < 0)
		return err_wrap(err, "the cluster at %.80s", access->server);
	return 0;
}

static int send_once(struct kube_client *k, const struct kube_call *c, bool stream,
		     struct http_answer *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf path = {0}, token = {0};
	struct http_field fields[2] = {{"Accept", "application/json"}};
	struct http_outgoing r = {
		.method = c->method,
		.timeout_ms = timeout_ms(c->deadline, CALL_MS),
		.fields = fields,
		.nfields = 1,
		.body = str_from(c->body ? c->body : ""),
		.type = c->body ? (c->type ? c->type : "application/json") : NULL,
	};

	buf_init(&path, HTTP_URL_MAX);
	buf_init(&token, MAX_TOKEN);
	buf_printf(&path, "%s%s", k->prefix, c->path);
	if (connect_to(k, c->deadline, err) < 0 || add_token(k, "Bearer ", &token, err) < 0)
		return -1;
	if (token.n > 0)
		fields[r.nfields++] = (struct http_field){"Authorization", token.p};
	r.path = path.p;
	http_client_set_stop(k->client, c->deadline->stop);
	if ((stream ? http_send_stream(k->client, &r, ret, err)
		    : http_send(k->client, &r, ret, err)) == 0)
		return 0;
	k->client = http_client_free(k->client);
	return err_wrap(err, "%s", c->what);
}

int kube_nap(const struct deadline *d, int64_t ms, const char *what, struct err *err)
{
	struct deadline until = deadline_within(d, ms);

	while (deadline_left_ms(&until) > 0) {
		if (deadline_check(d, what, err) < 0)
			return -1;
		poll(NULL, 0, deadline_slice_ms(&until));
	}
	return deadline_check(d, what, err);
}

/* May a failed call be made again?  One that was not answered may have been acted on. */
static bool is_worth_another(const struct kube_call *c, int status, const struct err *err)
{
	bool reads = strcmp(c->method, "GET") == 0;

	if (status == 0)
		return reads && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_TIMEOUT);
	return status == 429 || (reads && status >= 500);
}

static int not_the_api(const struct kube_client *k, const struct kube_call *c, struct err *err)
{
	return err_set(err, ERR_PROTOCOL, "%s: what answers at %.80s is no Kubernetes API", c->what,
		       k->access->server);
}

static int send_call(struct kube_client *k, const struct kube_call *c, struct http_answer *ans,
		     int *ret_status, struct err *err)
{
	int64_t pause_ms = FIRST_PAUSE_MS;

	for (int i = 1;; i++) {
		int64_t asked_ms = 0;

		buf_reset(&ans->body);
		*ret_status = 0;
		if (send_once(k, c, false, ans, err) == 0) {
			if (ans->status / 100 == 2)
				return 0;
			if (!status_is_of_api(ans->status, buf_str(&ans->body)))
				return not_the_api(k, c, err);
			*ret_status = ans->status;
			asked_ms = status_retry_ms(http_client_header(k->client, "Retry-After"),
						   buf_str(&ans->body));
			(void)status_error(ans->status, buf_str(&ans->body), c->what, err);
		}
		if (i == MOST_TRIES || !is_worth_another(c, *ret_status, err))
			return -1;
		struct err late = {0};

		if (kube_nap(c->deadline, asked_ms ? asked_ms : pause_ms, c->what, &late) < 0)
			return -1;
		pause_ms *= 2;
	}
}

int kube_ask(struct kube_client *k, const struct kube_call *c, struct arena *a, struct doc **ret,
	     int *ret_status, struct err *err)
{
	struct http_answer ans;
	int status = 0, rc;

	http_answer_init(&ans, MAX_ANSWER);
	rc = send_call(k, c, &ans, &status, err);
	if (rc == 0 && ret &&
	    json_parse_limited(arena_str(a, buf_str(&ans.body)), MAX_ANSWER, MAX_NODES, a, ret,
			       err) < 0)
		rc = not_the_api(k, c, err);
	http_answer_release(&ans);
	if (ret_status)
		*ret_status = status;
	return rc;
}

int kube_text(struct kube_client *k, const char *path, const char *what, const struct deadline *d,
	      struct buf *out, struct err *err)
{
	const struct kube_call c = {.method = "GET", .path = path, .what = what, .deadline = d};
	struct http_answer ans;
	int status, rc;

	http_answer_init(&ans, MAX_ANSWER);
	rc = send_call(k, &c, &ans, &status, err);
	if (rc == 0)
		buf_add(out, buf_str(&ans.body).p, ans.body.n < out->max ? ans.body.n : out->max);
	http_answer_release(&ans);
	return rc;
}

int kube_stream_open(struct kube_client *k, const char *path, const char *what,
		     const struct deadline *d, int *ret_status, struct err *err)
{
	const struct kube_call c = {.method = "GET", .path = path, .what = what, .deadline = d};
	struct http_answer ans;
	int rc;

	*ret_status = 0;
	http_answer_init(&ans, MAX_ANSWER);
	rc = send_once(k, &c, true, &ans, err);
	if (rc == 0 && ans.status / 100 != 2) {
		*ret_status = ans.status;
		rc = status_error(ans.status, buf_str(&ans.body), what, err);
	}
	http_answer_release(&ans);
	return rc;
}

int kube_stream_read(struct kube_client *k, void *p, size_t max, int wait_ms,
		     const struct deadline *d, size_t *ret_n, struct err *err)
{
	return http_stream_read(k->client, p, max, timeout_ms(d, wait_ms), d->stop, ret_n, err);
}

static int take_page(const struct doc *page, kube_item_fn *fn, void *ctx)
{
	const struct doc *items = doc_array(page, "items");

	for (size_t i = 0; items && i < items->array.n; i++) {
		int rc = fn(ctx, items->array.v[i]);

		if (rc != 0)
			return rc;
	}
	return 0;
}

int kube_list(struct kube_client *k, const char *path, const char *query, const char *what,
	      const struct deadline *d, kube_item_fn *fn, void *ctx, struct err *err)
{
	CLEANUP(buf_release) struct buf next = {0}, full = {0};

	buf_init(&next, HTTP_URL_MAX);
	buf_init(&full, HTTP_URL_MAX);
	for (;;) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		struct kube_call c = {.method = "GET", .what = what, .deadline = d};
		struct doc *page = NULL;

		buf_reset(&full);
		buf_printf(&full, "%s?limit=%d%s%s%s%s", path, PAGE, *query ? "&" : "", query,
			   next.n ? "&continue=" : "", buf_str(&next).p);
		c.path = full.p;
		if (kube_ask(k, &c, a, &page, NULL, err) < 0)
			return -1;
		if (!doc_get(page, "items"))
			return not_the_api(k, &c, err);
		if (take_page(page, fn, ctx) != 0)
			return 0;
		struct str token = doc_str(doc_table(page, "metadata"), "continue", STR(""));

		if (token.n == 0)
			return 0;
		buf_reset(&next);
		url_encode(&next, token);
	}
}

const char *kube_path(struct arena *a, const char *version, const char *namespace,
		      const char *resource, const char *name)
{
	const char *root = strchr(version, '/') ? "/apis" : "/api";

	return arena_printf(a, "%s/%s%s%s/%s%s%s", root, version, namespace ? "/namespaces/" : "",
			    namespace ? namespace : "", resource, name ? "/" : "",
			    name ? name : "");
}
