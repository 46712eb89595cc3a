/* Objects of other servers: downloaded once, checked, and kept by content. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>

#include "../driver/aws/fake_http.h"
#include "agent/config.h"
#include "agent/fetch.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "net/digest.h"

#define BODY "the content of the object"
#define ETAG "\"e-1\""

struct world {
	char *dir;
	struct fake_http http;
	struct agent_config cfg;
	struct fetch_object object;
	char node[600], cache[600];
	int cut;	    /* so many answers end early */
	int refuse, status; /* so many answers have this status */
	const char *etag, *error;
	bool heedless;	 /* If-Match is ignored */
	int urls, again; /* that were asked for */
};

static bool serve(struct fake_http *h, int fd, int nth, const struct fake_asked *asked)
{
	struct world *w = h->ctx;
	const char *range = fake_header(asked, "Range"), *match = fake_header(asked, "If-Match");
	size_t from = range ? strtoul(range + strlen("bytes="), NULL, 10) : 0, n = strlen(BODY);
	char head[200];

	(void)nth;
	if (match && !w->heedless && strcmp(match, w->etag) != 0) {
		fake_say(fd, 412, "", "");
		return true;
	}
	if (w->refuse > 0) {
		w->refuse--;
		fake_say(fd, w->status, "", w->error);
		return true;
	}
	snprintf(head, sizeof(head), "ETag: %s\r\nContent-Range: bytes %zu-%zu/%zu\r\n", w->etag,
		 from, n - 1, n);
	if (w->cut > 0) {
		w->cut--;
		snprintf(head, sizeof(head),
			 "HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: %zu\r\n\r\n%.9s", w->etag,
			 n, BODY);
		fake_raw(fd, head);
		return false;
	}
	fake_say(fd, range ? 206 : 200, head, &BODY[from]);
	return true;
}

static int give_url(void *ctx, bool again, struct buf *out, struct err *err)
{
	struct world *w = ctx;

	(void)err;
	w->urls++;
	w->again += again;
	buf_printf(out, "%s/x?signed=%d", w->http.url, w->urls);
	return 0;
}

static int make(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	if (unit_make_dir((void **)&w->dir) < 0)
		return -1;
	snprintf(w->node, sizeof(w->node), "%s/node", w->dir);
	snprintf(w->cache, sizeof(w->cache), "%s/cache", w->dir);
	w->cfg.cache = w->cache;
	w->cfg.cache_bytes = 1 << 20;
	w->etag = ETAG;
	w->error = "";
	w->object = (struct fetch_object){.what = "s3://b/x",
					  .etag = ETAG,
					  .size = (int64_t)strlen(BODY),
					  .url = give_url,
					  .ctx = w};
	w->http.answer = serve;
	w->http.ctx = w;
	fake_start(&w->http);
	*state = w;
	return file_mkdir_p(w->node, 0700, NULL);
}

static int drop(void **state)
{
	struct world *w = *state;

	fake_stop(&w->http);
	int rc = unit_remove_dir((void **)&w->dir);

	free(w);
	return rc;
}

static void downloads(struct world *w)
{
	struct err err = {0};
	char text[100] = "";
	CLEANUP(close_fdp) int fd = fetch_object(&w->cfg, w->node, &w->object, &err);

	if (fd < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(read(fd, text, sizeof(text) - 1), (int)strlen(BODY));
	assert_string_equal(text, BODY);
}

static void fails(struct world *w, enum err_kind kind, const char *says)
{
	struct err err = {0};

	assert_int_equal(fetch_object(&w->cfg, w->node, &w->object, &err), -1);
	assert_int_equal(err.kind, kind);
	if (!strstr(err.msg, says))
		fail_msg("'%s' is not in '%s'", says, err.msg);
}

static void an_object_is_downloaded_once_and_then_taken_from_the_cache(void **state)
{
	struct world *w = *state;

	downloads(w);
	downloads(w);
	assert_int_equal(w->http.n, 1);
	/* Another ETag is another content. */
	w->object.etag = w->etag = "\"e-2\"";
	downloads(w);
	assert_int_equal(w->http.n, 2);
	/* Without an ETag nobody knows. */
	w->object.etag = NULL;
	downloads(w);
	downloads(w);
	assert_int_equal(w->http.n, 4);
}

/* Where the cache has the body. */
static const char *cached(const struct world *w, char hex[static SHA256_TEXT])
{
	static char path[800];
	uint8_t digest[SHA256_BYTES];

	sha256_of(BODY, strlen(BODY), digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	snprintf(path, sizeof(path), "%s/%s", w->cache, hex);
	return path;
}

static void a_cached_object_that_was_damaged_is_downloaded_again(void **state)
{
	struct world *w = *state;
	char hex[SHA256_TEXT];
	const char *path = cached(w, hex);

	downloads(w);
	assert_int_equal(file_write(path, STR("other"), 0600, NULL), 0);
	downloads(w);
	assert_int_equal(w->http.n, 2);
	/* The file is gone, and its name is left. */
	assert_int_equal(unlink(path), 0);
	downloads(w);
	assert_int_equal(w->http.n, 3);
	/* By its digest it is the same file. */
	w->object.sha256 = hex;
	downloads(w);
	assert_int_equal(w->http.n, 3);
}

static void a_download_that_was_cut_goes_on(void **state)
{
	struct world *w = *state;

	w->cut = 1;
	downloads(w);
	assert_int_equal(w->http.n, 2);
	assert_string_equal(fake_header(&w->http.asked[1], "Range"), "bytes=9-");
	assert_string_equal(fake_header(&w->http.asked[1], "If-Match"), ETAG);
	assert_int_equal(w->urls, 1);
}

static void a_url_that_is_refused_is_asked_for_again(void **state)
{
	struct world *w = *state;

	w->refuse = 2;
	w->status = 403;
	downloads(w);
	assert_int_equal(w->urls, 3);
	assert_int_equal(w->again, 2);
}

static void what_is_refused_for_good_says_why(void **state)
{
	struct world *w = *state;

	w->refuse = 100;
	w->status = 403;
	w->error = "<Error><Code>AccessDenied</Code></Error>";
	fails(w, ERR_DENIED, "s3://b/x: 403 AccessDenied");
	w->status = 404;
	w->error = "";
	fails(w, ERR_NOT_FOUND, "s3://b/x: 404");
	w->status = 500;
	fails(w, ERR_UNAVAILABLE, "s3://b/x: 500");
	w->refuse = 0;
	w->etag = "\"e-9\"";
	fails(w, ERR_CONFLICT, "changed since the job was submitted");
	w->etag = ETAG;
	w->object.size = 3;
	fails(w, ERR_CONFLICT, "it has 25 bytes, and had 3 when the job was submitted");
	w->object.size = -1;
	w->object.sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
	fails(w, ERR_INVALID, "wrong content");
	char hex[SHA256_TEXT];

	assert_false(file_exists(cached(w, hex))); /* nobody asked for these bytes */
}

static void a_server_that_does_not_heed_if_match_is_found_out(void **state)
{
	struct world *w = *state;

	w->heedless = true;
	w->etag = "\"e-9\"";
	fails(w, ERR_CONFLICT, "changed since the job was submitted");
}

#define T(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_object_is_downloaded_once_and_then_taken_from_the_cache),
		T(a_cached_object_that_was_damaged_is_downloaded_again),
		T(a_download_that_was_cut_goes_on),
		T(a_url_that_is_refused_is_asked_for_again),
		T(what_is_refused_for_good_says_why),
		T(a_server_that_does_not_heed_if_match_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
