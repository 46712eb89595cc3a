#pragma once
/* kube_masters - the masters that run in a namespace of a cluster, found by their pods; the Secret beside each has its
 * token, so that whoever may read that may speak to it. */
struct arena;
struct err;
struct masters_input;
struct running_masters;

/* engine_tools.masters.  region: the namespace.  The region of what is found is CONTEXT/NAMESPACE: the same namespace
 * of another cluster is another place. */
int kube_masters(const struct masters_input *in, struct arena *a, struct running_masters *ret,
		 struct err *err);
