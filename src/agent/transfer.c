#include "agent/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "link/layout.h"

#define CONNECT_MS 10000
#define STALL_MS 30000
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 5000
#define MAX_FAULTS 5	 /* answers 5xx in a row */
#define MAX_URL_FAULTS 8 /* of another server than the master: about 15 s, if it answers at once */
#define MAX_DOWNLOAD (UINT64_C(1) << 40)
#define MAX_REDIRECTS 5
#define ANSWER_MAX (64 * 1024)

void transfer_init(struct transfer *t, const struct agent_config *cfg, const char *url)
{
	*t = (struct transfer){.cfg = cfg, .url = url, .pause_ms = PAUSE_MIN_MS};
}

void transfer_release(struct transfer *t)
{
	t->client = http_client_free(t->client);
}

char *transfer_path(const struct transfer *t, const char *rest)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, HTTP_URL_MAX);
	buf_addz(&b, "/api/v1/runs/");
	url_encode(&b, str_from(t->cfg->run));
	buf_addz(&b, "/nodes/");
	url_encode(&b, str_from(t->cfg->node));
	buf_printf(&b, "/%s", rest);
	return xstrndup(buf_str(&b).p, b.n);
}

/* ---- connecting ---- */

static const char *variable(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	return value ? value : getenv(upper);
}

static int open_url(struct transfer *t, struct err *err)
{
	struct http_url u;

	if (http_url_parse(&u, str_from(t->url), false, err) < 0)
		return -1;
	/* Job files name https:// only; a private store of objects, which the master signs for, may be
	 * without TLS. */
	struct http_target there = {
		.host = u.host,
		.port = u.port,
		.tls = {.mode = u.tls ? TLS_CA : TLS_OFF},
		.proxy = {.http_proxy = getenv("http_proxy"),
			  .https_proxy = variable("https_proxy", "HTTPS_PROXY"),
			  .no_proxy = variable("no_proxy", "NO_PROXY")},
	};

	return http_client_open(&there, CONNECT_MS, &t->client, err);
}

/* Over the network use the master's TLS port with its pin, on this machine its API socket. */
static int open_master(struct transfer *t, struct err *err)
{
	const struct agent_config *cfg = t->cfg;
	struct http_target there = {.token = cfg->token};

	if (cfg->url) {
		there.host = cfg->host;
		there.port = cfg->port;
		there.tls = (struct tls_trust){.mode = TLS_PIN, .pin = cfg->pin};
	} else {
		there.unix_dir = cfg->link_dir;
		there.unix_name = LAYOUT_API_SOCKET;
	}
	return http_client_open(&there, CONNECT_MS, &t->client, err);
}

static int be_connected(struct transfer *t, struct err *err)
{
	if (t->client)
		return 0;
	return t->url ? open_url(t, err) : open_master(t, err);
}

/* ---- trying again ---- */

static void rest(struct transfer *t)
{
	struct rng rng;

	rng_seed(&rng, rand_u64());
	poll(NULL, 0, (int)(t->pause_ms / 2 + (int64_t)rng_below(&rng, (uint64_t)t->pause_ms)));
	t->pause_ms = t->pause_ms * 2 < PAUSE_MAX_MS ? t->pause_ms * 2 : PAUSE_MAX_MS;
}

static void went_well(struct transfer *t)
{
	t->pause_ms = PAUSE_MIN_MS;
	t->faults = 0;
	t->waited_for_room = false;
}

/* After a call without an answer.  Returns as transfer_call(). */
static int judge_failure(struct transfer *t, const struct err *why)
{
	t->client = http_client_free(t->client);
	/* A wrong pin is tried again, because a master may be moving; the lease ends it, as for the link. */
	bool hopeless = why->kind == ERR_INVALID || why->kind == ERR_CAPACITY ||
			why->kind == ERR_CANCELLED || why->kind == ERR_IO;

	if (hopeless || (t->url && (why->kind == ERR_DENIED || ++t->faults >= MAX_URL_FAULTS)))
		return -1;
	rest(t);
	return 1;
}

/* The <Code> of an answer in XML, as S3 writes it. */
static struct str xml_code(struct str body)
{
	static const char open[] = "<Code>";
	const char *at = body.n ? memmem(body.p, body.n, open, sizeof(open) - 1) : NULL;
	struct str rest = {at, at ? (size_t)(body.p + body.n - at) : 0};

