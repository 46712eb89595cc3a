#pragma once
/* data_upload - archives for nodes that do not share this machine's files: packed here, kept by the master by content. */
#include <stdint.h>

struct api;
struct buf;
struct err;
struct job_input;

/* An unlinked temporary file in the client's home. */
int blob_temporary(struct api *api, struct err *err);
/* Uploads the file unless the master has it. */
int blob_upload(struct api *api, int fd, const char *sha256, uint64_t size, struct err *err);
/* Uploads all data of the job; *ret_json describes it for the request (master/data_blobs.h). */
int data_upload(struct api *api, const struct job_input *in, struct buf *ret_json, struct err *err);
