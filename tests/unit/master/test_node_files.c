/* Files between a node of another machine and the master: the agent's own code, in a process of its own, and hostile calls. */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "agent/previous.h"
#include "agent/collect.h"
#include "agent/config.h"
#include "agent/fetch.h"
#include "agent/upload.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "base/arena.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/api/outputs.h"
#include "master/data_blobs.h"
#include "master/messages.h"
#include "master/runs.h"
#include "net/digest.h"
#include "net/http_client.h"
#include "master/api/previous.h"
#include "net/http_server.h"
#include "sys/child.h"

#define CALL_MS 20000

static bool far; /* the nodes are other machines */

bool __wrap_plan_shares_files(const struct job *job);
bool __wrap_plan_shares_files(const struct job *job)
{
	(void)job;
	return !far;
}
#define BIG (24u << 20)

static char *in_home(struct rig *r, const char *name)
{
	static char ring[16][700];
	static unsigned next;
	char *out = ring[next++ % COUNT(ring)];

	snprintf(out, sizeof(ring[0]), "%s/%s", r->home, name);
	return out;
}

static void digest_of(struct str bytes, char hex[static 65])
{
	uint8_t digest[SHA256_BYTES];

	sha256_of(bytes.p, bytes.n, digest);
	hex_encode(digest, sizeof(digest), hex);
}

static char *random_bytes(size_t n)
{
	char *p = xmalloc(n);

	rand_bytes(p, n);
	return p;
}

/* In the master's store. */
static void put_blob(struct rig *r, struct str bytes, char hex[static 65])
{
	digest_of(bytes, hex);
	assert_int_equal(file_mkdir_p(in_home(r, LAYOUT_BLOBS), 0700, NULL), 0);
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", r->home, hex);

	assert_int_equal(file_write(path, bytes, 0600, NULL), 0);
}

static struct live_run *submit(struct rig *r, const char *request, const char *sha256)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep)
	char *json = xasprintf(
		"{\"request_id\":\"%s\",\"job\":{\"name\":\"t\",\"command\":[\"true\"],\"source\":\".\",\"count\":2},"
		"\"client_env\":{},\"base_dir\":\"/\",\"source_sha256\":\"%s\"}",
		request, sha256);
	const char *details = NULL;
	struct live_run *lr = NULL;
	struct err err = {0};
	struct doc *body;
	bool fresh;

	assert_int_equal(json_parse(str_from(json), a, &body, &err), 0);
	if (runs_submit(&r->m, body, a, &lr, &fresh, &details, &err) < 0)
		fail_msg("%s %s", err.msg, details ? details : "");
	return lr;
}

/* A run whose source is these bytes and whose first node runs, and that node as another machine would have it. */
struct node {
	struct rig *r;
	char sha256[65], token[65], run[80], name[80], cache[700], dir[700];
	struct agent_config cfg;
};

static void node_of(struct rig *r, struct live_run *lr, int rank, struct node *n)
{
	snprintf(n->run, sizeof(n->run), "%s", lr->row.id);
	snprintf(n->name, sizeof(n->name), "%s", lr->plan.crew.members[rank].name);
	node_token(lr, n->name, lr->core->nodes[rank].incarnation, n->token);
	snprintf(n->cache, sizeof(n->cache), "%s/cache", r->home);
	snprintf(n->dir, sizeof(n->dir), "%s/there", r->home);
	mkdir(n->dir, 0700);
	n->r = r;
	n->cfg = (struct agent_config){.run = n->run,
				       .node = n->name,
				       .token = n->token,
				       .link_dir = r->home,
				       .link_name = LAYOUT_LINK_SOCKET,
				       .cache = n->cache,
				       .cache_bytes = 1u << 30};
}

static struct live_run *begin(struct rig *r, struct str source, struct node *n)
{
	put_blob(r, source, n->sha256);
	struct live_run *lr = submit(r, "request-0123456789", n->sha256);

	struct rig_agent *agents[] = {rig_agent(r, 0), rig_agent(r, 1)};

	for (int i = 0; i < 2; i++) {
		rig_until(r, lr->core->resources[i].state == RES_LIVE);
		agent_hello(agents[i], NULL);
		agent_wait(agents[i], FRAME_INPUTS);
		agent_say(agents[i], FRAME_READY, "{\"ok\":true}");
	}
	for (int i = 0; i < 2; i++)
		agent_wait(agents[i], FRAME_START);
	node_of(r, lr, 0, n);
	return lr;
}

/* ---- a child does what an agent's forked task does ---- */

typedef int (*child_fn)(void *arg); /* 0 to 255 */

/* Where its result will come from. */
static int child_begin(child_fn fn, void *arg)
{
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		dup2(p[1], 3);
		child_close_from(4); /* the master's lock above all */
		uint8_t result = (uint8_t)fn(arg);

		_exit(write(3, &result, 1) != 1);
	}
	close(p[1]);
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	return p[0];
}

static int child_end(struct rig *r, int fd)
{
	int64_t until = clock_boot_ms() + 60000;
	uint8_t result = 0;
	ssize_t n;

	while ((n = read(fd, &result, 1)) < 0 && errno == EAGAIN) {
		rig_turn(r);
		if (clock_boot_ms() > until)
			fail_msg("the child does not end");
	}
	close(fd);
	if (n != 1)
		fail_msg("the child died");
	return result;
}

