/*
 * The AWS layer for tests in other languages: a JSON object on each line of stdin, the answer on a
 * line of stdout.  tests/cloud/test_aws_api.py and test_aws_sigv4.py speak to it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/aws.h"
#include "driver/aws/api/s3.h"
#include "driver/aws/api/sigv4.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define MAX_LINE ((size_t)8 * 1024 * 1024)

struct tool {
	struct aws *s;
	struct arena *a; /* of the line */
	const struct doc *in;
	struct jsonw *out;
	struct deadline d;
	struct err err;
	struct aws_answer ans;
};

static const char *word(const struct tool *t, const char *key)
{
	struct str s = doc_str(t->in, key, (struct str){0});

	return s.p ? arena_strndup(t->a, s.p, s.n) : NULL;
}

static struct s3_place place(const struct tool *t)
{
	return (struct s3_place){word(t, "bucket"), word(t, "key"), word(t, "owner")};
}

static void write_xml(struct jsonw *w, const struct xml *x)
{
	jsonw_open(w, '{');
	jsonw_kz(w, "name", x->name);
	jsonw_kz(w, "text", x->text);
	jsonw_key(w, "children");
	jsonw_open(w, '[');
	for (const struct xml *c = x->child; c; c = c->next)
		write_xml(w, c);
	jsonw_close(w);
	jsonw_close(w);
}

/* ---- signatures ---- */

static int do_sign(struct tool *t)
{
	const struct doc *list = doc_array(t->in, "headers");
	struct sigv4_header headers[64];
	struct sigv4_keys keys = {word(t, "access_key"), word(t, "secret_key"), word(t, "token")};
	struct sigv4_scope scope = {word(t, "region"), word(t, "service"),
				    doc_int(t->in, "time_ms", 0)};
	struct sigv4_request r = {.method = word(t, "method"),
				  .path = doc_str(t->in, "path", STR("/")),
				  .query = doc_str(t->in, "query", STR("")),
				  .headers = headers,
				  .payload = word(t, "payload"),
				  .path_as_is = strcmp(scope.service, "s3") == 0};

	for (size_t i = 0; list && i < list->array.n && i < 64; i++) {
		const struct doc *pair = list->array.v[i];

		headers[r.nheaders++] =
			(struct sigv4_header){pair->array.v[0]->s.p, pair->array.v[1]->s.p};
	}
	if (doc_bool(t->in, "presign", false))
		jsonw_kz(t->out, "query",
			 sigv4_presigned_query(&keys, &scope, &r, doc_int(t->in, "expires", 60),
					       t->a));
	else
		jsonw_kz(t->out, "authorization", sigv4_authorization(&keys, &scope, &r, t->a));
	return 0;
}

/* ---- the session ---- */

static int do_open(struct tool *t)
{
	struct aws_config c = {.region = word(t, "region"),
			       .profile = word(t, "profile"),
			       .assume_role = word(t, "assume_role"),
			       .endpoint_url = word(t, "endpoint_url"),
			       .access_key = word(t, "access_key"),
			       .secret_key = word(t, "secret_key"),
			       .session_token = word(t, "session_token")};

	t->s = aws_free(t->s);
	return aws_open(&c, &t->d, &t->s, &t->err);
}

static int do_account(struct tool *t)
{
	char account[AWS_ACCOUNT];
	int rc = aws_account(t->s, &t->d, account, &t->err);

	if (rc == 0)
		jsonw_kz(t->out, "account", account);
	return rc;
}

static int do_source(struct tool *t)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 4096);
	int rc = aws_credentials_source(t->s, &t->d, &text, &t->err);

	jsonw_kstr(t->out, "source", buf_str(&text));
	return rc;
}

/* ---- calls ---- */

static void fill(struct tool *t, struct aws_request *r)
{
	const struct doc *list = doc_array(t->in, "params");

	aws_request_init(r, word(t, "service"), word(t, "action"));
	for (size_t i = 0; list && i < list->array.n; i++)
		aws_param(r, list->array.v[i]->array.v[1]->s.p, "%s",
			  list->array.v[i]->array.v[0]->s.p);
}

