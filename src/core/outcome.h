#pragma once
/* How a question about a resource was answered.  A header of its own, because drivers answer and
 * need nothing else of the core.  What an answer means depends on what was asked: resource.c has
 * the table. */
enum outcome {
	OUTCOME_DONE,	 /* created, found, alive; destroyed and proven gone */
	OUTCOME_REFUSED, /* not done, and surely so; the error says why */
	OUTCOME_UNSURE,	 /* no answer, or one that says nothing */
	OUTCOME_ABSENT,	 /* not there */
	OUTCOME_BROKEN,	 /* there, but create must run again to make it work */
	OUTCOME_HELD,	 /* there, and not gone yet; the error says why */
};
#define OUTCOMES (OUTCOME_HELD + 1)