static int in_child(struct rig *r, child_fn fn, void *arg)
{
	return child_end(r, child_begin(fn, arg));
}

/* ---- raw calls ---- */

struct call {
	const struct node *n;
	const char *method, *path; /* the path below the node's own, or the whole one */
	struct str body;
	const char *range, *token;
	/* out, through shared memory of a file */
	char *out;
};

static int do_call(void *arg)
{
	const struct call *c = arg;
	struct http_target t = {.unix_dir = c->n->r->home,
				.unix_name = LAYOUT_API_SOCKET,
				.token = c->token ? c->token : c->n->token};
	struct http_field field = {"Range", c->range};
	CLEANUP(freep)
	char *path = c->path[0] == '/' ? xstrdup(c->path)
				       : xasprintf("/api/v1/runs/%s/nodes/%s/%s", c->n->run,
						   c->n->name, c->path);
	struct http_outgoing o = {.method = c->method,
				  .path = path,
				  .timeout_ms = CALL_MS,
				  .body = c->body,
				  .fields = &field,
				  .nfields = c->range ? 1 : 0};
	struct http_client *client;
	struct http_answer a;
	struct err err = {0};

	http_answer_init(&a, 1 << 20);
	if (http_client_open(&t, CALL_MS, &client, &err) < 0 || http_send(client, &o, &a, &err) < 0)
		return 99;
	struct str range = http_client_header(client, "Content-Range");
	CLEANUP(freep)
	char *text = xasprintf("%.*s|%.*s", range.p ? (int)range.n : 0, range.p ? range.p : "",
			       (int)a.body.n, a.body.n ? a.body.p : "");

	file_write(c->out, str_from(text), 0600, NULL);
	return a.status / 100 * 20 + a.status % 20; /* 200 is 40, 206 is 46, 416 is 96 */
}

#define STATUS(s) ((s) / 100 * 20 + (s) % 20)

static int call(const struct node *n, const char *method, const char *path, struct str body,
		const char *range, const char *token, char *ret_text, size_t size)
{
	struct call c = {n, method, path, body, range, token, in_home(n->r, "answer")};
	struct buf text;

	unlink(c.out);
	int rc = in_child(n->r, do_call, &c);

	buf_init(&text, 1 << 20);
	file_read(c.out, &text, NULL);
	if (ret_text)
		snprintf(ret_text, size, "%s", text.n ? text.p : "");
	buf_release(&text);
	return rc;
}

static int get(const struct node *n, const char *path)
{
	return call(n, "GET", path, STR(""), NULL, NULL, NULL, 0);
}

static int put(const struct node *n, const char *query, struct str body)
{
	CLEANUP(freep) char *path = xasprintf("outputs?%s", query);

	return call(n, "PUT", path, body, NULL, NULL, NULL, 0);
}

/* ---- blobs ---- */

static void only_blobs_of_its_own_run_are_served(void **state)
{
	struct rig *r = *state;
	char other[65], path[128], text[200];
	struct node n;

	begin(r, STR("source bytes"), &n);
	put_blob(r, STR("somebody else's"), other);
	snprintf(path, sizeof(path), "blobs/%s", n.sha256);
	assert_int_equal(call(&n, "GET", path, STR(""), NULL, NULL, text, sizeof(text)),
			 STATUS(200));
	assert_string_equal(text, "|source bytes");
	snprintf(path, sizeof(path), "blobs/%s", other);
	assert_int_equal(get(&n, path), STATUS(404));
	assert_int_equal(get(&n, "blobs/..%2f..%2ftoken"), STATUS(404));
	assert_int_equal(get(&n, "blobs/x"), STATUS(404));
}

static int urls(const struct node *n, const char *body, char *text, size_t size)
{
	return call(n, "POST", "urls", str_from(body), NULL, NULL, text, size);
}

