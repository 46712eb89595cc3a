/* Results that only another master has: fetched file by file, once, and complete when the index is there. */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/results.h"
#include "fake_http.h"
#include "net/http_client.h"

#define HELLO_SUM "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
#define DIGITS_SUM "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
#define FILES(first)                                                                               \
	"{\"version\":1,\"run\":\"r1\",\"files\":["                                                \
	"{\"path\":\"" first "\",\"size\":6,\"sha256\":\"" HELLO_SUM "\"},"                        \
	"{\"path\":\"outputs/digits\",\"size\":10,\"sha256\":\"" DIGITS_SUM "\"}]}"
#define GET "GET /api/v1/runs/r1/results?path="

struct scene {
	struct fake_http fake;
	char *dir;
	const char *index, *hello;
	bool cuts; /* the second file, in the middle */
	struct http_client *client;
	struct deadline d;
	struct results_sum sum;
	struct err err;
};

static bool answer(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	struct scene *s = f->ctx;

	(void)nth;
	if (fake_is(asked, GET "index.json ")) {
		fake_say(fd, s->index ? 200 : 404, "", s->index ? s->index : "{}");
		return true;
	}
	if (fake_is(asked, GET "log ")) {
		fake_say(fd, 200, "", s->hello);
		return true;
	}
	const char *range = fake_header(asked, "Range");

	if (s->cuts) {
		fake_raw(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123");
		return false;
	}
	if (range && strcmp(range, "bytes=4-") == 0)
		fake_say(fd, 206, "Content-Range: bytes 4-9/10\r\n", "456789");
	else
		fake_say(fd, range ? 416 : 200, "", range ? "" : "0123456789");
	return true;
}

static int setup(void **state)
{
	struct scene *s = xcalloc(1, sizeof(*s));
	void *dir = NULL;

	if (unit_make_dir(&dir) < 0)
		return -1;
	s->dir = dir;
	s->index = FILES("log");
	s->hello = "hello\n";
	s->fake.answer = answer;
	s->fake.ctx = s;
	s->d = deadline_in(20000, NULL);
	fake_start(&s->fake);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	void *dir = s->dir;

	fake_stop(&s->fake);
	free(s);
	return unit_remove_dir(&dir);
}

/* By a connection of its own, as each try has. */
static int fetch(struct scene *s)
{
	const struct http_target to = {
		.host = "127.0.0.1", .port = s->fake.port, .tls = {.mode = TLS_OFF}};
	struct http_client *c = NULL;

	assert_int_equal(http_client_open(&to, 10000, &c, &s->err), 0);
	int rc = results_fetch(c, "r1", s->dir, &s->d, &s->sum, &s->err);

	http_client_free(c);
	return rc;
}

static bool has(const struct scene *s, const char *name, const char *text)
{
	char *path = path_join(s->dir, name);
	struct buf got;

	buf_init(&got, 4096);
	bool same = file_read(path, &got, NULL) == 0 && str_is(buf_str(&got), text);

	buf_release(&got);
	free(path);
	return same;
}

static bool is_complete(const struct scene *s)
{
	char *path = path_join(s->dir, "index.json");
	bool there = file_exists(path);

	free(path);
	return there;
}

static void all_files_come_and_are_not_asked_for_again(void **state)
{
	struct scene *s = *state;

	assert_int_equal(fetch(s), 0);
	assert_true(has(s, "log", "hello\n") && has(s, "outputs/digits", "0123456789"));
	assert_true(has(s, "index.json", s->index));
	assert_int_equal(s->sum.files, 2);
	assert_int_equal(s->sum.bytes, 16);
	assert_int_equal(s->fake.n, 3);
	assert_int_equal(fetch(s), 0);
	assert_int_equal(s->fake.n, 4); /* the index */
}

static void what_was_cut_off_goes_on_where_it_was(void **state)
{
	struct scene *s = *state;

	s->cuts = true;
	assert_int_equal(fetch(s), -1);
	assert_int_not_equal(s->err.kind, ERR_INVALID);
	assert_false(is_complete(s));
	s->cuts = false;
	assert_int_equal(fetch(s), 0);
	assert_true(has(s, "outputs/digits", "0123456789") && is_complete(s));
	assert_string_equal(fake_header(&s->fake.asked[s->fake.n - 1], "Range"), "bytes=4-");
}

static void a_file_that_is_not_what_the_index_says_is_refused(void **state)
{
	struct scene *s = *state;

	s->hello = "other\n";
	assert_int_equal(fetch(s), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	assert_false(is_complete(s) || has(s, "log", "other\n"));
	s->hello = "hello\n";
	assert_int_equal(fetch(s), 0);
}

static void an_index_that_leads_out_of_the_directory_is_refused(void **state)
{
	struct scene *s = *state;

	s->index = FILES("../log");
	assert_int_equal(fetch(s), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	assert_int_equal(s->fake.n, 1);
	assert_false(is_complete(s));
}

static void a_master_that_keeps_none_says_so(void **state)
{
	struct scene *s = *state;

	s->index = NULL;
	assert_int_equal(fetch(s), -1);
	assert_int_equal(s->err.kind, ERR_NOT_FOUND);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_files_come_and_are_not_asked_for_again),
		T(what_was_cut_off_goes_on_where_it_was),
		T(a_file_that_is_not_what_the_index_says_is_refused),
		T(an_index_that_leads_out_of_the_directory_is_refused),
		T(a_master_that_keeps_none_says_so),
	};

	return cmocka_run_group_tests_name("results of another master", tests, NULL, NULL);
}
