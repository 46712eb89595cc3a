#pragma once
/*
 * kubernetes - what the files of the engine kubernetes share: the table [kubernetes] of the job file, and
 * the objects of the cluster that a plan consists of.
 *
 * The spec of each resource of such a plan is an object of the Kubernetes API as JSON.  Texts that begin
 * with KUBE_RUN or KUBE_INSTALL stand for the name of the run and the id of the install, which no plan
 * knows: driver/kube/object.h puts them in.
 */
#include "plan/engine.h"
#include "plan/kube_table.h"

#define KUBE_RUN "<run>"
#define KUBE_INSTALL "<install>"
/* Within a text: the name of an object, which is that of the run and what stands between these. */
#define KUBE_NAME_OPEN "\1"
#define KUBE_NAME_CLOSE "\2"
#define KUBE_NAME KUBE_NAME_OPEN KUBE_NAME_CLOSE
/* Of a manifest: after the name of the job, the Secret with its secret variables. */
#define KUBE_SECRETS "-secrets"
#define KUBE_LABEL_RUN "regatta/run"
#define KUBE_LABEL_ROLE "regatta/role"
#define KUBE_LABEL_INSTALL "regatta/install"
/* Of pods of an operator: the number of the first node of their template in the role. */
#define KUBE_LABEL_FROM "regatta/from"
/* Of the objects with a pod template: the SHA-256 of the program that their pods run. */
#define KUBE_PROGRAM "regatta/program"

/* Of the master's Job: for how many seconds it keeps results that nobody fetches. */
#define KUBE_KEPT "regatta/kept"

/* The table of a job; defaults if it has none. */
const struct kube_table *kube_table_of(const struct job *job, struct arena *a);
/* The container image of a role's pods; NULL: the job names none. */
const char *kube_image(const struct job *job, const struct kube_table *t, const struct role *role);

/* The objects; facts as in kubernetes.c, NULL: nothing is known of the cluster. */
struct kube_render {
	const struct plan *p;
	const struct kube_table *t;
	const struct doc *facts;
	struct arena *a;
	bool plain; /* for kubectl: no master is beside it */
};
/* apiVersion, kind and metadata; role "": the object is of no role. */
struct doc *kube_object(const struct kube_render *r, const char *version, const char *kind,
			const char *name, const char *role);
/* metadata and spec of the pods of a role; `name` is that of the Secret for their agents. */
struct doc *kube_pod_template(const struct kube_render *r, int role, const char *name);
/* In the spec of a pod: where it may be, and as whom. */
void kube_add_place(const struct kube_render *r, struct doc *spec);
/* A ConfigMap, which owns all others. */
struct doc *kube_root_object(const struct kube_render *r);
/* A headless Service, under which the pods have names. */
struct doc *kube_service_object(const struct kube_render *r);
/* An indexed Job with the nodes of a role of the crew.  With an agent its pods run that, and the Secret
 * of the same name has what the agent must know; without one they run the role's command. */
struct doc *kube_job_object(const struct kube_render *r, int role);
/* Adds to the main container of a Job what the strategy gives the nodes, before what the file has.  run NULL:
 * the name of the run is not known yet. */
void kube_add_env(const struct kube_render *r, int role, const char *run, const struct doc *job);
/* What of a job cannot be done without an agent in the pods; NULL: nothing. */
const char *kube_needs_agent(const struct job *job, const struct kube_table *t, struct arena *a);

/* ---- the master in the cluster (kubernetes_master.c) ---- */

#define KUBE_MASTER_PORT 5436
/* After the name of the run.  No role has this name. */
#define KUBE_MASTER "-regatta"
#define KUBE_MASTER_ROLE "regatta"
#define KUBE_PROGRAM_NAME "-regatta-program"
/* A ConfigMap has at most 1 MiB. */
#define KUBE_PROGRAM_PART 1000000

struct doc *kube_account_object(const struct kube_render *r);
/* What that account may do: make and remove the objects of this run, and look at its pods. */
struct doc *kube_role_object(const struct kube_render *r);
struct doc *kube_binding_object(const struct kube_render *r);
/* A claim for the master's disk; NULL: the cluster has no storage class by itself. */
struct doc *kube_claim_object(const struct kube_render *r);
/* The ConfigMap that says of how many bytes the program is; its driver puts it into further ones. */
struct doc *kube_program_object(const struct kube_render *r);
/* A Job of one pod; its driver makes a Service and a Secret with it. */
struct doc *kube_master_object(const struct kube_render *r);

/* JSON merge (RFC 7386) of `patch` into `into`, except that lists of tables whose items have a "name" are
 * merged by it, as Kubernetes merges containers, variables and volumes. */
void kube_merge(struct arena *a, struct doc *into, const struct doc *patch);

/* The object of an operator that `as` names; not for KUBE_JOB. */
struct doc *kube_operator_object(const struct kube_render *r);
/* Of a run: apiVersion, kind and what to install for it. */
const char *kube_operator_kind(const struct kube_table *t, const char **ret_version,
			       const char **ret_install);
/* The name of that kind in paths and in Roles. */
const char *kube_operator_resource(const struct kube_table *t);
/* Adds the problems that the operator of `as` would have with the job. */
void kube_check_operator(const struct job *job, const struct kube_table *t, struct arena *a,
			 struct problems *ps);
/* The name of the container that runs the command. */
const char *kube_main_name(const struct kube_table *t, const struct role *role);
/* All objects of a job, for kubectl: a list.  NULL and the error if its strategy needs the agent. */
struct doc *kube_manifests(const struct plan *p, struct arena *a, struct err *err);