static void a_node_is_told_where_its_inputs_are(void **state)
{
	struct rig *r = *state;
	char text[400];
	struct node n;
	struct live_run *lr = begin(r, STR("source bytes"), &n);

	lr->row.data =
		"[null,{\"list\":\"0\",\"from\":\"https://h/x\"},{\"list\":\"0\",\"from\":\"s3://b-1/d/\"}]";
	assert_int_equal(urls(&n, "{\"input\":1,\"names\":[\"\"]}", text, sizeof(text)),
			 STATUS(200));
	assert_string_equal(text, "|{\"urls\":[\"https://h/x\"]}\n");
	/* Signed with the credentials of the run. */
	lr->credentials = "{\"access_key\":\"AK\",\"secret_key\":\"s\",\"region\":\"eu-west-1\"}";
	assert_int_equal(urls(&n, "{\"input\":2,\"names\":[\"a b\"]}", text, sizeof(text)),
			 STATUS(200));
	assert_non_null(strstr(text, "/d/a%20b?"));
	assert_non_null(strstr(text, "X-Amz-Signature="));
	assert_null(strstr(text, "versionId"));
	assert_int_equal(urls(&n, "{\"input\":2,\"names\":[\"b\"],\"versions\":[\"v/1\"]}", text,
			      sizeof(text)),
			 STATUS(200));
	assert_non_null(strstr(text, "versionId=v%2F1"));
	assert_int_equal(
		urls(&n, "{\"input\":2,\"names\":[\"b\"],\"versions\":[\"\",\"\"]}", NULL, 0),
		STATUS(400));
	/* Nothing else is signed. */
	assert_int_equal(urls(&n, "{\"input\":0,\"names\":[\"\"]}", NULL, 0), STATUS(404));
	assert_int_equal(urls(&n, "{\"input\":3,\"names\":[\"\"]}", NULL, 0), STATUS(404));
	assert_int_equal(urls(&n, "{\"names\":[\"\"]}", NULL, 0), STATUS(404));
	assert_int_equal(urls(&n, "{\"input\":1,\"names\":[]}", NULL, 0), STATUS(400));
	assert_int_equal(urls(&n, "{\"input\":1,\"names\":[7]}", NULL, 0), STATUS(400));
	assert_int_equal(urls(&n, "[", NULL, 0), STATUS(400));
	lr->credentials = "[";
	assert_int_equal(urls(&n, "{\"input\":2,\"names\":[\"x\"]}", NULL, 0), STATUS(400));
	lr->row.data = NULL;
}

static void a_node_is_given_the_login_of_its_image_only(void **state)
{
	struct rig *r = *state;
	char text[400];
	struct node n;
	struct live_run *lr = begin(r, STR("source bytes"), &n);
	const struct job *before = lr->job;
	struct job job = *before;

	assert_int_equal(call(&n, "POST", "registry", STR("{}"), NULL, NULL, NULL, 0), STATUS(404));
	lr->job = &job;
	job.registry.login = "ecr";
	assert_int_equal(call(&n, "POST", "registry", STR("{}"), NULL, NULL, NULL, 0), STATUS(404));
	job.image = "elsewhere.example/x";
	assert_int_equal(call(&n, "POST", "registry", STR("{}"), NULL, NULL, text, sizeof(text)),
			 STATUS(400));
	assert_non_null(strstr(text, "is not of a registry of ECR"));
	job.registry.login = "other";
	assert_int_equal(call(&n, "POST", "registry", STR("{}"), NULL, NULL, NULL, 0), STATUS(400));
	lr->job = before;
}

static void a_part_is_served_from_an_offset(void **state)
{
	static const struct {
		const char *range;
		int status;
		const char *text;
	} all[] = {
		{"bytes=7-", 206, "bytes 7-11/12|bytes"},
		{"bytes=0-", 206, "bytes 0-11/12|source bytes"},
		{"bytes=12-", 416, "bytes */12|"},
		{"bytes=99999999999999999999-", 200, "|source bytes"},
		{"bytes=1-2", 200, "|source bytes"}, /* a server may ignore what it does not know */
		{"lines=1-", 200, "|source bytes"},
	};
	struct rig *r = *state;
	char path[128], text[200];
	struct node n;

	begin(r, STR("source bytes"), &n);
	snprintf(path, sizeof(path), "blobs/%s", n.sha256);
	for (size_t i = 0; i < COUNT(all); i++) {
		assert_int_equal(
			call(&n, "GET", path, STR(""), all[i].range, NULL, text, sizeof(text)),
			STATUS(all[i].status));
		if (strncmp(text, all[i].text, strlen(all[i].text)) != 0)
			fail_msg("%s gave '%s'", all[i].range, text);
	}
}

static void a_token_is_for_its_own_node_alone(void **state)
{
	struct rig *r = *state;
	struct node n, other;
	char path[256];
	struct live_run *lr = begin(r, STR("source bytes"), &n);

	node_of(r, lr, 1, &other);
	snprintf(path, sizeof(path), "/api/v1/runs/%s/nodes/%s/blobs/%s", n.run, other.name,
		 n.sha256);
	assert_int_equal(get(&n, path), STATUS(401)); /* another node of the run */
	assert_int_equal(get(&other, path), STATUS(200));
	snprintf(path, sizeof(path), "/api/v1/runs/%.3s/nodes/%s/blobs/%s", n.run, n.name,
		 n.sha256);
	assert_int_equal(get(&n, path), STATUS(401)); /* a prefix of its run */
	/* Over the socket, where everybody else is the owner: the node's token is asked for all the same. */
	snprintf(path, sizeof(path), "blobs/%s", n.sha256);
	assert_int_equal(call(&n, "GET", path, STR(""), NULL, "wrong", NULL, 0), STATUS(401));
	struct live_run *second = submit(r, "request-abcdefghij", n.sha256);

	node_of(r, second, 0, &other);
	snprintf(path, sizeof(path), "/api/v1/runs/%s/nodes/%s/blobs/%s", other.run, other.name,
		 n.sha256);
	assert_int_equal(get(&n, path), STATUS(401)); /* another run */
}

/* ---- data ---- */

