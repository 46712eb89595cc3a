#include "fake_s3.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hex.h"
#include "driver/aws/aws_session.h"
#include "net/digest.h"

#define IDENTITY                                                                                   \
	"<XResponse><GetCallerIdentityResult><Account>" FAKE_S3_ACCOUNT                            \
	"</Account></GetCallerIdentityResult></XResponse>"
#define NO_KEY "<Error><Code>NoSuchKey</Code><Message>not there</Message></Error>"

struct fake_s3_object *fake_s3_find(struct fake_s3 *f, const char *name)
{
	for (int i = 0; i < f->n; i++)
		if (strcmp(f->objects[i].name, name) == 0)
			return &f->objects[i];
	return NULL;
}

static void etag_of(const struct fake_s3_object *o, char out[static 40])
{
	uint8_t digest[MD5_BYTES];

	md5_of(o->body, o->n, digest);
	hex_encode(digest, sizeof(digest), out);
}

static void put(struct fake_s3 *f, const char *name, const struct fake_asked *a)
{
	struct fake_s3_object *o = fake_s3_find(f, name);
	const char *tags = fake_header(a, "x-amz-tagging");

	if (!o && f->n == FAKE_S3_OBJECTS)
		abort();
	if (!o) {
		o = &f->objects[f->n++];
		o->name = xstrdup(name);
	}
	free(o->body);
	free(o->tags);
	o->body = xmalloc(a->body_n + 1);
	memcpy(o->body, a->body, a->body_n + 1); /* with the NUL that fake_http added */
	o->n = a->body_n;
	o->tags = xstrdup(tags ? tags : "");
	o->puts++;
}

static int compare(const void *a, const void *b)
{
	const struct fake_s3_object *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void list(struct fake_s3 *f, int fd, const char *bucket, const char *query)
{
	const struct fake_s3_object *all[FAKE_S3_OBJECTS];
	const char *prefix = strstr(query, "prefix=");
	struct buf out, want;
	char hex[40];
	int n = 0;

	buf_init(&out, 1u << 20);
	buf_init(&want, 4096);
	buf_printf(&want, "%s/", bucket);
	for (const char *p = prefix ? prefix + 7 : ""; *p && *p != '&'; p++) {
		if (strncmp(p, "%2F", 3) == 0) {
			buf_addc(&want, '/');
			p += 2;
		} else {
			buf_addc(&want, *p);
		}
	}
	for (int i = 0; i < f->n; i++)
		if (strncmp(f->objects[i].name, want.p, want.n) == 0)
			all[n++] = &f->objects[i];
	qsort(all, (size_t)n, sizeof(all[0]), compare);
	buf_addz(&out, "<ListBucketResult>");
	for (int i = 0; i < n; i++) {
		etag_of(all[i], hex);
		buf_printf(&out,
			   "<Contents><Key>%s</Key><Size>%zu</Size><ETag>\"%s\"</ETag></Contents>",
			   all[i]->name + strlen(bucket) + 1, all[i]->n, hex);
	}
	buf_addz(&out, "</ListBucketResult>");
	fake_say(fd, 200, "Content-Type: application/xml\r\n", out.p);
	buf_release(&out);
	buf_release(&want);
}

static void give(struct fake_s3 *f, int fd, const char *name, const struct fake_asked *a)
{
	const struct fake_s3_object *o = fake_s3_find(f, name);
	const char *range = fake_header(a, "Range");
	size_t from = range ? strtoul(range + strlen("bytes="), NULL, 10) : 0;
	char head[256], hex[40];

	if (!o) {
		if (fake_is(a, "HEAD "))
			fake_raw(
				fd,
				"HTTP/1.1 404 X\r\nx-amz-request-id: R0\r\nContent-Length: 0\r\n\r\n");
		else
			fake_say(fd, 404, "Content-Type: application/xml\r\n", NO_KEY);
		return;
	}
	etag_of(o, hex);
	if (fake_is(a, "HEAD ")) {
		snprintf(
			head, sizeof(head),
			"HTTP/1.1 200 X\r\nx-amz-request-id: R0\r\nETag: \"%s\"\r\nContent-Length: %zu\r\n\r\n",
			hex, o->n);
		fake_raw(fd, head);
		return;
	}
	snprintf(head, sizeof(head), "ETag: \"%s\"\r\nContent-Range: bytes %zu-%zu/%zu\r\n", hex,
		 from, o->n - 1, o->n);
	if (range)
		fake_say_bytes(fd, 206, head, o->body + from, o->n - from);
	else
		fake_say_bytes(fd, 200, "", o->body, o->n);
}

static void serve(struct fake_s3 *f, int fd, const struct fake_asked *a)
{
	const char *path = strchr(a->head, '/') + 1;
	char *name = xstrndup(path, strcspn(path, " "));
	char *query = strchr(name, '?');

	if (query)
		*query++ = '\0';
	if (fake_is(a, "PUT ")) {
		put(f, name, a);
		fake_say(fd, 200, "", "");
	} else if (fake_is(a, "GET ") && query && strstr(query, "list-type=2")) {
		list(f, fd, name, query);
	} else {
		give(f, fd, name, a);
	}
	free(name);
}

static bool answer(struct fake_http *h, int fd, int nth, const struct fake_asked *a)
{
	struct fake_s3 *f = h->ctx;

	(void)nth;
	pthread_mutex_lock(&h->lock);
	if (strstr(a->body, "Action=GetCallerIdentity")) {
		fake_say(fd, 200, "Content-Type: text/xml\r\n", IDENTITY);
	} else if (f->refuse && f->refusals > 0 && fake_is(a, f->refuse)) {
		f->refusals--;
		fake_say(fd, f->refuse_status, "Content-Type: application/xml\r\n", f->refuse_body);
	} else {
		serve(f, fd, a);
	}
	pthread_mutex_unlock(&h->lock);
	return true;
}

void fake_s3_start(struct fake_s3 *f)
{
	*f = (struct fake_s3){.http = {.answer = answer, .ctx = f}};
	fake_start(&f->http);
	f->credentials = xasprintf("{\"access_key\":\"AKIDTEST\",\"secret_key\":\"s\",\"region\":"
				   "\"eu-west-1\",\"env\":{\"AWS_ENDPOINT_URL\":\"%s\"}}",
				   f->http.url);
}

void fake_s3_stop(struct fake_s3 *f)
{
	fake_stop(&f->http);
	for (int i = 0; i < f->n; i++) {
		free(f->objects[i].name);
		free(f->objects[i].body);
		free(f->objects[i].tags);
	}
	free(f->credentials);
}

int fake_s3_start_with_dir(struct fake_s3 *f, void **ret_dir)
{
	if (unit_make_dir(ret_dir) < 0)
		return -1;
	fake_s3_start(f);
	return 0;
}

int fake_s3_stop_with_dir(struct fake_s3 *f, void **dir)
{
	aws_sessions_drop();
	fake_s3_stop(f);
	return unit_remove_dir(dir);
}
