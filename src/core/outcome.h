#pragma once
/* How a driver answers a question about a resource.  In a header of its own, because drivers
 * need nothing else of the core.  What an answer means depends on the question: resource.c has
 * the table. */
enum outcome {
	OUTCOME_DONE,	 /* created, found, alive; or destroyed and proven gone */
	OUTCOME_REFUSED, /* certainly not done; the error says why */
	OUTCOME_UNSURE,	 /* no answer, or one that proves nothing */
	OUTCOME_ABSENT,	 /* it does not exist */
	OUTCOME_BROKEN,	 /* it exists, but create must run again to make it work */
	OUTCOME_HELD,	 /* it still exists; the error says why */
};
#define OUTCOMES (OUTCOME_HELD + 1)

/* What a host is asked to do with a node: a call of its driver. */
enum host_op { HOST_CREATE, HOST_FIND, HOST_OBSERVE, HOST_DESTROY };
#define HOST_OPS (HOST_DESTROY + 1)