static struct live_run *submit_data(struct rig *r, const char *request, const char *data,
				    struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep)
	char *json = xasprintf(
		"{\"request_id\":\"%s\",\"job\":{\"name\":\"t\",\"roles\":{"
		"\"w\":{\"count\":2,\"command\":[\"true\"]},\"ps\":{\"command\":[\"true\"],\"service\":true}},"
		"\"data\":[{\"src\":\"parts\",\"shard\":true},{\"src\":\"one.csv\"}]},"
		"\"client_env\":{},\"base_dir\":\"/\",\"data\":%s}",
		request, data);
	const char *details = NULL;
	struct live_run *lr = NULL;
	struct doc *body;
	bool fresh;

	assert_int_equal(json_parse(str_from(json), a, &body, err), 0);
	return runs_submit(&r->m, body, a, &lr, &fresh, &details, err) < 0 ? NULL : lr;
}

static void inputs_of(struct live_run *lr, int rank, struct arena *a, struct message_inputs *ret)
{
	struct err err = {0};
	struct buf text;

	buf_init(&text, 1 << 20);
	node_inputs_put(lr, rank, &text);
	if (message_inputs_get(buf_str(&text), a, ret, &err) < 0)
		fail_msg("%s", err.msg);
	buf_release(&text);
}

static void each_node_is_told_of_its_own_shard(void **state)
{
	struct rig *r = *state;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	char one[65], two[65], file[65];
	struct message_inputs in;
	struct err err = {0};

	far = true;
	put_blob(r, STR("first"), one);
	put_blob(r, STR("second"), two);
	put_blob(r, STR("file"), file);
	CLEANUP(freep)
	char *good = xasprintf(
		"[{\"tar\":true,\"sha256\":[\"%s\",\"%s\"]},{\"tar\":false,\"sha256\":[\"%s\"]}]",
		one, two, file);
	struct live_run *lr = submit_data(r, "request-0123456789", good, &err);

	assert_non_null(lr);
	for (int rank = 0; rank < 2; rank++) {
		inputs_of(lr, rank, a, &in);
		assert_null(in.data[0].src);
		assert_int_equal(in.data[0].nblobs, 1);
		assert_true(in.data[0].tar);
		assert_string_equal(in.data[0].blobs[0].sha256, rank ? two : one);
		assert_int_equal(in.data[1].nblobs, 1);
		assert_false(in.data[1].tar);
		assert_string_equal(in.data[1].blobs[0].sha256, file);
	}
	inputs_of(lr, 2, a, &in); /* a service has everything */
	assert_int_equal(in.data[0].nblobs, 2);
	assert_true(run_has_blob(lr, str_from(two)));
	/* Shards follow the ranks that the job sees. */
	lr->core->nodes[0].job_rank = 1;
	lr->core->nodes[1].job_rank = 0;
	inputs_of(lr, 0, a, &in);
	assert_string_equal(in.data[0].blobs[0].sha256, two);
	lr->core->nodes[0].job_rank = lr->core->nodes[1].job_rank = -1;
	/* What was cut for a node that is asleep goes to those that are not. */
	lr->core->nodes[1].asleep = true;
	lr->core->counted = 1;
	inputs_of(lr, 0, a, &in);
	assert_int_equal(in.data[0].nblobs, 2);
	lr->core->nodes[1].asleep = false;
	lr->core->counted = 2;
	far = false;
}

static void data_that_was_not_sent_along_is_refused(void **state)
{
	struct rig *r = *state;
	char one[65], none[65];

	far = true;
	put_blob(r, STR("first"), one);
	digest_of(STR("nobody has this"), none);
	CLEANUP(freep)
	char *few =
		xasprintf("[{\"tar\":true,\"sha256\":[\"%s\"]},{\"sha256\":[\"%s\"]}]", one, one);
	CLEANUP(freep)
	char *gone = xasprintf("[{\"tar\":true,\"sha256\":[\"%s\",\"%s\"]},{\"sha256\":[\"%s\"]}]",
			       one, none, one);
	const struct {
		const char *data;
		enum err_kind kind;
	} bad[] = {
		{"null", ERR_INVALID},
		{"[]", ERR_INVALID},
		{few, ERR_INVALID},
		{gone, ERR_NOT_FOUND},
		{"[{\"sha256\":[\"../x\",\"../y\"]},{}]", ERR_INVALID},
		{"[{\"sha256\":[1,2]},{}]", ERR_INVALID},
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = {0};

		assert_null(submit_data(r, "request-0123456789", bad[i].data, &err));
		assert_int_equal(err.kind, bad[i].kind);
	}
	far = false;
}

/* ---- the agent's own fetch ---- */

struct fetching {
	struct node *n;
	const char *to;
};

