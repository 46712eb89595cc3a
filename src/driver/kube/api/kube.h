#pragma once
/*
 * kube - calls of the Kubernetes API of one cluster, blocking, with a deadline.
 *
 * Answers are JSON trees of an arena.  A call that the cluster was too busy for (429) is made again after
 * the pause that it asks for; one that only reads also when no answer came.  A kube belongs to one thread
 * at a time; its connection is kept between calls.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "driver/kube/api/access.h"

struct buf;
struct http_client;
struct kube_client;

/* ERR_INVALID if the access cannot be used.  The access must outlive it. */
int kube_open(const struct kube_access *access, struct kube_client **ret, struct err *err);
struct kube_client *kube_free(struct kube_client *k);
static inline void kube_freep(struct kube_client **k)
{
	*k = kube_free(*k);
}

#define KUBE_MERGE "application/merge-patch+json"

struct kube_call {
	const char *method; /* "POST" */
	const char *path;   /* with query: "/api/v1/namespaces/x/pods?limit=1" */
	const char *what;   /* for messages: "create jobs" */
	const char *body;   /* JSON; NULL: none */
	const char *type;   /* of the body; NULL: application/json */
	const struct deadline *deadline;
};

/* *ret may be NULL if the answer is not wanted.  On failure *ret_status is the status of the answer; 0:
 * there was none, so that it is not known whether the cluster has acted. */
int kube_ask(struct kube_client *k, const struct kube_call *c, struct arena *a, struct doc **ret,
	     int *ret_status, struct err *err);

/* Is called for each item of a list; not 0 ends it. */
typedef int kube_item_fn(void *ctx, const struct doc *item);
/* All items of a list, in pages.  `query`: "labelSelector=..." or "". */
int kube_list(struct kube_client *k, const char *path, const char *query, const char *what,
	      const struct deadline *d, kube_item_fn *fn, void *ctx, struct err *err);
/* The text of a GET that is no JSON, such as a log; cut at the maximum of the buffer. */
int kube_text(struct kube_client *k, const char *path, const char *what, const struct deadline *d,
	      struct buf *out, struct err *err);

/* A GET whose answer is read piece by piece.  On failure *ret_status is as of kube_ask(). */
int kube_stream_open(struct kube_client *k, const char *path, const char *what,
		     const struct deadline *d, int *ret_status, struct err *err);
/* Waits up to wait_ms for the next bytes.  *ret_n 0: the end.  ERR_TIMEOUT: nothing came, the stream goes on. */
int kube_stream_read(struct kube_client *k, void *p, size_t max, int wait_ms,
		     const struct deadline *d, size_t *ret_n, struct err *err);

/* A client of a server inside the cluster, which the API server passes requests on to: `path` is that of its proxy
 * ("/api/v1/namespaces/x/services/https:y:443/proxy"), inner_token the server's own. */
int kube_gateway(const struct kube_access *access, const char *path, const char *inner_token,
		 const struct deadline *d, struct http_client **ret, struct err *err);

/* A pause; -1 as deadline_check(). */
int kube_nap(const struct deadline *d, int64_t ms, const char *what, struct err *err);

/* "/api/v1/namespaces/NS/pods/NAME" of apiVersion, resource ("pods") and, unless NULL, name.  namespace NULL: of
 * all namespaces, or a resource of none. */
const char *kube_path(struct arena *a, const char *version, const char *namespace,
		      const char *resource, const char *name);
