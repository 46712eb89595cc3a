/*
 * Engine aws.ec2 before a run is planned: what the plan must know of account and region.  It runs on
 * the caller's machine, with the caller's credentials, and the facts are stored with the run.
 */
#include "driver/aws/aws_resolve.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/aws/api/s3.h"
#include "driver/aws/aws_session.h"
#include "driver/own_program.h"

#define RESOLVE_MS 60000

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
		    bucket ? bucket : arena_printf(q->a, AWS_BUCKET, account, aws_region(q->s)));
	doc_set(q->a, q->facts, STR("bucket_given"), doc_new_bool(q->a, bucket != NULL));
	return 0;
}

/* Results that cannot be copied are lost with the machine of their master: so their bucket is looked at before
 * anything is paid for. */
static int check_results(struct aws_inquiry *q, struct err *err)
{
	const struct s3_place at = {
		.bucket = inquiry_option(q, "results"),
		.owner = doc_str(q->facts, "account", STR("")).p,
	};

	if (!at.bucket || s3_bucket_check(q->s, &at, &q->d, err) == 0)
		return 0;
	return err_wrap(err, "output.s3");
}

/* ---- source and data ---- */

static void add_inputs(struct aws_inquiry *q)
{
	const struct doc *inputs = doc_array(q->in->options, "inputs");
	int64_t sum = (int64_t)q->in->fetched_bytes;

	for (size_t i = 0; inputs && i < inputs->array.n; i++) {
		CLEANUP(freep)
		char *path =
			path_join(q->in->base_dir ? q->in->base_dir : ".", inputs->array.v[i]->s.p);

		sum += file_tree_bytes(path);
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

/* binaries: {role: program}, where the machines of a role ("" is the master) have another architecture than
 * this one. */
static int add_program(struct aws_inquiry *q, const char *role, const char *type, struct err *err)
{
	const char *machine = aws_type_architecture(type);

	if (strcmp(machine, own_program_machine()) == 0 ||
	    own_program_add_named(q->facts, role, machine, q->a, err) == 0)
		return 0;
	return *role ? err_wrap(err, "role '%.40s', %s", role, type)
		     : err_wrap(err, "the master, %s", type);
}

static int add_programs(struct aws_inquiry *q, struct err *err)
{
	const struct doc *roles = doc_table(q->in->options, "roles");
	const char *master = inquiry_option(q, "master_type");

	for (size_t i = 0; roles && i < roles->table.n; i++) {
		const struct doc *types = doc_array(roles->table.v[i].value, "types");
		const char *role = arena_str(q->a, roles->table.v[i].key).p;

		if (types && types->array.n &&
		    add_program(q, role, types->array.v[0]->s.p, err) < 0)
			return -1;
	}
	if (master && inquiry_master_is_apart(q) && add_program(q, "", master, err) < 0)
		return -1;
	return own_program_add(q->facts, NULL, q->a, err);
}

static int ask_all(struct aws_inquiry *q, struct err *err)
{
	if (add_programs(q, err) < 0 || add_account(q, err) < 0 || check_results(q, err) < 0 ||
	    inquiry_network(q, err) < 0 || inquiry_images(q, err) < 0 || inquiry_client(q, err) < 0)
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

	if (open_session(in, &q.d, &s, err) < 0)
		return -1;
	q.s = s;
	if (ask_all(&q, err) < 0)
		return -1;
	*ret_facts = q.facts;
	return 0;
}

static struct doc *variables(const struct aws *s, struct arena *a)
{
	struct doc *env = doc_new(a, DOC_TABLE);

	for (const char *const *name = aws_session_variables; *name; name++)
		if (getenv(*name) && *getenv(*name))
			doc_set(a, env, str_from(*name), doc_new_str(a, str_from(getenv(*name))));
	if (aws_ca_file(s))
		doc_set(a, env, STR("AWS_CA_BUNDLE"), doc_new_str(a, str_from(aws_ca_file(s))));
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
	doc_set(a, all, STR("env"), variables(s, a));
	*ret = all;
	return 0;
}

const struct resolver aws_ec2_resolver = {
	.engine = "aws.ec2",
	.at_client = true,
	.nodes_dial = true,
	.has_stores = true,
	.credentials = credentials,
	.resolve = resolve,
};
