/* Results of ended runs, taken from a bucket into a home. */
#include "rig.h"

#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "driver/aws/aws_session.h"
#include "driver/results.h"
#include "fake_s3.h"
#include "link/layout.h"
#include "master/runs.h"
#include "master/run_json.h"
#include "master/upkeep/imports.h"

#define URL "s3://b-1/runs/"
#define JOB "{\"name\":\"t\",\"command\":[\"true\"],\"output\":{\"s3\":\"" URL "\"}}"

struct imports_rig {
	struct rig *r;
	struct fake_s3 s3;
	char run[64]; /* the id of a run that has ended and whose copy is in the bucket */
	int64_t no;
	int ended;	/* imports */
	bool again;	/* when one has ended the next one is started */
	struct err err; /* of the last one */
};

static char *run_dir(const struct imports_rig *ir)
{
	return xasprintf("%s/" LAYOUT_RUNS "/%s", ir->r->home, ir->run);
}

static bool has_file(const struct imports_rig *ir, const char *name)
{
	CLEANUP(freep) char *dir = run_dir(ir);
	CLEANUP(freep) char *path = path_join(dir, name);

	return file_exists(path);
}

static struct fake_s3_object *object(struct imports_rig *ir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "b-1/runs/%s/%s", ir->run, name);
	return fake_s3_find(&ir->s3, path);
}

/* Submitted with the credentials, so that its end makes the copy. */
static void make_run(struct imports_rig *ir)
{
	CLEANUP(freep)
	char *body = xasprintf("{\"request_id\":\"request-of-the-copy\",\"job\":" JOB
			       ",\"base_dir\":\"/\",\"client_env\":{},\"credentials\":%s}",
			       ir->s3.credentials);

	assert_int_equal(rig_http(ir->r, "POST", "/api/v1/runs", body), 201);
	snprintf(ir->run, sizeof(ir->run), "%s", rig_run(ir->r)->row.id);
	ir->no = rig_run(ir->r)->row.no;
	struct rig_agent *a = rig_agent(ir->r, 0);

	agent_run(a);
	agent_finish(a);
	rig_until(ir->r, !rig_run(ir->r) && object(ir, RESULTS_INDEX));
	rig_until(ir->r, has_file(ir, LAYOUT_RESULTS));
}

static int set_up(void **state)
{
	struct imports_rig *ir = xcalloc(1, sizeof(*ir));
	void *rig;

	if (rig_make(&rig) < 0)
		return -1;
	ir->r = rig;
	fake_s3_start(&ir->s3);
	make_run(ir);
	*state = ir;
	return 0;
}

static int tear_down(void **state)
{
	struct imports_rig *ir = *state;
	void *rig = ir->r;

	aws_sessions_drop();
	fake_s3_stop(&ir->s3);
	free(ir);
	return rig_drop(&rig);
}

static void note_end(void *ctx, const struct err *err);

static void start(struct imports_rig *ir)
{
	import_start(&ir->r->m,
		     &(struct import_source){
			     .run = ir->run, .url = URL, .credentials = ir->s3.credentials},
		     note_end, ir);
}

static void note_end(void *ctx, const struct err *err)
{
	struct imports_rig *ir = ctx;

	ir->ended++;
	ir->err = *err;
	if (ir->again) {
		ir->again = false;
		start(ir);
	}
}

static enum err_kind import(struct imports_rig *ir)
{
	int before = ir->ended;

	start(ir);
	assert_int_equal(ir->ended, before);
	assert_true(import_goes_on(&ir->r->m, ir->run));
	rig_until(ir->r, ir->ended == before + 1);
	assert_false(import_goes_on(&ir->r->m, ir->run));
	return ir->err.kind;
}

/* This home knows the run no more. */
static void forget(struct imports_rig *ir)
{
	CLEANUP(freep) char *path = xasprintf("/api/v1/runs/%s/cleanup", ir->run);
	CLEANUP(freep) char *dir = run_dir(ir);

	assert_int_equal(rig_http(ir->r, "POST", path, ""), 200);
	rig_until(ir->r, !file_exists(dir));
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 0);
}

