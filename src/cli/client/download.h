#pragma once
/* download - a file of the master's, written below a directory of this machine. */
#include <stdbool.h>
#include <stdint.h>

struct api;
struct err;

struct download {
	int dir;	  /* of the file */
	const char *name; /* in it: a file or link of this name is replaced, nothing else is */
	bool executable;
	const char *sha256; /* of its bytes; NULL: not known */
	uint64_t bytes;	    /* set on success */
};

/* The answer to a GET.  The file gets its name when it is complete; after an error nothing is left of it. */
int download_file(struct api *api, const char *url, struct download *d, struct err *err);
/* The same, to an open descriptor. */
int download_to(struct api *api, const char *url, int fd, struct download *d, struct err *err);
