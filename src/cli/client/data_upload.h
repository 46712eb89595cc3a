#pragma once
/* data_upload - inputs of a job that the master keeps by content: archives for nodes that do not share this
 * machine's files, and lists of objects that nodes fetch elsewhere. */
#include <stdint.h>

struct api;
struct buf;
struct err;
struct job_input;

/* An unlinked temporary file in the client's home. */
int blob_temporary(struct api *api, struct err *err);
/* Uploads the file unless the master has it. */
int blob_upload(struct api *api, int fd, const char *sha256, uint64_t size, struct err *err);
/* Uploads all data of the job; *ret_json describes it for the request (master/data_blobs.h).  *ret_bytes:
 * what a node fetches elsewhere, at most. */
int data_upload(struct api *api, const struct job_input *in, struct buf *ret_json,
		uint64_t *ret_bytes, struct err *err);
