#pragma once
/* kube_wait - what the nodes of an object wait for whose pods do not run yet, and when that is in vain. */
#include <stdbool.h>
#include <stdint.h>
#include "core/outcome.h"

struct doc;
struct err;
struct kube_work;
struct pods_summary;

struct pods_wanted {
	int64_t n;
	bool again;	/* a pod that fails is made anew */
	bool suspended; /* none are made for now */
	bool by_jobs;	/* Jobs make them that an operator has made for the object */
};

/* The answer to an observation of an object, from how its pods stand. */
enum outcome kube_judge_awaited(struct kube_work *w, const struct doc *object,
				struct pods_wanted wanted, struct pods_summary *sum);
/* Nobody else will carry the nodes that wait: they are lost, and the reason is said. */
enum outcome kube_given_up(struct kube_work *w, const struct err *why);