/* The run as it is in the home that handed it over. */
static void make_handed_over(struct imports_rig *ir)
{
	rig_stop(ir->r);
	rig_damage(ir->r, "UPDATE job SET plan = json_set(plan, '$.hands_over', json('true'))");
	rig_damage(ir->r, "UPDATE run SET verdict = 2, phase = 7");
	rig_damage(ir->r, "UPDATE event SET kind = 'local-' || kind, time_ms = time_ms - 1");
	rig_damage(ir->r, "UPDATE job SET base_dir = '/home/other'");
	assert_true(rig_start(ir->r));
}

static void a_copy_becomes_a_run_of_this_home(void **state)
{
	struct imports_rig *ir = *state;
	int puts = object(ir, RESULTS_INDEX)->puts;

	forget(ir);
	assert_int_equal(import(ir), ERR_NONE);
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run WHERE ended_ms > 0"), 1);
	assert_true(has_file(ir, "summary.json") && has_file(ir, "job.toml"));
	CLEANUP(freep) char *path = xasprintf("/api/v1/runs/%s", ir->run);

	assert_int_equal(rig_http(ir->r, "GET", path, ""), 200);
	/* It is not taken for one that must be copied. */
	assert_true(has_file(ir, LAYOUT_RESULTS));
	assert_int_equal(object(ir, RESULTS_INDEX)->puts, puts);
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM event WHERE text LIKE 'taken "
					   "from " URL "%'"),
			 1);
}

static void an_import_may_be_repeated(void **state)
{
	struct imports_rig *ir = *state;
	int asked = ir->s3.http.n;

	assert_int_equal(import(ir), ERR_NONE);
	assert_int_equal(ir->s3.http.n, asked);
	forget(ir);
	start(ir);
	start(ir);
	rig_until(ir->r, ir->ended == 3);
	assert_int_equal(ir->err.kind, ERR_NONE);
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 1);
}

static void a_run_that_was_handed_over_gets_the_rows_of_its_copy(void **state)
{
	struct imports_rig *ir = *state;
	struct rig *r = ir->r;

	make_handed_over(ir);
	int64_t local = rig_stored(r, "SELECT count(*) FROM event");

	assert_int_equal(import(ir), ERR_NONE);
	assert_int_equal(rig_stored(r, "SELECT no FROM run WHERE verdict = 1"), ir->no);
	assert_int_equal(rig_stored(r,
				    "SELECT count(*) FROM job WHERE base_dir = '/home/other' AND "
				    "NOT coalesce(json_extract(plan, '$.hands_over'), 0)"),
			 1);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run WHERE request_id = "
				       "'request-of-the-copy'"),
			 1);
	/* Its own events are between those of the copy, by their time. */
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM event WHERE kind LIKE 'local-%'"),
			 local);
	assert_true(rig_stored(r, "SELECT max(seq) FROM event WHERE kind NOT LIKE 'local-%'") >
		    local);
	assert_int_equal(rig_stored(r, "SELECT count(*) - max(seq) FROM event"), 0);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM event a JOIN event b ON b.seq = a.seq "
				       "+ 1 WHERE b.time_ms < a.time_ms"),
			 0);
	/* And it is done: nothing more is fetched. */
	int asked = ir->s3.http.n;

	assert_int_equal(import(ir), ERR_NONE);
	assert_int_equal(ir->s3.http.n, asked);
}

static void whoever_watches_a_replaced_run_goes_on_watching(void **state)
{
	struct imports_rig *ir = *state;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};

	make_handed_over(ir);
	struct live_run *lr = live_run_find(&ir->r->m, str_from(ir->run), a, NULL, NULL, &err);

	assert_non_null(lr);
	map_put(ir->r->m.runs, str_from(lr->row.id), lr);
	lr->watchers++;
	assert_int_equal(import(ir), ERR_NONE);
	struct live_run *now = live_run_find(&ir->r->m, str_from(ir->run), a, NULL, NULL, &err);

	assert_true(now && now != lr && !now->plan.hands_over);
	live_run_done(now);
	lr->watchers--;
	live_run_done(lr);
}

