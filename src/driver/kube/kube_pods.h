#pragma once
/*
 * kube_pods - how the pods of a role stand, in the words of the cluster.
 *
 * pod_judge() is pure: it reads what the API server shows of one pod.
 */
#include <stdbool.h>
#include "base/err.h"

struct doc;
struct kube_work;

enum pod_life {
	POD_WAITING, /* not scheduled, or its containers have not started */
	POD_STUCK,   /* the same, and it will not start by itself */
	POD_RUNNING,
	POD_ENDED, /* its containers have ended, and are not started again */
};

struct pod_state {
	enum pod_life life;
	struct err why; /* not of POD_RUNNING; kind ERR_NONE: the cluster says nothing */
};

void pod_judge(const struct doc *pod, struct pod_state *ret);
/* True if the cluster is taking away a pod that runs; why says it in its words. */
bool pod_is_leaving(const struct doc *pod, struct err *why);
/* True if the cluster has not heard of the pod's node for its grace time: the pod may be running or not.  why is
 * ERR_TIMEOUT, which a node whose agent is connected does not count as a loss. */
bool pod_is_unheard(const struct doc *pod, struct err *why);

struct pods_summary {
	int n;
	int ended_unknown; /* ended, and bound to no node: their agents never spoke */
	struct err stuck;  /* of the first pod that is stuck; ERR_NONE: none is */
	struct err ended;  /* of the first that ended unknown */
	struct err waits;  /* of the first that waits */
	char ended_name[256], waits_uid[64], waits_name[256];
};

/* Lists the pods of the row's run and role ("": of all roles), and marks the members of the row that are gone. */
int pods_observe(struct kube_work *w, struct pods_summary *ret, struct err *err);
