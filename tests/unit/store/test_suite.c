/* The rows of suites and of their entries. */
#include "store_fixture.h"

#include "store/store_suite.h"

struct made {
	struct suite plan;
	struct suite_variant variants[2];
	struct core_suite *s;
	struct suite_row row;
};

static void make(struct made *m, const char *id, const char *request)
{
	*m = (struct made){.plan = {.n = 2, .runs = {.repeats = 2}}};
	m->variants[0].name = "a";
	m->variants[1].name = "b";
	m->plan.variants = m->variants;
	m->s = core_suite_new(&m->plan, 3);
	m->row = (struct suite_row){.id = id,
				    .name = "scaling",
				    .request_id = request,
				    .doc = "{}",
				    .base_dir = "/b",
				    .sources = "cafe",
				    .parallel = 3,
				    .created_ms = 7};
}

static void add(struct store *st, struct made *m)
{
	struct err err;

	store_begin(st);
	assert_ok(store_suite_add(st, &m->row, m->s, &err), &err);
	fixture_commit(st);
}

static void take_run(void *ctx, int index, const char *run)
{
	buf_printf(ctx, "%d %s\n", index, run);
}

static void a_suite_is_restored_as_it_was_saved(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct store *st = fixture_open(*state);
	struct made m, again;
	struct suite_row row;
	struct buf runs;
	struct err err;

	make(&m, "scaling-abcd", "request-of-a-suite");
	add(st, &m);
	m.s->phase = SUITE_STOPPING;
	m.s->cancel_asked = m.s->hurry = m.s->too_dear = true;
	m.s->kind = ERR_QUOTA;
	snprintf(m.s->cause, sizeof(m.s->cause), "too dear");
	snprintf(m.s->closed, sizeof(m.s->closed), "exit code 3");
	m.s->since_ms = 99;
	snprintf(m.s->client, sizeof(m.s->client), "laptop");
	m.s->closer = CLOSER_CLIENT;
	m.s->closer_until_ms = 77;
	m.s->away = m.s->closed_there = true;
	m.s->carrier = 3;
	m.s->entries[2] = (struct suite_entry){.variant = 0,
					       .repeat = 1,
					       .state = ENTRY_FAILED,
					       .attempt = 4,
					       .cost_micro = 5,
					       .kind = ERR_TIMEOUT,
					       .cause = "late"};
	store_begin(st);
	assert_ok(store_suite_save(st, m.row.no, m.s, 1234, &err), &err);
	assert_ok(store_suite_entry_save(st, m.row.no, 2, &m.s->entries[2], "train-x", &err), &err);
	fixture_commit(st);
	assert_int_equal(store_last_ms(st), 1234);
	store_close(st);

	st = fixture_open(*state);
	make(&again, "", "");
	buf_init(&runs, 4096);
	assert_ok(store_suite_restore(st, m.row.no, again.s, take_run, &runs, &err), &err);
	assert_int_equal(again.s->phase, SUITE_STOPPING);
	assert_true(again.s->cancel_asked && again.s->hurry && again.s->too_dear);
	assert_int_equal(again.s->kind, ERR_QUOTA);
	assert_string_equal(again.s->cause, "too dear");
	assert_string_equal(again.s->closed, "exit code 3");
	assert_int_equal(again.s->since_ms, 99);
	assert_string_equal(again.s->client, "laptop");
	assert_int_equal(again.s->closer, CLOSER_CLIENT);
	assert_int_equal(again.s->closer_until_ms, 77);
	assert_true(again.s->away && again.s->closed_there);
	assert_int_equal(again.s->carrier, 3);
	assert_memory_equal(&again.s->entries[2], &m.s->entries[2], sizeof(struct suite_entry));
	assert_int_equal(again.s->entries[3].state, ENTRY_WAITING);
	assert_string_equal(runs.p, "2 train-x\n");
	assert_ok(store_suite_get(st, m.row.no, a, &row, &err), &err);
	assert_string_equal(row.id, "scaling-abcd");
	assert_string_equal(row.doc, "{}");
	assert_int_equal(row.parallel, 3);
	buf_release(&runs);
	core_suite_free(again.s);
	core_suite_free(m.s);
	store_close(st);
}

static bool put_id(void *ctx, const struct suite_row *row)
{
	buf_printf(ctx, "%s %d\n", row->id, row->entries[ENTRY_WAITING]);
	return true;
}