	if (!at)
		return STR("");
	rest.p += sizeof(open) - 1;
	rest.n -= sizeof(open) - 1;
	return str_cut(&rest, '<');
}

/* Kind and message of an error answer. */
static void read_error(const struct http_answer *a, struct err *ret)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct doc *d = NULL;

	*ret = (struct err){0};
	if (json_parse(buf_str(&a->body), mem, &d, NULL) < 0)
		d = NULL;
	const struct doc *e = doc_table(d, "error");
	enum err_kind kind = err_kind_from_name(doc_str(e, "kind", STR("")).p);

	if (kind == ERR_NONE)
		kind = a->status == 404 || a->status == 410   ? ERR_NOT_FOUND
		       : a->status == 412		      ? ERR_CONFLICT
		       : a->status == 401 || a->status == 403 ? ERR_DENIED
		       : a->status == 507		      ? ERR_CAPACITY
		       : a->status >= 500		      ? ERR_UNAVAILABLE
							      : ERR_INVALID;
	struct str words = doc_str(e, "message", xml_code(buf_str(&a->body)));

	if (a->status == 412)
		words = STR("its content has changed since the job was submitted");
	err_set(ret, kind, "%d%s%.*s", a->status, words.n ? " " : "",
		(int)(words.n < 160 ? words.n : 160), words.p);
}

static int judge_answer(struct transfer *t, const struct http_answer *a, struct err *err)
{
	if (a->status / 100 == 2) {
		went_well(t);
		return 0;
	}
	read_error(a, err);
	bool room = err->kind == ERR_CAPACITY;
	bool later = room || a->status == 409 || a->status == 429 || a->status == 503 ||
		     a->status == 504 || a->status == 502 || a->status == 408;

	if (room && !t->waited_for_room)
		log_warn("the master has no disk space: %s; trying again", err->msg);
	t->waited_for_room |= room;
	if (!later && (a->status != 500 || ++t->faults >= MAX_FAULTS))
		return -1;
	if (t->url && ++t->faults >= MAX_URL_FAULTS)
		return -1;
	rest(t);
	return 1;
}

int transfer_call(struct transfer *t, const struct http_outgoing *r, struct http_answer *ret,
		  struct err *err)
{
	*err = (struct err){0};
	if (be_connected(t, err) < 0 || http_send(t->client, r, ret, err) < 0)
		return judge_failure(t, err);
	return judge_answer(t, ret, err);
}

/* ---- downloads ---- */

/* One try.  Returns as transfer_call(). */
static int download_more(struct transfer *t, struct http_download *d, struct http_answer *a,
			 struct err *err)
{
	uint64_t before = d->offset;

	*err = (struct err){0};
	if (be_connected(t, err) < 0)
		return judge_failure(t, err);
	int rc = http_download(t->client, d, a, err);

	if (d->offset > before)
		went_well(t);
	/* The file changed on the server: the part downloaded before is useless. */
	if (rc < 0 && err->kind == ERR_CONFLICT)
		d->offset = 0;
	return rc < 0 ? judge_failure(t, err) : judge_answer(t, a, err);
}

/* For servers that do not heed If-Match. */
static int check_etag(const struct transfer *t, const char *etag, struct err *err)
{
	struct str is = http_client_header(t->client, "ETag");

	if (!etag || !is.p || str_is(is, etag))
		return 0;
	return err_set(err, ERR_CONFLICT, "its content has changed since the job was submitted");
}

int transfer_download(struct transfer *t, const char *path, const char *etag, int fd,
		      struct err *err)
{
	const struct http_field match = {"If-Match", etag};
	struct http_answer a;
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "read the size of the partial download");
	struct http_download d = {
		.get = {.path = path,
			.timeout_ms = -1,
			.fields = &match,
			.nfields = etag ? 1 : 0,
			.max_redirects = t->url ? MAX_REDIRECTS : 0},
		.fd = fd,
		.offset = (uint64_t)st.st_size,
		.max_bytes = MAX_DOWNLOAD,
		.stall_ms = STALL_MS,
	};

	http_answer_init(&a, ANSWER_MAX);
	do
		rc = download_more(t, &d, &a, err);
	while (rc > 0);
	http_answer_release(&a);
	if (rc == 0 && check_etag(t, etag, err) < 0)
		return -1;
	if (rc == 0 && ftruncate(fd, (off_t)d.offset) < 0)
		return err_errno(err, errno, "truncate the download");
	return rc;
}
