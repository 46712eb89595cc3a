/*
 * ETags as S3 makes them: the MD5 of an object that was sent at once; else the MD5 of the MD5s of its
 * parts, and how many they were.
 */
#include "driver/aws/api/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "net/digest.h"

#define MD5_HEX (2 * MD5_BYTES + 1)

uint64_t s3_part_size(uint64_t size)
{
	uint64_t part = S3_PART;

	while (size / part >= S3_MAX_PARTS)
		part *= 2;
	return part;
}

static int etag_of_parts(int fd, uint64_t size, char hex[static MD5_HEX], int *ret_parts,
			 struct err *err)
{
	uint64_t part = s3_part_size(size);
	size_t n = (size_t)((size + part - 1) / part);
	CLEANUP(freep) uint8_t *all = xmalloc(n * MD5_BYTES);
	uint8_t digest[MD5_BYTES];

	for (size_t i = 0; i < n; i++)
		if (md5_fd_range(fd, i * part, part, all + i * MD5_BYTES, err) < 0)
			return -1;
	md5_of(all, n * MD5_BYTES, digest);
	hex_encode(digest, sizeof(digest), hex);
	*ret_parts = (int)n;
	return 0;
}

int s3_etag_is_of(const char *etag, int fd, uint64_t size, struct err *err)
{
	char hex[MD5_HEX], own[MD5_HEX + 16];
	uint8_t digest[MD5_BYTES];
	int parts = 0;

	if (size > S3_PART) {
		if (etag_of_parts(fd, size, hex, &parts, err) < 0)
			return -1;
		snprintf(own, sizeof(own), "\"%s-%d\"", hex, parts);
	} else {
		if (md5_fd(fd, digest, err) < 0)
			return -1;
		hex_encode(digest, sizeof(digest), hex);
		snprintf(own, sizeof(own), "\"%s\"", hex);
	}
	return strcmp(own, etag) == 0;
}
