#pragma once
/* kube_table - the table [kubernetes] of the job file. */
#include "fmt/schema.h"

struct job;

/* The kind of object that the nodes of a run are. */
enum kube_as {
	KUBE_JOB, /* one Job for each role, with Regatta's agent */
	KUBE_JOBSET,
	KUBE_PYTORCHJOB,
	KUBE_TFJOB,
	KUBE_MPIJOB,
	KUBE_MXJOB,
	KUBE_PADDLEJOB,
	KUBE_XGBOOSTJOB,
};

struct kube_table {
	const char *context, *name_space, *service_account, *image, *agent_image;
	struct doc_pos pos;
	const char *priority_class, *queue, *scheduler;
	struct env_list node_selector, annotations, labels;
	struct strs tolerations, image_pull_secrets;
	struct doc_pos tolerations_pos;
	const struct doc *pod; /* patch of all pods; NULL: none */
	struct doc_pos pod_pos;
	const struct doc *object; /* patch of the object that the nodes are; NULL: none */
	int as;			  /* enum kube_as */
	struct doc_pos as_pos;
	bool agent, agent_set; /* not set: the agent is there, unless an operator makes the pods */
};

/* The row of the job file for [kubernetes]. */
extern const struct field kube_field;
/* The words of `as`, by enum kube_as; NULL after the last. */
extern const char *const kube_as_choices[];

/* Does Regatta's agent run in the pods? */
bool kube_has_agent(const struct kube_table *t);
/* The strategy that `as` stands for, for a job that names none; NULL: it stands for none. */
const char *kube_strategy(const struct kube_table *t);
/* Adds the problems of the table by itself: tolerations that cannot be read. */
void kube_check_table(const struct kube_table *t, struct arena *a, struct problems *ps);

/* "key=value:Effect", "key:Effect", "key=value", "key"; an empty key tolerates everything. */
struct kube_toleration {
	struct str key, value, effect; /* p NULL: not given */
};
bool kube_read_toleration(const char *text, struct kube_toleration *ret);