static void a_run_that_goes_on_is_left_alone(void **state)
{
	struct imports_rig *ir = *state;
	int asked = ir->s3.http.n;

	snprintf(ir->run, sizeof(ir->run), "%s", rig_submit(ir->r, RIG_JOB)->row.id);
	assert_int_equal(import(ir), ERR_CONFLICT);
	assert_non_null(strstr(ir->err.msg, "has not ended here"));
	assert_int_equal(ir->s3.http.n, asked);
}

static void without_an_index_there_is_no_copy(void **state)
{
	struct imports_rig *ir = *state;
	CLEANUP(freep) char *dir = run_dir(ir);

	forget(ir);
	object(ir, RESULTS_INDEX)->name[0] = 'x';
	assert_int_equal(import(ir), ERR_NOT_FOUND);
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 0);
	assert_false(file_exists(dir));
}

static void a_damaged_copy_is_refused_and_a_later_try_goes_on(void **state)
{
	struct imports_rig *ir = *state;
	struct fake_s3_object *o = object(ir, "summary.json");

	forget(ir);
	o->body[0] = 'x';
	assert_int_equal(import(ir), ERR_INVALID);
	assert_non_null(strstr(ir->err.msg, "'summary.json' is not what index.json says"));
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 0);
	o->body[0] = '{';
	int asked = ir->s3.http.n;

	assert_int_equal(import(ir), ERR_NONE);
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 1);
	for (int i = asked; i < ir->s3.http.n; i++)
		assert_null(strstr(ir->s3.http.asked[i].head, "/job.toml"));
}

static void the_record_of_another_run_is_refused(void **state)
{
	struct imports_rig *ir = *state;
	char other[] = "b-1/runs/t-0000/index.json", *at;
	struct fake_s3_object *index = object(ir, RESULTS_INDEX);

	forget(ir);
	for (int i = 0; i < ir->s3.n; i++)
		memcpy(strstr(ir->s3.objects[i].name, ir->run), "t-0000", strlen("t-0000"));
	index->body[index->n] = '\0';
	at = strstr(index->body, ir->run);
	assert_non_null(at);
	memcpy(at, "t-0000", strlen("t-0000"));
	snprintf(ir->run, sizeof(ir->run), "t-0000");
	assert_non_null(fake_s3_find(&ir->s3, other));
	assert_int_equal(import(ir), ERR_INVALID);
	assert_non_null(strstr(ir->err.msg, "is not the record of the ended run 't-0000'"));
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 0);
}

static void what_is_no_id_is_refused(void **state)
{
	static const char *const ids[] = {"", ".", "..", "../x", "a/b", ".hidden"};
	struct imports_rig *ir = *state;

	for (size_t i = 0; i < COUNT(ids); i++) {
		snprintf(ir->run, sizeof(ir->run), "%s", ids[i]);
		assert_int_equal(import(ir), ERR_INVALID);
	}
}

/* `results` of the run as clients see it. */
static bool is_shown(struct imports_rig *ir, const char *member)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	struct err err = {0};
	struct live_run *lr = live_run_find(&ir->r->m, str_from(ir->run), a, NULL, NULL, &err);

	assert_non_null(lr);
	buf_init(&json, 65536);
	run_to_json(lr, false, &json);
	live_run_done(lr);
	return strstr(buf_str(&json).p, member) != NULL;
}

