#pragma once
/*
 * kube_queue - objects that wait for their turn in a queue of Kueue, in Kueue's words.
 *
 * Kueue suspends and resumes an object as its Workload says, which it makes for it.  What somebody else has
 * suspended waits too, but there are no words about it.
 */
#include <stdbool.h>
#include "core/outcome.h"

struct doc;
struct kube_work;

/* Is the object in a queue, whoever has put it there? */
bool kube_queue_has(const struct doc *object);
/* Fills w->turn for an object that is in a queue. */
void kube_queue_refresh(struct kube_work *w, const struct doc *object);
/* The answer to an observation of an object that is suspended. */
enum outcome kube_queue_judge(struct kube_work *w, const struct doc *object);
/* Ends the pods of an object in a queue: Kueue resumes one that somebody else suspends. */
enum outcome kube_queue_stop(struct kube_work *w, const struct doc *object);
