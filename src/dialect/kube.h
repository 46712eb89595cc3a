#pragma once
/* What the files of the dialect of Kubernetes share. */
#include "base/str.h"
#include "fmt/doc.h"

struct arena;
struct problems;

struct kube {
	struct doc *to;	   /* the native job */
	struct doc *table; /* its table [kubernetes] */
	struct arena *a;
	struct problems *ps;
};

/* ---- trees (kube_tree.c) ---- */

/* The value of a key that is a table or list of this type; NULL if there is none. */
struct doc *kube_within(struct doc *table, const char *key, enum doc_type type);
/* Removes an entry and returns it; value NULL: there was none. */
struct doc_entry kube_take(struct doc *table, const char *key);
/* Sets to.key with the position of its key. */
void kube_put(struct kube *x, struct doc *to, const char *key, struct doc *value,
	      struct doc_pos key_pos);
void kube_put_text(struct kube *x, struct doc *to, const char *key, const char *text,
		   struct doc_pos pos);
/* Moves an entry; nothing if there is none. */
void kube_move(struct kube *x, struct doc *from, const char *name, struct doc *to, const char *key);
/* Removes tables and lists with nothing in them below the keys of a path, from the last to the first. */
void kube_prune(struct doc *table, const char *const *path, size_t n);

/* ---- pods (kube_pod.c) ---- */

/* One kind of nodes of a manifest, as it becomes a role. */
struct kube_role {
	struct doc *native;	/* the native table that gets command, env, ... */
	struct doc *pod;	/* what is left of the pod template: the role's `pod` */
	struct doc *container;	/* the main one, in pod */
	struct doc_entry image; /* of the main container; value NULL: none */
	struct doc *volumes; /* those of the main container that a job file can say, as its list */
};
/* Takes a copy of the pod template apart.  main_name: the container that operators look for. */
bool kube_take_pod(struct kube *x, const struct doc *template, const char *main_name,
		   struct kube_role *ret);
/* What the roles share goes to the job: the image, the volumes; the rest stays in their pods. */
void kube_share(struct kube *x, struct kube_role *roles, size_t n);

/* ---- quantities (kube_quantity.c) ---- */

/* "500m", "2", "1.5" processors. */
bool kube_cpus(const struct doc *d, double *ret);
/* "512Mi", "2G", "1073741824" bytes. */
bool kube_bytes(const struct doc *d, uint64_t *ret);
