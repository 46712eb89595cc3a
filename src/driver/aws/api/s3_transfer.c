/*
 * Files to S3 in parts, and back from an offset on.
 *
 * An upload that was not completed is found by its key, and its parts by their SHA-256, or, in a store
 * that does not keep it, by the MD5 that their ETag is: what is there with the same bytes is not sent
 * again, whoever sent it.
 */
#include "driver/aws/api/s3.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/hex.h"
#include "driver/aws/api/s3_call.h"
#include "net/digest.h"

#define MAX_BODY ((size_t)4 * 1024 * 1024)
#define STALL_MS 30000

struct s3_part {
	char etag[128], sha256[64];
	uint64_t size;
};

struct uploading {
	struct aws *s;
	const struct s3_place *at;
	const struct s3_options *o;
	const struct deadline *d;
	int fd;
	uint64_t size, part_size;
	int nparts;
	struct s3_part *parts; /* [number - 1]; etag "": not there */
	char id[1024];
};

/* ---- the upload ---- */

static int put_whole(const struct uploading *u, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, u->s, u->at, true, "PUT", "PutObject", err);

	x.c.shape = AWS_BYTES;
	x.c.from_fd = true;
	x.c.fd = u->fd;
	x.c.size = u->size;
	if (rc == 0) {
		s3_call_options(&x, u->o);
		rc = s3_call_hash(&x, NULL, err);
	}
	if (rc == 0)
		rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

static int begin_upload(struct uploading *u, struct err *err)
{
	struct s3_options o = u->o ? *u->o : (struct s3_options){0};
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, u->s, u->at, true, "POST", "CreateMultipartUpload", err);

	o.if_absent = false; /* CompleteMultipartUpload checks it */
	if (rc == 0) {
		s3_call_query(&x, "uploads", NULL);
		s3_call_options(&x, &o);
		aws_call_header(&x.c, "x-amz-checksum-algorithm", "SHA256");
		rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
	}
	if (rc == 0)
		snprintf(u->id, sizeof(u->id), "%s", xml_text(ans.root, "UploadId"));
	if (rc == 0 && !*u->id)
		rc = err_set(err, ERR_PROTOCOL, "CreateMultipartUpload: no UploadId");
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

/* Each upload of exactly this key that is not completed. */
static int each_upload(const struct uploading *u, int (*fn)(void *, const char *id, struct err *),
		       void *ctx, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, u->s, u->at, false, "GET", "ListMultipartUploads", err);

	if (rc == 0) {
		s3_call_query(&x, "uploads", NULL);
		s3_call_query(&x, "prefix", u->at->key);
		rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
	}
	for (const struct xml *p = rc == 0 ? xml_at(ans.root, "Upload") : NULL; p && rc == 0;
	     p = xml_next(p))
		if (strcmp(xml_text(p, "Key"), u->at->key) == 0)
			rc = fn(ctx, xml_text(p, "UploadId"), err);
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

static int take_last(void *ctx, const char *id, struct err *err)
{
	struct uploading *u = ctx;

	(void)err;
	snprintf(u->id, sizeof(u->id), "%s", id);
	return 0;
}

static void note_parts(struct uploading *u, const struct xml *root)
{
	for (const struct xml *x = xml_at(root, "Part"); x; x = xml_next(x)) {
		uint64_t number = 0;

		if (!str_to_u64(str_from(xml_text(x, "PartNumber")), &number) || number < 1 ||
		    number > (uint64_t)u->nparts)
			continue;
		struct s3_part *p = &u->parts[number - 1];

		snprintf(p->etag, sizeof(p->etag), "%s", xml_text(x, "ETag"));
		snprintf(p->sha256, sizeof(p->sha256), "%s", xml_text(x, "ChecksumSHA256"));
		str_to_u64(str_from(xml_text(x, "Size")), &p->size);
	}
}

static int list_parts(struct uploading *u, struct err *err)
{
	char marker[32] = "";

	for (int page = 0; page < S3_MAX_PARTS; page++) {
		struct aws_answer ans = {0};
		struct s3_call x;
		int rc = s3_call_init(&x, u->s, u->at, true, "GET", "ListParts", err);

		if (rc == 0) {
			s3_call_query(&x, "uploadId", u->id);
			if (*marker)
				s3_call_query(&x, "part-number-marker", marker);
			rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
		}
		bool more = false;

		if (rc == 0) {
			const char *next = xml_text(ans.root, "NextPartNumberMarker");

			note_parts(u, ans.root);
			more = strcmp(xml_text(ans.root, "IsTruncated"), "true") == 0 && *next &&
			       strcmp(next, marker) != 0;
			snprintf(marker, sizeof(marker), "%s", next);
		}
		aws_answer_release(&ans);
		s3_call_release(&x);
		if (rc < 0 || !more)
			return rc;
	}
	return 0;
}

/* Continues an earlier upload of the key, with the parts that it has; begins one if there is none. */
static int resume(struct uploading *u, struct err *err)
{
	if (each_upload(u, take_last, u, err) < 0)
		return -1;
	if (!*u->id)
		return begin_upload(u, err);
	return list_parts(u, err);
}

/* Has the part been uploaded before, with the same bytes? */
static bool is_there(const struct uploading *u, const struct s3_part *p, const struct aws_call *c,
		     const char *sha256)
{
	uint8_t digest[MD5_BYTES];
	char hex[2 * MD5_BYTES + 1];

	if (!*p->etag || p->size != c->size)
		return false;
	if (*p->sha256)
		return strcmp(p->sha256, sha256) == 0;
	if (md5_fd_range(u->fd, (uint64_t)c->offset, c->size, digest, NULL) < 0)
		return false;
	hex_encode(digest, sizeof(digest), hex);
	return strstr(p->etag, hex) != NULL;
}