static int do_query(struct tool *t)
{
	struct aws_request r;

	fill(t, &r);
	int rc = aws_query(t->s, &r, &t->d, &t->ans, &t->err);

	aws_request_release(&r);
	if (rc == 0 && t->ans.root) {
		jsonw_key(t->out, "root");
		write_xml(t->out, t->ans.root);
	}
	return rc;
}

struct paging {
	struct tool *t;
	const char *item;
	int64_t pages, items;
};

static int on_page(void *ctx, const struct xml *root, struct err *err)
{
	struct paging *p = ctx;

	(void)err;
	p->pages++;
	p->items += (int64_t)xml_count(root, p->item);
	return 0;
}

static int do_pages(struct tool *t)
{
	struct paging p = {.t = t, .item = word(t, "item")};
	struct aws_request r;

	fill(t, &r);
	int rc = aws_query_pages(t->s, &r, &t->d, on_page, &p, &t->ans, &t->err);

	aws_request_release(&r);
	jsonw_kint(t->out, "pages", p.pages);
	jsonw_kint(t->out, "items", p.items);
	return rc;
}

static int do_ssm(struct tool *t)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 65536);
	int rc = aws_ssm_parameter(t->s, word(t, "name"), &t->d, &text, &t->err);

	jsonw_kstr(t->out, "value", buf_str(&text));
	return rc;
}

static int do_json(struct tool *t)
{
	int rc = aws_json(t->s, word(t, "service"), word(t, "action"),
			  doc_str(t->in, "body", STR("{}")), &t->d, &t->ans, &t->err);

	if (rc == 0) {
		jsonw_key(t->out, "doc");
		jsonw_raw(t->out, str_from(doc_json_text(t->a, t->ans.doc)));
	}
	return rc;
}

/* ---- S3 ---- */

static int do_put(struct tool *t)
{
	struct s3_place at = place(t);
	struct s3_options o = {.type = word(t, "type"),
			       .tags = word(t, "tags"),
			       .if_absent = doc_bool(t->in, "if_absent", false)};

	return s3_put_bytes(t->s, &at, doc_str(t->in, "body", STR("")), &o, &t->d, &t->err);
}

static int do_get(struct tool *t)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct s3_place at = place(t);

	buf_init(&text, (size_t)doc_int(t->in, "max", (int64_t)MAX_LINE));
	int rc = s3_get_bytes(t->s, &at, &text, &t->d, &t->err);

	jsonw_kstr(t->out, "body", buf_str(&text));
	return rc;
}

static int do_head(struct tool *t)
{
	struct s3_place at = place(t);
	struct s3_object o = {0};
	int rc = s3_head(t->s, &at, &t->d, &o, &t->err);

	jsonw_kint(t->out, "size", (int64_t)o.size);
	jsonw_kz(t->out, "etag", o.etag);
	return rc;
}

static int do_delete(struct tool *t)
{
	struct s3_place at = place(t);

	return s3_delete(t->s, &at, &t->d, &t->err);
}

static int on_object(void *ctx, const struct s3_object *o, struct err *err)
{
	struct tool *t = ctx;

	(void)err;
	jsonw_z(t->out, o->key);
	return 0;
}

static int do_list(struct tool *t)
{
	struct s3_place at = place(t);

	jsonw_key(t->out, "keys");
	jsonw_open(t->out, '[');
	int rc = s3_list(t->s, &at, &t->d, on_object, t, &t->err);

	jsonw_close(t->out);
	return rc;
}

static int do_presign(struct tool *t)
{
	CLEANUP(buf_release) struct buf url = {0};
	struct s3_place at = place(t);

	buf_init(&url, 65536);
	int rc = s3_presign(t->s, &at, word(t, "method"), doc_int(t->in, "seconds", 60), &t->d,
			    &url, &t->err);

	jsonw_kstr(t->out, "url", buf_str(&url));
	return rc;
}

static int do_upload(struct tool *t)
{
	CLEANUP(close_fdp) int fd = open(word(t, "file"), O_RDONLY | O_CLOEXEC);
	struct s3_place at = place(t);
	struct s3_options o = {.tags = word(t, "tags")};

	return s3_upload(t->s, &at, fd, (uint64_t)lseek(fd, 0, SEEK_END), &o, &t->d, &t->err);
}

