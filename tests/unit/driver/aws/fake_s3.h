#pragma once
/*
 * fake_s3 - a bucket in memory behind fake_http: PUT, GET (with Range), HEAD and lists of objects up to
 * one part, addressed by path; and the account.
 */
#include "fake_http.h"

#define FAKE_S3_OBJECTS 64
#define FAKE_S3_ACCOUNT "123456789012"

struct fake_s3_object {
	char *name; /* "bucket/key", as it was in the path */
	char *body, *tags;
	size_t n;
	int puts;
};

struct fake_s3 {
	struct fake_http http;
	struct fake_s3_object objects[FAKE_S3_OBJECTS];
	int n;
	/* Answers to give instead, per "METHOD /path" prefix; 0: none. */
	const char *refuse;
	int refuse_status;
	const char *refuse_body;
	atomic_int refusals; /* left */
	char *credentials;   /* as in driver_row */
};

void fake_s3_start(struct fake_s3 *f);
void fake_s3_stop(struct fake_s3 *f);
/* The same with a directory of the test's own, and without sessions that outlive the test; for setup and teardown. */
int fake_s3_start_with_dir(struct fake_s3 *f, void **ret_dir);
int fake_s3_stop_with_dir(struct fake_s3 *f, void **dir);
/* NULL if there is none. */
struct fake_s3_object *fake_s3_find(struct fake_s3 *f, const char *name);