static void what_was_not_taken_in_is_an_event_of_the_run(void **state)
{
	struct imports_rig *ir = *state;
	struct fake_s3_object *o = object(ir, "summary.json");
	CLEANUP(freep) char *dir = run_dir(ir);
	CLEANUP(freep) char *own = path_join(dir, "summary.json");
	CLEANUP(freep) char *note = path_join(dir, LAYOUT_RESULTS);

	make_handed_over(ir);
	unlink(own);
	unlink(note); /* of the copy that this home made itself */
	o->body[0] = 'x';
	assert_int_equal(import(ir), ERR_INVALID);
	rig_until(ir->r, rig_stored(ir->r, "SELECT count(*) FROM event WHERE kind = 'results' AND "
					   "text LIKE 'not taken in: %'") == 1);
	assert_true(is_shown(ir, "\"results\":\"missing\""));
	o->body[0] = '{';
	start(ir);
	assert_true(is_shown(ir, "\"results\":\"coming\""));
	rig_until(ir->r, ir->ended == 2);
	assert_int_equal(ir->err.kind, ERR_NONE);
	assert_true(is_shown(ir, "\"results\":null"));
}

static void a_full_disk_takes_nothing_in(void **state)
{
	struct imports_rig *ir = *state;

	forget(ir);
	int asked = ir->s3.http.n;

	ir->r->disk_full = true;
	assert_int_equal(import(ir), ERR_CAPACITY);
	assert_int_equal(ir->s3.http.n, asked);
}

static void a_master_that_leaves_ends_what_has_begun_and_says_what_has_not(void **state)
{
	struct imports_rig *ir = *state;

	forget(ir);
	start(ir);
	rig_stop(ir->r);
	assert_int_equal(ir->ended, 1);
	assert_int_equal(ir->err.kind, ERR_NONE);
	assert_true(rig_start(ir->r));
	forget(ir);
	ir->again = true;
	snprintf(ir->run, sizeof(ir->run), "other-run");
	start(ir);
	rig_stop(ir->r);
	assert_int_equal(ir->ended, 3);
	assert_int_equal(ir->err.kind, ERR_CANCELLED);
	assert_true(rig_start(ir->r));
}

static void a_caller_brings_the_credentials(void **state)
{
	struct imports_rig *ir = *state;

	forget(ir);
	CLEANUP(freep)
	char *bare = xasprintf("{\"run\":\"%s\",\"url\":\"" URL "\"}", ir->run);
	CLEANUP(freep)
	char *whole = xasprintf("{\"run\":\"%s\",\"url\":\"" URL "\",\"credentials\":%s}", ir->run,
				ir->s3.credentials);
	CLEANUP(freep)
	char *other = xasprintf("{\"run\":\"other\",\"url\":\"" URL "\",\"credentials\":%s}",
				ir->s3.credentials);

	assert_int_equal(rig_http(ir->r, "POST", "/api/v1/imports", bare), 400);
	assert_int_equal(rig_http(ir->r, "POST", "/api/v1/imports", other), 404);
	assert_int_equal(rig_http(ir->r, "POST", "/api/v1/imports", whole), 200);
	assert_int_equal(rig_stored(ir->r, "SELECT count(*) FROM run"), 1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(a_copy_becomes_a_run_of_this_home),
		CASE(an_import_may_be_repeated),
		CASE(a_run_that_was_handed_over_gets_the_rows_of_its_copy),
		CASE(whoever_watches_a_replaced_run_goes_on_watching),
		CASE(a_run_that_goes_on_is_left_alone),
		CASE(without_an_index_there_is_no_copy),
		CASE(a_damaged_copy_is_refused_and_a_later_try_goes_on),
		CASE(the_record_of_another_run_is_refused),
		CASE(what_is_no_id_is_refused),
		CASE(what_was_not_taken_in_is_an_event_of_the_run),
		CASE(a_full_disk_takes_nothing_in),
		CASE(a_caller_brings_the_credentials),
		CASE(a_master_that_leaves_ends_what_has_begun_and_says_what_has_not),
	};

	return cmocka_run_group_tests_name("master: imports", tests, NULL, NULL);
}
