/* The directory of an ended run as objects, and back. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/results.h"
#include "fake_s3.h"

struct rig {
	struct fake_s3 s3;
	struct deadline d;
	struct err err;
	struct results_place at;
	struct results_sum sum;
	void *dir; /* "run" is the directory of the run, "back" what was read */
};

static void write_file(struct rig *r, const char *name, const char *text)
{
	char *path = xstrdup(unit_path(&r->dir, name));

	*strrchr(path, '/') = '\0';
	assert_int_equal(file_mkdir_p(path, 0700, &r->err), 0);
	assert_int_equal(file_write(unit_path(&r->dir, name), str_from(text), 0600, &r->err), 0);
	free(path);
}

static void expect_file(struct rig *r, const char *name, const char *text)
{
	struct buf got;

	buf_init(&got, 4096);
	if (file_read(unit_path(&r->dir, name), &got, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	assert_string_equal(got.p, text);
	buf_release(&got);
}

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	if (fake_s3_start_with_dir(&r->s3, &r->dir) < 0)
		return -1;
	r->d = deadline_in(20000, NULL);
	r->at = (struct results_place){
		.url = "s3://b-1/runs/",
		.run = "t-abcd",
		.install = "i1",
		.credentials = r->s3.credentials,
		.keep_days = 30,
	};
	write_file(r, "run/summary.json", "{}");
	write_file(r, "run/record.db", "rows");
	write_file(r, "run/logs/node-0.log", "hello\n");
	write_file(r, "run/outputs/node-0/model", "m");
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	int rc = fake_s3_stop_with_dir(&r->s3, &r->dir);

	free(r);
	return rc;
}

static int put(struct rig *r)
{
	return results_put(unit_path(&r->dir, "run"), &r->at, &r->d, &r->sum, &r->err);
}

static int get(struct rig *r)
{
	return results_get(unit_path(&r->dir, "back"), &r->at, &r->d, &r->sum, &r->err);
}

static int puts_of(struct rig *r, const char *name)
{
	const struct fake_s3_object *o = fake_s3_find(&r->s3, name);

	return o ? o->puts : 0;
}

static void all_files_go_there_and_come_back(void **state)
{
	struct rig *r = *state;

	assert_int_equal(chmod(unit_path(&r->dir, "run/outputs/node-0/model"), 0700), 0);
	assert_int_equal(put(r), 0);
	assert_int_equal(r->sum.files, 4);
	assert_int_equal(r->sum.sent, 4);
	assert_int_equal(r->sum.bytes, 13);
	assert_string_equal(fake_s3_find(&r->s3, "b-1/runs/t-abcd/logs/node-0.log")->tags,
			    "regatta%3Aretention=30d");
	assert_int_equal(get(r), 0);
	expect_file(r, "back/logs/node-0.log", "hello\n");
	expect_file(r, "back/outputs/node-0/model", "m");
	struct stat st;

	assert_int_equal(stat(unit_path(&r->dir, "back/outputs/node-0/model"), &st), 0);
	assert_true(st.st_mode & S_IXUSR);
}

static void secrets_and_the_directories_of_nodes_stay_here(void **state)
{
	static const char *const names[] = {"secrets.json", "results.json", ".report.html.1",
					    "node-0.node/agent.json"};
	struct rig *r = *state;
	char path[128];

	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "run/%s", names[i]);
		write_file(r, path, "secret");
	}
	assert_int_equal(put(r), 0);
	assert_int_equal(r->sum.files, 4);
	for (int i = 0; i < r->s3.n; i++)
		assert_null(strstr(r->s3.objects[i].body, "secret"));
}

static void the_index_is_written_last(void **state)
{
	struct rig *r = *state;

	assert_int_equal(put(r), 0);
	assert_true(
		fake_is(&r->s3.http.asked[r->s3.http.n - 1], "PUT /b-1/runs/t-abcd/index.json "));
}

