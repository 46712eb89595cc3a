/*
 * Engine aws.ec2 before a run is planned: what the plan must know of account and region.  It runs on
 * the caller's machine, with the caller's credentials, and the facts are stored with the run.
 */
#include "driver/aws/aws_resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "driver/aws/aws_session.h"
#include "net/digest.h"

#define RESOLVE_MS 60000
#define MOST_INPUTS 1000000 /* files of source and data */

const char *inquiry_option(const struct aws_inquiry *q, const char *key)
{
	struct str text = doc_str(q->in->options, key, (struct str){0});

	return text.n ? text.p : NULL;
}

void inquiry_set(const struct aws_inquiry *q, struct doc *table, const char *key, const char *value)
{
	doc_set(q->a, table, str_from(key), doc_new_str(q->a, str_from(value)));
}

bool inquiry_master_is_apart(const struct aws_inquiry *q)
{
	const char *master = inquiry_option(q, "master");

	return master && strcmp(master, "auto") == 0;
}

static int add_account(struct aws_inquiry *q, struct err *err)
{
	const char *bucket = inquiry_option(q, "bucket");
	char account[AWS_ACCOUNT];

	if (aws_account(q->s, &q->d, account, err) < 0)
		return -1;
	inquiry_set(q, q->facts, "account", account);
	inquiry_set(q, q->facts, "region", aws_region(q->s));
	inquiry_set(q, q->facts, "bucket",
		    bucket ? bucket
			   : arena_printf(q->a, "regatta-%s-%s", account, aws_region(q->s)));
	doc_set(q->a, q->facts, STR("bucket_given"), doc_new_bool(q->a, bucket != NULL));
	return 0;
}

static int add_binary(struct aws_inquiry *q, struct err *err)
{
	CLEANUP(close_fdp) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct doc *binary = doc_new(q->a, DOC_TABLE);
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	uint64_t size;

	if (fd < 0)
		return err_errno(err, errno, "open this program");
	if (sha256_fd(fd, digest, &size, err) < 0)
		return err_wrap(err, "read this program");
	hex_encode(digest, sizeof(digest), hex);
	inquiry_set(q, binary, "sha256", hex);
	doc_set(q->a, binary, STR("size"), doc_new_int(q->a, (int64_t)size));
	doc_set(q->a, q->facts, STR("binary"), binary);
	return 0;
}

/* ---- source and data ---- */

static int64_t size_of_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* Bytes of a file, or of all files below a directory.  A file that cannot be read counts as 0: packing
 * it reports the error. */
static int64_t size_of(const char *path)
{
	char **names = NULL;
	int64_t sum = 0;
	size_t n = 0;

	if (file_list_tree(path, MOST_INPUTS, &names, &n, NULL) < 0)
		return size_of_file(path);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(freep) char *file = path_join(path, names[i]);

		sum += size_of_file(file);
	}
	file_list_free(names, n);
	return sum;
}

static void add_inputs(struct aws_inquiry *q)
{
	const struct doc *inputs = doc_array(q->in->options, "inputs");
	int64_t sum = 0;

	for (size_t i = 0; inputs && i < inputs->array.n; i++) {
		CLEANUP(freep)
		char *path =
			path_join(q->in->base_dir ? q->in->base_dir : ".", inputs->array.v[i]->s.p);

		sum += size_of(path);
	}
	doc_set(q->a, q->facts, STR("input_bytes"), doc_new_int(q->a, sum));
}

/* ---- the resolver ---- */

static int open_session(const struct resolve_input *in, const struct deadline *d, struct aws **ret,
			struct err *err)
{
	struct aws_config c = {
		.region = doc_str(in->options, "region", (struct str){0}).p,
		.profile = doc_str(in->options, "profile", (struct str){0}).p,
		.assume_role = doc_str(in->options, "assume_role", (struct str){0}).p,
		.endpoint_url = doc_str(in->options, "endpoint_url", (struct str){0}).p,
	};

	return aws_open(&c, d, ret, err);
}

/* In this version no agent starts on the machines: on AWS itself they would only cost money. */
static int check_endpoint(const struct aws_inquiry *q, struct err *err)
{
	if (inquiry_endpoint(q))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"engine aws.ec2 runs no jobs on AWS in this version: `regatta plan` shows what it would "
		"make and what that costs");
}

static int ask_all(struct aws_inquiry *q, struct err *err)
{
	if (add_account(q, err) < 0 || inquiry_network(q, err) < 0 || inquiry_images(q, err) < 0 ||
	    inquiry_client(q, err) < 0 || add_binary(q, err) < 0)
		return -1;
	add_inputs(q);
	if (inquiry_master_is_apart(q))
		inquiry_set(q, q->facts, "at", "client");
	return 0;
}

static int resolve(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		   struct err *err)
{
	CLEANUP(aws_freep) struct aws *s = NULL;
	struct aws_inquiry q = {
		.a = a,
		.d = deadline_in(RESOLVE_MS, NULL),
		.in = in,
		.facts = doc_new(a, DOC_TABLE),
	};

	if (check_endpoint(&q, err) < 0 || open_session(in, &q.d, &s, err) < 0)
		return -1;
	q.s = s;
	if (ask_all(&q, err) < 0)
		return -1;
	*ret_facts = q.facts;
	return 0;
}

static struct doc *variables(struct arena *a)
{
	struct doc *env = doc_new(a, DOC_TABLE);

	for (const char *const *name = aws_session_variables; *name; name++)
		if (getenv(*name) && *getenv(*name))
			doc_set(a, env, str_from(*name), doc_new_str(a, str_from(getenv(*name))));
	return env;
}

/* The credentials document that aws_session.c reads. */
static int credentials(const struct resolve_input *in, struct arena *a, struct doc **ret,
		       struct err *err)
{
	CLEANUP(aws_freep) struct aws *s = NULL;
	struct deadline d = deadline_in(RESOLVE_MS, NULL);
	struct doc *all = doc_new(a, DOC_TABLE);
	const struct doc *url = doc_get(in->options, "endpoint_url");
	struct sigv4_keys keys;

	if (open_session(in, &d, &s, err) < 0 || aws_keys(s, a, &d, &keys, err) < 0)
		return -1;
	doc_set(a, all, STR("access_key"), doc_new_str(a, str_from(keys.access_key)));
	doc_set(a, all, STR("secret_key"), doc_new_str(a, str_from(keys.secret_key)));
	if (keys.session_token)
		doc_set(a, all, STR("session_token"), doc_new_str(a, str_from(keys.session_token)));
	doc_set(a, all, STR("region"), doc_new_str(a, str_from(aws_region(s))));
	if (url)
		doc_set(a, all, STR("endpoint_url"), doc_copy(a, url));
	doc_set(a, all, STR("env"), variables(a));
	*ret = all;
	return 0;
}

const struct resolver aws_ec2_resolver = {
	.engine = "aws.ec2",
	.at_client = true,
	.credentials = credentials,
	.resolve = resolve,
};
