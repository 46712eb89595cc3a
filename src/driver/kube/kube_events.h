#pragma once
/* kube_events - what the cluster has recorded about an object. */
struct err;
struct kube_work;

/* The last warning about the object of that uid, as err; ERR_NONE: there is none, or it cannot be had.  A quota
 * that is used up is ERR_QUOTA, what admission refuses ERR_DENIED, a missing volume ERR_INVALID, anything else
 * ERR_UNAVAILABLE. */
void events_last_warning(struct kube_work *w, const char *uid, struct err *ret);
/* As above, about the Jobs that an operator has made for the object, which begin with its name. */
void events_last_of_its_jobs(struct kube_work *w, struct err *ret);
/* Why a pod of that uid is gone that somebody deleted: ERR_PREEMPTED if the scheduler did. */
void events_why_deleted(struct kube_work *w, const char *uid, struct err *ret);
