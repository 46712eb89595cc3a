#pragma once
/* kube_resolve - what must hold of a cluster before a run is planned. */
#include <stdbool.h>

struct arena;
struct deadline;
struct err;
struct kube_access;
struct kube_client;

/* The version, "v1.34.4", of a cluster that is new enough; ERR_INVALID: it is not. */
int kube_ask_version(struct kube_client *k, const struct deadline *d, struct arena *a,
		     const char **ret, struct err *err);
/* Do the credentials allow the verb?  part: "log" of pods/log, or "". */
struct kube_right {
	const char *namespace, *group, *resource, *part, *verb;
};
int kube_may(struct kube_client *k, const struct kube_right *right, const struct deadline *d,
	     struct arena *a, bool *ret, struct err *err);
/* ERR_NOT_FOUND: it has no such namespace.  Whoever may not look at namespaces learns it when the first object is
 * made. */
int kube_check_namespace(struct kube_client *k, const struct kube_access *x,
			 const struct deadline *d, struct arena *a, struct err *err);
