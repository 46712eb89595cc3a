/* What an input consists of, asked before the job is sent. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "driver/input_find.h"
#include "driver/object_store.h"
#include "fake_s3.h"
#include "fmt/object_list.h"

struct rig {
	struct fake_s3 s3;
	struct arena *a;
	struct input_found found;
	struct err err;
	void *dir;
};

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	if (fake_s3_start_with_dir(&r->s3, &r->dir) < 0)
		return -1;
	setenv("AWS_ENDPOINT_URL", r->s3.http.url, 1);
	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "us-east-1", 1);
	setenv("HOME", r->dir, 1);
	r->a = arena_new();
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	arena_free(r->a);
	int rc = fake_s3_stop_with_dir(&r->s3, &r->dir);

	free(r);
	return rc;
}

static void put(struct rig *r, const char *key, const char *text)
{
	struct deadline d = deadline_in(20000, NULL);
	struct object_access who = {.credentials = r->s3.credentials};
	CLEANUP(object_store_freep) struct object_store *st = NULL;

	assert_int_equal(object_store_open("s3://bkt/", &who, &d, &st, &r->err), 0);
	if (object_put_text(st, key, str_from(text), NULL, &d, &r->err) < 0)
		fail_msg("%s", r->err.msg);
}

/* The list, with '\n' as it is. */
static const char *find(struct rig *r, struct input_question q)
{
	struct deadline d = deadline_in(20000, NULL);
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(close_fdp)
	int fd = open(unit_path(&r->dir, "list"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	r->err = (struct err){0};
	if (input_find(&q, fd, &d, r->a, &r->found, &r->err) < 0)
		return NULL;
	buf_init(&text, 100000);
	assert_int_equal(file_read(unit_path(&r->dir, "list"), &text, NULL), 0);
	return arena_str(r->a, buf_str(&text)).p;
}

static void names_of(struct rig *r, const char *list, char out[static 200])
{
	struct str rest = str_from(list);
	size_t n = 0;

	out[0] = '\0';
	while (rest.n > 0) {
		struct object_entry e;

		assert_int_equal(object_entry_get(str_cut(&rest, '\n'), r->a, &e, &r->err), 0);
		assert_true(e.size >= 0 && e.etag && e.etag[0] == '"');
		n += (size_t)snprintf(out + n, 200 - n, "%s=%d ", e.name, (int)e.size);
	}
}

static void an_object_is_found_by_its_key_and_others_by_what_they_are_below(void **state)
{
	struct rig *r = *state;
	char names[200];

	put(r, "d/a", "1");
	put(r, "d/b/c", "22");
	put(r, "d/z", "333");
	put(r, "d/e/", "");
	names_of(r, find(r, (struct input_question){.url = "s3://bkt/d/a"}), names);
	assert_string_equal(names, "=1 ");
	assert_string_equal(r->found.from, "s3://bkt/d/a");
	names_of(r, find(r, (struct input_question){.url = "s3://bkt/d/a", .in_dir = true}), names);
	assert_string_equal(names, "a=1 ");
	assert_string_equal(r->found.from, "s3://bkt/d/");
	/* With and without a slash. */
	names_of(r, find(r, (struct input_question){.url = "s3://bkt/d", .shards = 2}), names);
	assert_string_equal(names, "a=1 b/c=2 z=3 ");
	assert_string_equal(r->found.from, "s3://bkt/d/");
	assert_int_equal(r->found.objects, 3);
	assert_int_equal(r->found.bytes, 6);
	assert_int_equal(r->found.largest_shard, 4);
	assert_true(r->found.sized);
	names_of(r, find(r, (struct input_question){.url = "s3://bkt/d/"}), names);
	assert_string_equal(names, "a=1 b/c=2 z=3 ");
}

static void what_cannot_be_an_input_says_why(void **state)
{
	struct rig *r = *state;

	assert_null(find(r, (struct input_question){.url = "s3://bkt/none"}));
	if (r->err.kind != ERR_NOT_FOUND)
		fail_msg("%s", r->err.msg);
	assert_non_null(strstr(r->err.msg, "there is no such object"));
	put(r, "bad//x", "1");
	assert_null(find(r, (struct input_question){.url = "s3://bkt/bad/"}));
	assert_non_null(strstr(r->err.msg, "cannot be a file on a node"));
	r->s3.refuse = "HEAD /bkt/x";
	r->s3.refuse_status = 403;
	r->s3.refuse_body = "";
	r->s3.refusals = 100;
	assert_null(find(r, (struct input_question){.url = "s3://bkt/x"}));
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_null(
		find(r, (struct input_question){.url = "https://127.0.0.1:1/", .in_dir = true}));
	assert_non_null(strstr(r->err.msg, "no name of a file"));
}

/* Nodes may reach what this machine does not. */
static void a_server_that_does_not_answer_is_left_to_the_nodes(void **state)
{
	struct rig *r = *state;

	assert_string_equal(
		find(r, (struct input_question){.url = "https://127.0.0.1:1/a/x.py?y=/z",
						.in_dir = true}),
		"{\"name\":\"x.py\"}\n");
	assert_false(r->found.sized);
	assert_int_equal(r->found.objects, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_object_is_found_by_its_key_and_others_by_what_they_are_below),
		T(what_cannot_be_an_input_says_why),
		T(a_server_that_does_not_answer_is_left_to_the_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
