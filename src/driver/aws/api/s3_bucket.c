/* Buckets: made, closed to the public, encrypted, tagged, with rules for what expires. */
#include "driver/aws/api/s3.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "driver/aws/api/s3_call.h"

#define MAX_BODY ((size_t)1024 * 1024)
#define ABORT_DAYS 7

static void add_text(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case '&':
			buf_addz(out, "&amp;");
			break;
		case '<':
			buf_addz(out, "&lt;");
			break;
		case '>':
			buf_addz(out, "&gt;");
			break;
		default:
			buf_addc(out, *p);
		}
	}
}

static void add_tag(struct buf *out, const struct s3_tag *t)
{
	buf_addz(out, "<Tag><Key>");
	add_text(out, t->name);
	buf_addz(out, "</Key><Value>");
	add_text(out, t->value);
	buf_addz(out, "</Value></Tag>");
}

/* PUT ?what with a document. */
static int put_document(struct aws *s, const struct s3_place *at, const char *what,
			const char *action, struct str body, const struct deadline *d,
			struct aws_answer *ret, struct err *err)
{
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, false, "PUT", action, err);

	x.c.shape = AWS_BYTES;
	x.c.body = body;
	x.c.type = "application/xml";
	if (rc == 0) {
		if (what)
			s3_call_query(&x, what, NULL);
		rc = s3_call_hash(&x, NULL, err);
	}
	if (rc == 0)
		rc = s3_call_run(&x, s, at, d, ret, err);
	s3_call_release(&x);
	return rc;
}

static int put_setting(struct aws *s, const struct s3_place *at, const char *what,
		       const char *action, struct str body, const struct deadline *d,
		       struct err *err)
{
	struct aws_answer ans = {0};
	int rc = put_document(s, at, what, action, body, d, &ans, err);

	aws_answer_release(&ans);
	return rc;
}

int s3_bucket_create(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     struct err *err)
{
	struct s3_place anybody = {
		.bucket = at->bucket}; /* a bucket that does not exist has no owner to check */
	CLEANUP(buf_release) struct buf body = {0};
	struct aws_answer ans = {0};
	int rc;

	buf_init(&body, MAX_BODY);
	if (strcmp(aws_region(s), "us-east-1") !=
	    0) /* us-east-1 is not a valid LocationConstraint */
		buf_printf(
			&body,
			"<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
			"<LocationConstraint>%s</LocationConstraint></CreateBucketConfiguration>",
			aws_region(s));
	rc = put_document(s, &anybody, NULL, "CreateBucket", buf_str(&body), d, &ans, err);
	if (rc < 0 && strcmp(ans.code, "BucketAlreadyOwnedByYou") == 0)
		rc = 0;
	aws_answer_release(&ans);
	return rc;
}

int s3_bucket_block_public(struct aws *s, const struct s3_place *at, const struct deadline *d,
			   struct err *err)
{
	return put_setting(s, at, "publicAccessBlock", "PutBucketPublicAccessBlock",
			   STR("<PublicAccessBlockConfiguration>"
			       "<BlockPublicAcls>true</BlockPublicAcls>"
			       "<IgnorePublicAcls>true</IgnorePublicAcls>"
			       "<BlockPublicPolicy>true</BlockPublicPolicy>"
			       "<RestrictPublicBuckets>true</RestrictPublicBuckets>"
			       "</PublicAccessBlockConfiguration>"),
			   d, err);
}

int s3_bucket_encrypt(struct aws *s, const struct s3_place *at, const struct deadline *d,
		      struct err *err)
{
	return put_setting(
		s, at, "encryption", "PutEncryptionConfiguration",
		STR("<ServerSideEncryptionConfiguration><Rule>"
		    "<ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>"
		    "</ApplyServerSideEncryptionByDefault></Rule>"
		    "</ServerSideEncryptionConfiguration>"),
		d, err);
}

int s3_bucket_tag(struct aws *s, const struct s3_place *at, const struct s3_tag *tags, size_t n,
		  const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};

	buf_init(&body, MAX_BODY);
	buf_addz(&body, "<Tagging><TagSet>");
	for (size_t i = 0; i < n; i++)
		add_tag(&body, &tags[i]);
	buf_addz(&body, "</TagSet></Tagging>");
	return put_setting(s, at, "tagging", "PutBucketTagging", buf_str(&body), d, err);
}

#define EXPIRY_ID "<ID>expire-%dd</ID>"