static void a_copy_that_was_cut_off_goes_on(void **state)
{
	struct rig *r = *state;

	r->s3.refuse = "PUT /b-1/runs/t-abcd/outputs/";
	r->s3.refuse_status = 403;
	r->s3.refuse_body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
	r->s3.refusals = 1;
	assert_int_equal(put(r), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_null(fake_s3_find(&r->s3, "b-1/runs/t-abcd/index.json"));
	assert_int_equal(get(r), -1);
	assert_int_equal(r->err.kind, ERR_NOT_FOUND);
	assert_int_equal(put(r), 0);
	assert_int_equal(puts_of(r, "b-1/runs/t-abcd/logs/node-0.log"), 1);
	assert_int_equal(puts_of(r, "b-1/runs/t-abcd/outputs/node-0/model"), 1);
	assert_int_equal(r->sum.files, 4);
}

static void what_has_changed_is_sent_again_and_nothing_else(void **state)
{
	struct rig *r = *state;

	assert_int_equal(put(r), 0);
	write_file(r, "run/summary.json", "[]");
	assert_int_equal(put(r), 0);
	assert_int_equal(r->sum.sent, 1);
	assert_int_equal(puts_of(r, "b-1/runs/t-abcd/summary.json"), 2);
	assert_int_equal(puts_of(r, "b-1/runs/t-abcd/record.db"), 1);
}

static void the_run_of_another_install_is_not_overwritten(void **state)
{
	struct rig *r = *state;

	assert_int_equal(put(r), 0);
	r->at.install = "i2";
	write_file(r, "run/summary.json", "[]");
	assert_int_equal(put(r), -1);
	assert_int_equal(r->err.kind, ERR_CONFLICT);
	assert_int_equal(puts_of(r, "b-1/runs/t-abcd/summary.json"), 1);
}

static void files_that_are_not_what_the_index_says_are_refused(void **state)
{
	struct rig *r = *state;

	assert_int_equal(put(r), 0);
	fake_s3_find(&r->s3, "b-1/runs/t-abcd/logs/node-0.log")->body[0] = 'j';
	assert_int_equal(get(r), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
	assert_non_null(strstr(r->err.msg, "'logs/node-0.log' is not what index.json says"));
	assert_int_equal(access(unit_path(&r->dir, "back/logs/node-0.log"), F_OK), -1);
}

static void an_index_that_leads_out_of_the_directory_is_refused(void **state)
{
	struct rig *r = *state;
	struct fake_s3_object *index;
	char *at;

	assert_int_equal(put(r), 0);
	index = fake_s3_find(&r->s3, "b-1/runs/t-abcd/index.json");
	index->body[index->n] = '\0';
	at = strstr(index->body, "logs/node-0.log");
	assert_non_null(at);
	memcpy(at, "../../node-0.lo", strlen("../../node-0.lo"));
	assert_int_equal(get(r), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
}

/* A figure of the index that no disk has room for. */
static void a_copy_that_does_not_fit_is_not_begun(void **state)
{
	struct rig *r = *state;
	struct fake_s3_object *index;
	const char *at;
	char *body;

	assert_int_equal(put(r), 0);
	index = fake_s3_find(&r->s3, "b-1/runs/t-abcd/index.json");
	at = strstr(index->body, "\"size\":");
	assert_non_null(at);
	at += strlen("\"size\":");
	body = xasprintf("%.*s9000000000000%s", (int)(at - index->body), index->body, at);
	free(index->body);
	index->body = body;
	index->n = strlen(body);
	mkdir(unit_path(&r->dir, "back"), 0700);
	assert_int_equal(get(r), -1);
	assert_int_equal(r->err.kind, ERR_CAPACITY);
	assert_non_null(strstr(r->err.msg, "MB are free"));
	assert_int_equal(access(unit_path(&r->dir, "back/logs/node-0.log"), F_OK), -1);
}

#define results_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		results_test(all_files_go_there_and_come_back),
		results_test(secrets_and_the_directories_of_nodes_stay_here),
		results_test(the_index_is_written_last),
		results_test(a_copy_that_was_cut_off_goes_on),
		results_test(what_has_changed_is_sent_again_and_nothing_else),
		results_test(the_run_of_another_install_is_not_overwritten),
		results_test(files_that_are_not_what_the_index_says_are_refused),
		results_test(a_copy_that_does_not_fit_is_not_begun),
		results_test(an_index_that_leads_out_of_the_directory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