static int do_download(struct tool *t)
{
	CLEANUP(close_fdp) int fd = open(word(t, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct s3_place at = place(t);
	uint64_t offset = (uint64_t)lseek(fd, 0, SEEK_END);
	int rc = s3_download(t->s, &at, fd, &offset, UINT64_C(1) << 40, &t->d, &t->err);

	jsonw_kint(t->out, "offset", (int64_t)offset);
	return rc;
}

/* Everything that is done to a new bucket of ours. */
static int do_make_bucket(struct tool *t)
{
	struct s3_place at = place(t);
	struct s3_tag tags[] = {{"regatta:install", "i<1>&"}, {"b", "c"}};
	struct s3_expiry rules[] = {{{"regatta:retention", "30d"}, 30},
				    {{"regatta:retention", "7d"}, 7}};

	if (s3_bucket_create(t->s, &at, &t->d, &t->err) < 0 ||
	    s3_bucket_block_public(t->s, &at, &t->d, &t->err) < 0 ||
	    s3_bucket_encrypt(t->s, &at, &t->d, &t->err) < 0 ||
	    s3_bucket_tag(t->s, &at, tags, 2, &t->d, &t->err) < 0 ||
	    s3_bucket_lifecycle(t->s, &at, rules, 2, &t->d, &t->err) < 0)
		return -1;
	return 0;
}

static int do_check_bucket(struct tool *t)
{
	CLEANUP(buf_release) struct buf tags = {0};
	struct s3_place at = place(t);

	buf_init(&tags, 65536);
	if (s3_bucket_check(t->s, &at, &t->d, &t->err) < 0 ||
	    s3_bucket_tags(t->s, &at, &t->d, &tags, &t->err) < 0)
		return -1;
	jsonw_kstr(t->out, "tags", buf_str(&tags));
	return 0;
}

static int do_delete_bucket(struct tool *t)
{
	struct s3_place at = place(t);

	return s3_bucket_delete(t->s, &at, &t->d, &t->err);
}

static const struct {
	const char *name;
	int (*fn)(struct tool *t);
} commands[] = {
	{"sign", do_sign},
	{"open", do_open},
	{"account", do_account},
	{"source", do_source},
	{"query", do_query},
	{"pages", do_pages},
	{"ssm", do_ssm},
	{"json", do_json},
	{"put", do_put},
	{"get", do_get},
	{"head", do_head},
	{"delete", do_delete},
	{"list", do_list},
	{"presign", do_presign},
	{"upload", do_upload},
	{"download", do_download},
	{"make_bucket", do_make_bucket},
	{"check_bucket", do_check_bucket},
	{"delete_bucket", do_delete_bucket},
};

static int run(struct tool *t)
{
	struct str name = doc_str(t->in, "do", STR(""));

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (str_is(name, commands[i].name))
			return commands[i].fn(t);
	return err_set(&t->err, ERR_INVALID, "no command '%.40s'", name.p);
}

static void answer(struct tool *t, struct str line, struct buf *out)
{
	struct jsonw w;
	struct doc *in;
	int rc = -1;

	t->err = (struct err){0};
	t->d = deadline_in(60000, NULL);
	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	t->out = &w;
	if (json_parse_limited(line, MAX_LINE, 100000, t->a, &in, &t->err) == 0) {
		t->in = in;
		t->d = deadline_in((int)doc_int(in, "timeout_ms", 60000), NULL);
		rc = run(t);
	}
	jsonw_kbool(&w, "ok", rc == 0);
	if (rc < 0) {
		jsonw_kz(&w, "kind", err_kind_name(t->err.kind));
		jsonw_kz(&w, "error", t->err.msg);
	}
	jsonw_kz(&w, "code", t->ans.code);
	jsonw_kz(&w, "request_id", t->ans.request_id);
	jsonw_kbool(&w, "refused", t->ans.refused);
	jsonw_close(&w);
	buf_addc(out, '\n');
	aws_answer_release(&t->ans);
}

int main(void)
{
	struct tool t = {0};
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct buf out;

		buf_init(&out, 4 * MAX_LINE);
		t.a = arena_new();
		answer(&t, str_trim((struct str){line, (size_t)n}), &out);
		fwrite(out.p, 1, out.n, stdout);
		fflush(stdout);
		t.a = arena_free(t.a);
		buf_release(&out);
	}
	free(line);
	aws_free(t.s);
	return 0;
}
