#pragma once
/* submit - pack and upload the source of a job, then send the request. */
#include "base/buf.h"

struct api;
struct err;
struct job_input;

#define REQUEST_ID_SIZE 33 /* 128 random bits as hex, and the NUL */

struct submission {
	struct buf data; /* the archives of its data, as JSON */
	struct buf body; /* the request without its id */
	int source;	 /* descriptor of the packed source, -1 = none */
	char sha256[65]; /* of the archive; "": there is none */
	uint64_t size;
	bool no_wait;		/* refused if it had to wait in the queue */
	uint64_t fetched_bytes; /* that a node gets from other servers, at most */
};

/* Packs and uploads the source (if the master does not have it) and prepares the request. */
int submission_prepare(struct api *api, const struct job_input *in, struct submission *ret,
		       struct err *err);
void submission_release(struct submission *s);
/* Call when the request will not be sent again: frees the disk space of the packed source. */
void submission_drop_source(struct submission *s);
void request_id_new(char out[static REQUEST_ID_SIZE]);
/* The run object is appended to *ret_json.  The same id always gives the same run. */
int submission_send(struct api *api, const struct submission *s, const char *request_id,
		    struct buf *ret_json, struct err *err);

/* The error of a submission: one that the user interrupted says what may still happen.  -1. */
int submission_interrupted(struct err *err);