static void suites_are_found_by_id_prefix_and_request(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct store *st = fixture_open(*state);
	struct made x, y, z;
	struct suite_row row;
	struct buf list;
	struct err err;
	int64_t no;

	make(&x, "scaling-abcd", "request-of-a-suite");
	make(&y, "scaling-abxy", "request-of-another");
	add(st, &x);
	add(st, &y);
	assert_ok(store_suite_find(st, STR("scaling-abcd"), a, &row, &err), &err);
	assert_int_equal(row.no, x.row.no);
	assert_ok(store_suite_find(st, STR("scaling-abx"), a, &row, &err), &err);
	assert_int_equal(row.no, y.row.no);
	assert_fails(store_suite_find(st, STR("scaling"), a, &row, &err), &err, ERR_CONFLICT,
		     "'scaling' matches several suites: scaling-abcd, scaling-abxy");
	assert_null(strstr(err.msg, "..."));
	assert_fails(store_suite_find(st, STR("x"), a, &row, &err), &err, ERR_NOT_FOUND,
		     "no suite 'x'");
	assert_fails(store_suite_find(st, STR(""), a, &row, &err), &err, ERR_INVALID, "no name");
	assert_fails(store_suite_get(st, 99, a, &row, &err), &err, ERR_NOT_FOUND, "no suite 99");
	assert_ok(store_suite_by_request(st, "request-of-another", &no, &err), &err);
	assert_int_equal(no, y.row.no);
	assert_ok(store_suite_by_request(st, "nobody's", &no, &err), &err);
	assert_int_equal(no, 0);
	store_begin(st);
	assert_ok(store_suite_ended(st, x.row.no, 55, &err), &err);
	fixture_commit(st);
	buf_init(&list, 4096);
	assert_ok(store_suites_each(st, true, 0, a, put_id, &list, &err), &err);
	assert_ok(store_suites_each(st, false, 1, a, put_id, &list, &err), &err);
	assert_string_equal(list.p, "scaling-abxy 4\nscaling-abxy 4\n");
	buf_release(&list);
	make(&z, "scaling-abzz", "request-of-a-third");
	add(st, &z);
	assert_fails(store_suite_find(st, STR("scaling"), a, &row, &err), &err, ERR_CONFLICT,
		     "scaling-abcd, scaling-abxy, ...");
	core_suite_free(x.s);
	core_suite_free(y.s);
	core_suite_free(z.s);
	store_close(st);
}

static void an_archive_is_in_use_while_a_suite_that_needs_it_goes_on(void **state)
{
	struct store *st = fixture_open(*state);
	struct made m;
	struct err err;
	bool used;

	make(&m, "scaling-abcd", "request-of-a-suite");
	add(st, &m);
	assert_ok(store_source_used(st, "cafe", 0, &used, &err), &err);
	assert_true(used);
	assert_ok(store_source_used(st, "beef", 0, &used, &err), &err);
	assert_false(used);
	store_begin(st);
	assert_ok(store_suite_ended(st, m.row.no, 55, &err), &err);
	fixture_commit(st);
	assert_ok(store_source_used(st, "cafe", 0, &used, &err), &err);
	assert_false(used);
	core_suite_free(m.s);
	store_close(st);
}

static void entries_that_are_not_those_of_the_file_are_refused(void **state)
{
	struct store *st = fixture_open(*state);
	struct made m, other;
	struct err err;

	make(&m, "scaling-abcd", "request-of-a-suite");
	add(st, &m);
	make(&other, "", "");
	core_suite_free(other.s);
	other.plan.runs.repeats = 3;
	other.s = core_suite_new(&other.plan, 1);
	assert_fails(store_suite_restore(st, m.row.no, other.s, take_run, NULL, &err), &err,
		     ERR_CONFLICT, "4 of 6 entries");
	core_suite_free(other.s);
	other.plan.runs.order = ORDER_AS_WRITTEN;
	other.s = core_suite_new(&other.plan, 1);
	assert_fails(store_suite_restore(st, m.row.no, other.s, take_run, NULL, &err), &err,
		     ERR_CONFLICT, "entry 1 is not the one of its file");
	core_suite_free(other.s);
	core_suite_free(m.s);
	store_close(st);
}

#define on_dir(f) cmocka_unit_test_setup_teardown(f, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_dir(a_suite_is_restored_as_it_was_saved),
		on_dir(suites_are_found_by_id_prefix_and_request),
		on_dir(an_archive_is_in_use_while_a_suite_that_needs_it_goes_on),
		on_dir(entries_that_are_not_those_of_the_file_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