static void add_expiry(struct buf *out, const struct s3_expiry *rule)
{
	buf_printf(out, "<Rule>" EXPIRY_ID "<Status>Enabled</Status><Filter>", rule->days);
	add_tag(out, &rule->tag);
	buf_printf(out, "</Filter><Expiration><Days>%d</Days></Expiration></Rule>", rule->days);
}

int s3_bucket_lifecycle(struct aws *s, const struct s3_place *at, const struct s3_expiry *rules,
			size_t n, const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};

	buf_init(&body, MAX_BODY);
	buf_addz(&body, "<LifecycleConfiguration>");
	for (size_t i = 0; i < n; i++)
		add_expiry(&body, &rules[i]);
	buf_printf(
		&body,
		"<Rule><ID>uploads</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter>"
		"<AbortIncompleteMultipartUpload><DaysAfterInitiation>%d</DaysAfterInitiation>"
		"</AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>",
		ABORT_DAYS);
	return put_setting(s, at, "lifecycle", "PutLifecycleConfiguration", buf_str(&body), d, err);
}

/* A call of the bucket without a body. */
static int ask(struct aws *s, const struct s3_place *at, const char *method, const char *action,
	       const char *what, enum aws_shape shape, const struct deadline *d,
	       struct aws_answer *ret, struct err *err)
{
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, false, method, action, err);

	x.c.shape = shape;
	if (rc == 0 && what)
		s3_call_query(&x, what, NULL);
	if (rc == 0)
		rc = s3_call_run(&x, s, at, d, ret, err);
	s3_call_release(&x);
	return rc;
}

int s3_bucket_check(struct aws *s, const struct s3_place *at, const struct deadline *d,
		    struct err *err)
{
	struct aws_answer ans = {0};
	int rc = ask(s, at, "HEAD", "ListBucket", NULL, AWS_BYTES, d, &ans, err);

	if (rc == 0 && *ans.region && strcmp(ans.region, aws_region(s)) != 0)
		rc = err_set(err, ERR_INVALID, "the bucket '%s' is in %s, not in %s", at->bucket,
			     ans.region, aws_region(s));
	aws_answer_release(&ans);
	return rc;
}

int s3_bucket_tags(struct aws *s, const struct s3_place *at, const struct deadline *d,
		   struct buf *out, struct err *err)
{
	struct aws_answer ans = {0};
	int rc = ask(s, at, "GET", "GetBucketTagging", "tagging", AWS_XML, d, &ans, err);

	if (rc < 0 && strcmp(ans.code, "NoSuchTagSet") == 0)
		rc = 0;
	else if (rc == 0)
		for (const struct xml *x = xml_at(ans.root, "TagSet/Tag"); x; x = xml_next(x))
			buf_printf(out, "%s\t%s\n", xml_text(x, "Key"), xml_text(x, "Value"));
	aws_answer_release(&ans);
	return rc;
}

int s3_bucket_delete(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     struct err *err)
{
	struct aws_answer ans = {0};
	int rc = ask(s, at, "DELETE", "DeleteBucket", NULL, AWS_BYTES, d, &ans, err);

	aws_answer_release(&ans);
	return rc;
}

/* The document of the rules; nothing is appended if there are none. */
static int read_rules(struct aws *s, const struct s3_place *at, const struct deadline *d,
		      struct buf *out, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, false, "GET", "GetLifecycleConfiguration", err);

	x.c.shape = AWS_BYTES;
	x.c.sink = out;
	if (rc == 0) {
		s3_call_query(&x, "lifecycle", NULL);
		rc = s3_call_run(&x, s, at, d, &ans, err);
	}
	if (rc < 0 && strcmp(ans.code, "NoSuchLifecycleConfiguration") == 0) {
		*err = (struct err){0};
		buf_reset(out);
		rc = 0;
	}
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

int s3_bucket_add_expiry(struct aws *s, const struct s3_place *at, const struct s3_expiry *rule,
			 const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf old = {0}, body = {0};
	const char *end;
	char id[64];

	buf_init(&old, MAX_BODY);
	buf_init(&body, MAX_BODY);
	snprintf(id, sizeof(id), EXPIRY_ID, rule->days);
	if (read_rules(s, at, d, &old, err) < 0)
		return -1;
	if (old.n > 0 && strstr(old.p, id))
		return 0;
	end = old.n > 0 ? strstr(old.p, "</LifecycleConfiguration>") : NULL;
	if (!end)
		return s3_bucket_lifecycle(s, at, rule, 1, d, err);
	buf_add(&body, old.p, (size_t)(end - old.p));
	add_expiry(&body, rule);
	buf_addz(&body, end);
	return put_setting(s, at, "lifecycle", "PutLifecycleConfiguration", buf_str(&body), d, err);
}