/* 0, or the kind of the error. */
static int do_fetch(void *arg)
{
	const struct fetching *f = arg;
	struct message_blob b = {.sha256 = f->n->sha256};
	struct err err = {0};
	int fd = fetch_open(&f->n->cfg, f->n->dir, &b, &err);

	if (fd < 0) {
		fprintf(stderr, "# %s\n", err.msg);
		return (int)err.kind;
	}
	int to = open(f->to, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	return file_copy_content(fd, to, NULL) < 0 ? 98 : 0;
}

static void file_has_digest(const char *path, const char *sha256)
{
	uint8_t digest[SHA256_BYTES];
	char hex[65];
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(sha256_fd(fd, digest, NULL, NULL), 0);
	close(fd);
	hex_encode(digest, sizeof(digest), hex);
	assert_string_equal(hex, sha256);
}

static void a_blob_is_fetched_once_and_found_in_the_cache(void **state)
{
	struct rig *r = *state;
	struct node n;

	begin(r, STR("source bytes"), &n);
	struct fetching f = {&n, in_home(r, "copy")};
	uint64_t before = http_server_answers(r->m.http, 2);

	for (int i = 0; i < 3; i++)
		assert_int_equal(in_child(r, do_fetch, &f), 0);
	file_has_digest(f.to, n.sha256);
	assert_int_equal(http_server_answers(r->m.http, 2) - before, 1);
}

static void nodes_of_a_host_share_one_download(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *bytes = random_bytes(BIG);
	struct node n;

	begin(r, (struct str){bytes, BIG}, &n);
	struct fetching f[3] = {
		{&n, in_home(r, "copy1")}, {&n, in_home(r, "copy2")}, {&n, in_home(r, "copy3")}};
	uint64_t before = http_server_answers(r->m.http, 2);
	int child[3];

	for (int i = 0; i < 3; i++)
		child[i] = child_begin(do_fetch, &f[i]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(child_end(r, child[i]), 0);
	for (int i = 0; i < 3; i++)
		file_has_digest(f[i].to, n.sha256);
	assert_int_equal(http_server_answers(r->m.http, 2) - before, 1);
}

static void a_damaged_file_in_the_cache_is_fetched_again(void **state)
{
	struct rig *r = *state;
	struct node n;

	begin(r, STR("source bytes"), &n);
	struct fetching f = {&n, in_home(r, "copy")};
	char path[800];

	assert_int_equal(in_child(r, do_fetch, &f), 0);
	snprintf(path, sizeof(path), "%s/%s", n.cache, n.sha256);
	assert_int_equal(file_write(path, STR("source bytez"), 0600, NULL), 0);
	assert_int_equal(in_child(r, do_fetch, &f), 0);
	file_has_digest(f.to, n.sha256);
	file_has_digest(path, n.sha256);
}

static void a_part_of_before_is_gone_on_with(void **state)
{
	struct rig *r = *state;
	char path[800];
	struct node n;

	begin(r, STR("source bytes"), &n);
	struct fetching f = {&n, in_home(r, "copy")};

	snprintf(path, sizeof(path), "%s/%s.part", n.cache, n.sha256);
	assert_int_equal(file_mkdir_p(n.cache, 0700, NULL), 0);
	assert_int_equal(file_write(path, STR("source"), 0600, NULL), 0);
	uint64_t before = http_server_answers(r->m.http, 2);

	assert_int_equal(in_child(r, do_fetch, &f), 0);
	file_has_digest(f.to, n.sha256);
	assert_int_equal(http_server_answers(r->m.http, 2) - before, 1);
	/* One that is none of it: noticed at the end, and all of it is fetched. */
	snprintf(path, sizeof(path), "%s/%s", n.cache, n.sha256);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/%s.part", n.cache, n.sha256);
	assert_int_equal(file_write(path, STR("sauce!"), 0600, NULL), 0);
	assert_int_equal(in_child(r, do_fetch, &f), 0);
	file_has_digest(f.to, n.sha256);
}

static void a_master_that_has_other_bytes_is_not_believed(void **state)
{
	struct rig *r = *state;
	char path[800];
	struct node n;

	begin(r, STR("source bytes"), &n);
	struct fetching f = {&n, in_home(r, "copy")};

	snprintf(path, sizeof(path), "%s/" LAYOUT_BLOBS "/%s", r->home, n.sha256);
	assert_int_equal(file_write(path, STR("other bytes!"), 0600, NULL), 0);
	assert_int_equal(in_child(r, do_fetch, &f), ERR_INVALID);
	snprintf(path, sizeof(path), "%s/%s", n.cache, n.sha256);
	assert_false(file_exists(path));
	assert_false(file_exists(f.to));
}

static void a_download_survives_the_master(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *bytes = random_bytes(BIG);
	char path[800];
	struct stat st = {0};
	struct node n;

	begin(r, (struct str){bytes, BIG}, &n);
	struct fetching f = {&n, in_home(r, "copy")};

	snprintf(path, sizeof(path), "%s/%s.part", n.cache, n.sha256);
	int child = child_begin(do_fetch, &f);

	rig_until(r, stat(path, &st) == 0 && st.st_size > 0);
	assert_true(st.st_size < BIG);
	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(child_end(r, child), 0);
	file_has_digest(f.to, n.sha256);
}

static void what_was_not_used_for_longest_makes_room(void **state)
{
	struct rig *r = *state;
	struct node n;
	char old[800], young[800], own[800];

	begin(r, STR("source bytes"), &n);
	struct fetching f = {&n, in_home(r, "copy")};
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	snprintf(old, sizeof(old), "%s/old", n.cache);
	snprintf(young, sizeof(young), "%s/young", n.cache);
	snprintf(own, sizeof(own), "%s/%s", n.cache, n.sha256);
	assert_int_equal(file_mkdir_p(n.cache, 0700, NULL), 0);
	assert_int_equal(file_write(old, STR("0123456789"), 0600, NULL), 0);
	assert_int_equal(file_write(young, STR("0123456789"), 0600, NULL), 0);
	assert_int_equal(utimensat(AT_FDCWD, old, times, 0), 0);
	n.cfg.cache_bytes = 25;
	assert_int_equal(in_child(r, do_fetch, &f), 0);
	assert_false(file_exists(old));
	assert_true(file_exists(young));
	assert_true(file_exists(own));
	/* One that is larger than all the room stays until another comes. */
	n.cfg.cache_bytes = 1;
	assert_int_equal(unlink(own), 0);
	assert_int_equal(in_child(r, do_fetch, &f), 0);
	assert_false(file_exists(young));
	assert_true(file_exists(own));
}

/* ---- outputs ---- */

static const char *output(const struct node *n, const char *name)
{
	static char ring[8][1000];
	static unsigned next;
	char *out = ring[next++ % COUNT(ring)];

	snprintf(out, sizeof(ring[0]), "%s/" LAYOUT_RUNS "/%s/" LAYOUT_OUTPUTS "/%s/%s", n->r->home,
		 n->run, n->name, name);
	return out;
}

static char *query_of(const char *path, struct str all, uint64_t offset)
{
	char hex[65];

	digest_of(all, hex);
	return xasprintf("path=%s&size=%zu&sha256=%s&offset=%llu", path, all.n, hex,
			 (unsigned long long)offset);
}

static int put_whole(const struct node *n, const char *path, struct str all)
{
	CLEANUP(freep) char *q = query_of(path, all, 0);

	return put(n, q, all);
}

static void a_file_that_comes_twice_is_stored_once(void **state)
{
	struct rig *r = *state;
	struct stat a, b;
	struct node n;

	begin(r, STR("x"), &n);
	assert_int_equal(put_whole(&n, "model/weights", STR("12345")), STATUS(200));
	assert_int_equal(stat(output(&n, "model/weights"), &a), 0);
	assert_int_equal(a.st_size, 5);
	assert_int_equal(put_whole(&n, "model/weights", STR("12345")), STATUS(200));
	assert_int_equal(stat(output(&n, "model/weights"), &b), 0);
	assert_true(a.st_ino == b.st_ino);
	assert_int_equal(rig_run(r)->uploads.files, 1);
	assert_int_equal(rig_run(r)->uploads.bytes, 5);
	/* Other bytes of the same name are another file. */
	assert_int_equal(put_whole(&n, "model/weights", STR("54321")), STATUS(200));
	CLEANUP(freep) char *empty = query_of("empty", STR(""), 0);

	assert_int_equal(put(&n, empty, STR("")), STATUS(200));
	assert_true(file_exists(output(&n, "empty")));
}

static void pieces_are_put_together_in_order(void **state)
{
	struct rig *r = *state;
	struct str all = STR("0123456789");
	struct node n;
	char text[200];

	begin(r, STR("x"), &n);
	CLEANUP(freep) char *first = query_of("f", all, 0);
	CLEANUP(freep) char *second = query_of("f", all, 4);
	CLEANUP(freep) char *state_of = xasprintf("outputs?%s", first);

	assert_int_equal(put(&n, second, STR("456789")), STATUS(409)); /* nothing is here yet */
	assert_int_equal(put(&n, first, STR("0123")), STATUS(200));
	assert_int_equal(put(&n, first, STR("0123")), STATUS(409));
	assert_false(file_exists(output(&n, "f")));
	assert_int_equal(call(&n, "GET", state_of, STR(""), NULL, NULL, text, sizeof(text)),
			 STATUS(200));
	assert_string_equal(text, "|{\"done\":false,\"have\":4}\n");
	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(put(&n, second, STR("456789")), STATUS(200));
	assert_int_equal(call(&n, "GET", state_of, STR(""), NULL, NULL, text, sizeof(text)),
			 STATUS(200));
	assert_string_equal(text, "|{\"done\":true,\"have\":10}\n");
	assert_int_equal(rig_run(r)->uploads.files, 1); /* also counted over the restart */
}

static void a_node_cannot_reach_out_of_its_outputs(void **state)
{
	static const char *const bad[] = {"..%2fother%2fx", "%2fetc%2fx", "a%2f..%2f..%2fx",
					  "a%2f%2fb",	    "",		  "a%0ab",
					  "a%2f."};
	struct rig *r = *state;
	struct node n, other;
	struct live_run *lr = begin(r, STR("x"), &n);

	for (size_t i = 0; i < COUNT(bad); i++)
		if (put_whole(&n, bad[i], STR("1")) != STATUS(400))
			fail_msg("'%s' is taken", bad[i]);
	/* A link that somebody put there is replaced, not followed. */
	assert_int_equal(file_mkdir_p(output(&n, ""), 0700, NULL), 0);
	assert_int_equal(symlink(in_home(r, "there"), output(&n, "link")), 0);
	assert_int_equal(put_whole(&n, "link%2fx", STR("1")), STATUS(200));
	assert_false(file_exists(in_home(r, "there/x")));
	assert_true(file_exists(output(&n, "link/x")));
	/* Another node's outputs. */
	node_of(r, lr, 1, &other);
	CLEANUP(freep) char *q = query_of("x", STR("1"), 0);
	CLEANUP(freep)
	char *path = xasprintf("/api/v1/runs/%s/nodes/%s/outputs?%s", n.run, other.name, q);

	assert_int_equal(call(&n, "PUT", path, STR("1"), NULL, NULL, NULL, 0), STATUS(401));
	assert_false(file_exists(output(&other, "x")));
}

static void what_was_not_promised_is_not_kept(void **state)
{
	struct rig *r = *state;
	struct node n;

	begin(r, STR("x"), &n);
	CLEANUP(freep) char *q = query_of("f", STR("12345"), 0);

	assert_int_equal(put(&n, q, STR("123456")), STATUS(400)); /* longer */
	assert_int_equal(put(&n, q, STR("54321")), STATUS(400));  /* others */
	assert_false(file_exists(output(&n, "f")));
	assert_int_equal(rig_run(r)->uploads.files, 0);
	assert_int_equal(put(&n, q, STR("12345")), STATUS(200)); /* and nothing is in its way */
	assert_int_equal(put(&n, "path=f&size=1&sha256=ab", STR("1")), STATUS(400));
	assert_int_equal(put(&n, "path=f&size=-1", STR("1")), STATUS(400));
	CLEANUP(freep)
	char *later = xasprintf("%s&attempt=2", q), *none = xasprintf("%s&attempt=0", q);

	assert_int_equal(put(&n, later, STR("12345")), STATUS(400)); /* never started */
	assert_int_equal(put(&n, none, STR("12345")), STATUS(400));
}

static void a_run_may_keep_so_much(void **state)
{
	struct rig *r = *state;
	struct node n;
	struct live_run *lr = begin(r, STR("x"), &n);

	assert_int_equal(put_whole(&n, "a", STR("12345")), STATUS(200));
	lr->uploads.files = OUTPUT_MAX_FILES;
	assert_int_equal(put_whole(&n, "b", STR("123456")), STATUS(507));
	lr->uploads.files = 1;
	lr->uploads.bytes = OUTPUT_MAX_BYTES - 5;
	assert_int_equal(put_whole(&n, "b", STR("123456")), STATUS(507));
	lr->uploads.bytes = 5;
	assert_int_equal(put_whole(&n, "b", STR("123456")), STATUS(200));
}

static void a_full_disk_says_so_and_takes_it_later(void **state)
{
	struct rig *r = *state;
	struct node n;
	struct live_run *lr = begin(r, STR("x"), &n);

	r->disk_full = true;
	assert_int_equal(put_whole(&n, "a", STR("12345")), STATUS(507));
	assert_true(lr->core->nodes[0].no_room);
	assert_false(file_exists(output(&n, "a")));
	r->disk_full = false;
	assert_int_equal(put_whole(&n, "a", STR("12345")), STATUS(200));
	assert_false(lr->core->nodes[0].no_room);
}

/* ---- the agent's own upload ---- */

static int do_upload(void *arg)
{
	const struct node *n = arg;
	CLEANUP(freep) char *dir = path_join(n->dir, "output");
	struct collected done = {0};
	struct err err = {0};

	if (upload_files(&n->cfg, dir, 1, &done, &err) < 0) {
		fprintf(stderr, "# %s\n", err.msg);
		return 90;
	}
	if (strcmp(done.note, "not kept: out") != 0)
		return 91;
	return (int)done.files;
}

static void all_that_a_job_left_is_brought_over_the_end_of_a_master(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *bytes = random_bytes(BIG);
	struct str big = {bytes, BIG};
	char sha[65], part[1000];
	struct stat a, b;
	struct node n;

	begin(r, STR("x"), &n);
	digest_of(big, sha);
	assert_int_equal(file_mkdir_p(in_home(r, "there/output/deep/er"), 0755, NULL), 0);
	assert_int_equal(
		file_write(in_home(r, "there/output/deep/er/small"), STR("small"), 0755, NULL), 0);
	assert_int_equal(file_write(in_home(r, "there/output/big"), big, 0644, NULL), 0);
	assert_int_equal(file_write(in_home(r, "there/output/empty"), STR(""), 0644, NULL), 0);
	assert_int_equal(symlink("deep/er/small", in_home(r, "there/output/in")), 0);
	assert_int_equal(symlink("/etc/passwd", in_home(r, "there/output/out")), 0);
	snprintf(part, sizeof(part), "%s/" LAYOUT_RUNS "/%s/uploads/%s.%s.%u", r->home, n.run,
		 n.name, sha, BIG);
	int child = child_begin(do_upload, &n);

	rig_until(r, stat(part, &a) == 0 && a.st_size > 0);
	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(child_end(r, child), 4);
	file_has_digest(output(&n, "big"), sha);
	assert_int_equal(stat(output(&n, "deep/er/small"), &a), 0);
	assert_int_equal(a.st_mode & 0777, 0755);
	assert_int_equal(lstat(output(&n, "in"), &b), 0);
	assert_true(S_ISREG(b.st_mode) && b.st_size == 5);
	assert_false(file_exists(output(&n, "out")));
	assert_int_equal(stat(output(&n, "big"), &a), 0);
	/* A new agent does it all again, and nothing is written again. */
	assert_int_equal(in_child(r, do_upload, &n), 4);
	assert_int_equal(stat(output(&n, "big"), &b), 0);
	assert_true(a.st_ino == b.st_ino);
	assert_false(file_exists(part));
}

/* ---- what the attempt before left ---- */

static int do_previous(void *arg)
{
	const struct node *n = arg;
	struct err err = {0};

	if (previous_fetch(&n->cfg, n->dir, 1, &err) == 0)
		return 0;
	fprintf(stderr, "# %s\n", err.msg);
	return (int)err.kind;
}

static void the_next_attempt_gets_what_the_one_before_left(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *bytes = random_bytes(BIG);
	struct str big = {bytes, BIG};
	char sha[65], part[1000], text[2000];
	struct stat st = {0};
	struct node n;
	struct live_run *lr = begin(r, STR("x"), &n);

	digest_of(big, sha);
	assert_int_equal(previous_attempt(lr, 0), 0);
	assert_int_equal(get(&n, "previous?attempt=1"), STATUS(404));
	assert_int_equal(file_mkdir_p(in_home(r, "there/output/deep/er"), 0755, NULL), 0);
	assert_int_equal(
		file_write(in_home(r, "there/output/deep/er/a b&c"), STR("small"), 0751, NULL), 0);
	assert_int_equal(file_write(in_home(r, "there/output/big"), big, 0644, NULL), 0);
	assert_int_equal(symlink("/etc/passwd", in_home(r, "there/output/out")), 0);
	assert_int_equal(in_child(r, do_upload, &n), 2);
	assert_int_equal(previous_attempt(lr, 0), 1);
	/* On another machine, while the master comes and goes. */
	snprintf(part, sizeof(part), "%s/%s.part", n.cache, sha);
	int child = child_begin(do_previous, &n);

	rig_until(r, stat(part, &st) == 0 && st.st_size > 0);
	assert_false(file_exists(in_home(r, "there/previous")));
	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(child_end(r, child), 0);
	file_has_digest(in_home(r, "there/previous/big"), sha);
	assert_int_equal(stat(in_home(r, "there/previous/deep/er/a b&c"), &st), 0);
	assert_true(st.st_size == 5 && (st.st_mode & 0777) == 0751);
	assert_false(file_exists(in_home(r, "there/previous.new")));
	/* It is not fetched again. */
	uint64_t before = http_server_answers(r->m.http, 2);

	assert_int_equal(in_child(r, do_previous, &n), 0);
	assert_int_equal(http_server_answers(r->m.http, 2), before);
	/* What is asked for is below the outputs of an attempt. */
	assert_int_equal(call(&n, "GET", "previous?attempt=1&path=deep/er/a%20b%26c", STR(""),
			      "bytes=2-", NULL, text, sizeof(text)),
			 STATUS(206));
	assert_string_equal(text, "bytes 2-4/5|all");
	assert_int_equal(get(&n, "previous?attempt=1&path=out"), STATUS(404));
	assert_int_equal(get(&n, "previous?attempt=1&path=../../../token"), STATUS(400));
	assert_int_equal(get(&n, "previous?attempt=2"), STATUS(400));
	assert_int_equal(get(&n, "previous?attempt=0"), STATUS(400));
	assert_int_equal(get(&n, "previous"), STATUS(400));
	/* All of it or nothing. */
	snprintf(n.dir, sizeof(n.dir), "%s/elsewhere", r->home);
	assert_int_equal(mkdir(n.dir, 0700), 0);
	assert_int_equal(unlink(output(&n, "deep/er/a b&c")), 0);
	assert_int_equal(file_remove_tree(n.cache, NULL), 0);
	assert_int_equal(in_child(r, do_previous, &n), ERR_NOT_FOUND);
	assert_false(file_exists(in_home(r, "elsewhere/previous")));
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(only_blobs_of_its_own_run_are_served),
		CASE(a_node_is_told_where_its_inputs_are),
		CASE(a_node_is_given_the_login_of_its_image_only),
		CASE(a_part_is_served_from_an_offset),
		CASE(a_token_is_for_its_own_node_alone),
		CASE(each_node_is_told_of_its_own_shard),
		CASE(data_that_was_not_sent_along_is_refused),
		CASE(a_blob_is_fetched_once_and_found_in_the_cache),
		CASE(nodes_of_a_host_share_one_download),
		CASE(a_damaged_file_in_the_cache_is_fetched_again),
		CASE(a_part_of_before_is_gone_on_with),
		CASE(a_master_that_has_other_bytes_is_not_believed),
		CASE(a_download_survives_the_master),
		CASE(what_was_not_used_for_longest_makes_room),
		CASE(a_file_that_comes_twice_is_stored_once),
		CASE(pieces_are_put_together_in_order),
		CASE(a_node_cannot_reach_out_of_its_outputs),
		CASE(what_was_not_promised_is_not_kept),
		CASE(a_run_may_keep_so_much),
		CASE(a_full_disk_says_so_and_takes_it_later),
		CASE(all_that_a_job_left_is_brought_over_the_end_of_a_master),
		CASE(the_next_attempt_gets_what_the_one_before_left),
	};

	return cmocka_run_group_tests_name("master: files of nodes", tests, NULL, NULL);
}
