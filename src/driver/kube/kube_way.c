#include "driver/kube/kube_way.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/driver.h"
#include "driver/kube/api/kube.h"
#include "driver/master_way.h"
#include "fmt/url.h"

#define SCHEME "kube://"
#define CONTEXT_MAX 300

void kube_way_url(char *out, size_t size, const char *namespace, const char *service, int port,
		  const char *context)
{
	CLEANUP(buf_release) struct buf name = {0};

	buf_init(&name, CONTEXT_MAX);
	url_encode(&name, str_from(context));
	/* A name that is too long is left out: then it is the current context. */
	bool named = name.n > 0 && !name.overflow;

	snprintf(out, size, SCHEME "%.63s/%.63s:%d%s%s", namespace, service, port,
		 named ? "?context=" : "", named ? name.p : "");
}

struct kube_place {
	struct str namespace, service, port;
	const char *context; /* NULL: the current one */
};

static int read_url(const char *url, struct arena *a, struct kube_place *ret, struct err *err)
{
	struct str query = str_from(url), rest = str_cut(&query, '?');
	struct url_query q = {0};

	rest = (struct str){rest.p + sizeof(SCHEME) - 1, rest.n - (sizeof(SCHEME) - 1)};
	ret->namespace = str_cut(&rest, '/');
	ret->service = str_cut(&rest, ':');
	ret->port = rest;
	if (!ret->namespace.n || !ret->service.n || !ret->port.n ||
	    (query.p && !query_parse(query, a, &q)))
		return err_set(err, ERR_INVALID,
			       "'%.100s' is no URL of a master in a cluster: " SCHEME
			       "NAMESPACE/SERVICE:PORT",
			       url);
	struct str context = query_get(&q, "context", (struct str){0});

	ret->context = context.n ? arena_str(a, context).p : NULL;
	return 0;
}

static int find_access(const struct kube_place *at, const char *credentials,
		       const struct deadline *d, struct arena *a, struct kube_access *ret,
		       struct err *err)
{
	const struct kubeconfig_input q = {.context = at->context, .deadline = d};

	return credentials ? access_from_json(credentials, d, a, ret, err)
			   : kubeconfig_read(&q, a, ret, err);
}

static int dial(const struct driver_master *at, const char *credentials, const struct deadline *d,
		struct http_client **ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct kube_place place;
	struct kube_access x;

	if (read_url(at->url, a, &place, err) < 0 ||
	    find_access(&place, credentials, d, a, &x, err) < 0)
		return -1;
	return kube_gateway(
		&x,
		arena_printf(a, "/api/v1/namespaces/%.*s/services/https:%.*s:%.*s/proxy",
			     STR_ARG(place.namespace), STR_ARG(place.service), STR_ARG(place.port)),
		at->token, d, ret, err);
}

const struct master_way kube_way = {.scheme = SCHEME, .dial = dial};
