#pragma once
/*
 * object - objects of the Kubernetes API as a plan writes them, with the name of their run put in.
 *
 * Pure.  In the spec of a resource the texts <run> and <install> stand at the beginning of what the plan
 * could not know (plan/kubernetes.h).
 */
#include <stdbool.h>
#include "base/str.h"

struct arena;
struct doc;

/* A name may have so many bytes: pods get a suffix, and are host names. */
#define KUBE_NAME_MAX 52

/* Puts run and install into all texts of the object.  A name that becomes longer than KUBE_NAME_MAX is
 * cut, and ends with a digest of the whole. */
void kube_object_fill(struct doc *object, const char *run, const char *install, struct arena *a);
/* Makes the object a dependent of the root of its run. */
void kube_object_own(struct doc *object, const char *root, const char *uid, struct arena *a);

/* "metadata.name" and so on; "" if it has none. */
const char *kube_meta(const struct doc *object, const char *key);
const char *kube_label(const struct doc *object, const char *key);
/* The resource of a kind in paths, "jobs" of "Job"; NULL: not a kind of this engine. */
const char *kube_resource_of(const char *kind);

/* The body of a DELETE of the object of that uid, and no other of its name, with all that it owns. */
const char *kube_delete_body(struct arena *a, const char *uid);