static int send_part(struct uploading *u, int index, struct err *err)
{
	uint64_t from = (uint64_t)index * u->part_size, left = u->size - from;
	struct s3_part *p = &u->parts[index];
	struct aws_answer ans = {0};
	const char *sha256 = "";
	char number[16];
	struct s3_call x;
	int rc = s3_call_init(&x, u->s, u->at, true, "PUT", "UploadPart", err);

	snprintf(number, sizeof(number), "%d", index + 1);
	x.c.shape = AWS_BYTES;
	x.c.from_fd = true;
	x.c.fd = u->fd;
	x.c.offset = (int64_t)from;
	x.c.size = left < u->part_size ? left : u->part_size;
	if (rc == 0)
		rc = s3_call_hash(&x, &sha256, err);
	if (rc == 0 && is_there(u, p, &x.c, sha256)) {
		snprintf(p->sha256, sizeof(p->sha256), "%s", sha256);
		s3_call_release(&x);
		return 0;
	}
	if (rc == 0) {
		s3_call_query(&x, "partNumber", number);
		s3_call_query(&x, "uploadId", u->id);
		rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
	}
	if (rc == 0) {
		memcpy(p->etag, ans.etag, sizeof(p->etag));
		snprintf(p->sha256, sizeof(p->sha256), "%s", sha256);
	}
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

static int complete(const struct uploading *u, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, u->s, u->at, true, "POST", "CompleteMultipartUpload", err);

	buf_init(&body, MAX_BODY);
	buf_addz(&body, "<CompleteMultipartUpload>");
	for (int i = 0; i < u->nparts; i++)
		buf_printf(&body,
			   "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag>"
			   "<ChecksumSHA256>%s</ChecksumSHA256></Part>",
			   i + 1, u->parts[i].etag, u->parts[i].sha256);
	buf_addz(&body, "</CompleteMultipartUpload>");
	if (rc == 0) {
		x.c.body = buf_str(&body);
		x.c.type = "application/xml";
		s3_call_query(&x, "uploadId", u->id);
		if (u->o && u->o->if_absent)
			aws_call_header(&x.c, "If-None-Match", "*");
		rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
	}
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

static int put_in_parts(struct uploading *u, struct err *err)
{
	u->part_size = s3_part_size(u->size);
	u->nparts = (int)((u->size + u->part_size - 1) / u->part_size);
	u->parts = xcalloc((size_t)u->nparts, sizeof(*u->parts));
	int rc = resume(u, err);

	for (int i = 0; i < u->nparts && rc == 0; i++)
		rc = send_part(u, i, err);
	if (rc == 0)
		rc = complete(u, err);
	free(u->parts);
	return rc;
}

int s3_upload(struct aws *s, const struct s3_place *at, int fd, uint64_t size,
	      const struct s3_options *o, const struct deadline *d, struct err *err)
{
	struct uploading u = {.s = s, .at = at, .o = o, .d = d, .fd = fd, .size = size};
	int rc = size <= S3_PART ? put_whole(&u, err) : put_in_parts(&u, err);

	return rc < 0 ? err_wrap(err, "upload of %.24s", at->key) : 0;
}

static int abort_one(void *ctx, const char *id, struct err *err)
{
	const struct uploading *u = ctx;
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, u->s, u->at, true, "DELETE", "AbortMultipartUpload", err);

	x.c.shape = AWS_BYTES;
	if (rc == 0) {
		s3_call_query(&x, "uploadId", id);
		rc = s3_call_run(&x, u->s, u->at, u->d, &ans, err);
	}
	if (rc < 0 && strcmp(ans.code, "NoSuchUpload") == 0)
		rc = 0;
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

int s3_abort_uploads(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     struct err *err)
{
	struct uploading u = {.s = s, .at = at, .d = d};

	return each_upload(&u, abort_one, &u, err);
}

/* ---- the download ---- */

static int get_rest(struct aws *s, const struct s3_place *at, const char *etag,
		    struct http_download *file, const struct deadline *d, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, true, "GET", "GetObject", err);

	x.c.shape = AWS_BYTES;
	x.c.file = file;
	if (rc == 0) {
		aws_call_header(&x.c, "If-Match", *etag ? etag : NULL);
		rc = s3_call_run(&x, s, at, d, &ans, err);
	}
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

int s3_download(struct aws *s, const struct s3_place *at, int fd, uint64_t *offset, uint64_t max,
		const struct deadline *d, struct err *err)
{
	struct http_download file = {
		.fd = fd, .offset = *offset, .max_bytes = max, .stall_ms = STALL_MS};
	struct s3_object o;
	struct err own = {0};
	uint64_t before;
	int rc = s3_head(s, at, d, &o, &own);

	if (rc == 0 && (o.size > max || o.size < *offset))
		rc = err_set(&own, o.size > max ? ERR_CAPACITY : ERR_CONFLICT,
			     "s3://%s/%.80s has %" PRIu64 " bytes", at->bucket, at->key, o.size);
	/* Tried again as long as each try brings more bytes. */
	do {
		before = file.offset;
		if (rc < 0 || o.size == file.offset)
			break;
		rc = get_rest(s, at, o.etag, &file, d, &own);
		if (rc == 0)
			break;
		if (own.kind != ERR_UNAVAILABLE && own.kind != ERR_TIMEOUT)
			break;
		if (file.offset > before)
			rc = 0;
	} while (file.offset > before && deadline_left_ms(d) > 0);
	if (rc == 0 && file.offset != o.size)
		rc = err_set(&own, ERR_UNAVAILABLE, "s3://%s/%.80s ended early", at->bucket,
			     at->key);
	*offset = file.offset;
	if (rc < 0 && err)
		*err = own;
	return rc;
}
