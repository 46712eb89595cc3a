#pragma once
/* data_upload - archives for nodes that do not share this machine's files: packed here, kept by the master by content. */
#include <stdint.h>

struct api;
struct buf;
struct err;
struct job_input;

/* A file without a name in the client's home. */
int blob_temporary(struct api *api, struct err *err);
/* Unless the master has it. */
int blob_upload(struct api *api, int fd, const char *sha256, uint64_t size, struct err *err);
/* All data of the job, and what the master is to know of it (master/data_blobs.h). */
int data_upload(struct api *api, const struct job_input *in, struct buf *ret_json, struct err *err);
