#pragma once
/*
 * kube_sight - a pod without an agent: which node it carries, and whether its job has begun or ended.
 *
 * Pure.  The job is the main container; it has ended when that will not be started again.
 */
#include <stdbool.h>

struct doc;
struct driver_sight;

/* Of the pods of an operator: the number of the first node of their template in the role. */
#define KUBE_LABEL_FROM "regatta/from"

/* False: its job has not begun, or the cluster took the pod away (kube_pods.h says why). */
bool pod_sight(const struct doc *pod, struct driver_sight *ret);
