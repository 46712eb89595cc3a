/* This program and the one for machines of another architecture: found, told apart, opened by its sum. */
#include "other_program.h"

#include "base/arena.h"
#include "base/err.h"
#include "fmt/doc.h"

#define SIZE (sizeof(Elf64_Ehdr) + 100)

static int describe(struct arena *a, const char *machine, const struct doc **ret, struct err *err)
{
	struct doc *facts = doc_new(a, DOC_TABLE);

	*err = (struct err){0};
	int rc = own_program_add_named(facts, "w", machine, a, err);

	*ret = doc_table(doc_table(facts, "binaries"), "w");
	return rc;
}

static const char *sum(const struct doc *program)
{
	return doc_str(program, "sha256", STR("")).p;
}

static void refused(const char *machine, enum err_kind kind, const char *words)
{
	struct arena *a = arena_new();
	const struct doc *program;
	struct err err;

	assert_int_equal(describe(a, machine, &program, &err), -1);
	if (!strstr(err.msg, words))
		fail_msg("'%s' has no '%s'", err.msg, words);
	assert_int_equal(err.kind, kind);
	arena_free(a);
}

static void this_program_needs_no_file_beside_it(void **state)
{
	struct arena *a = arena_new();
	struct doc *facts = doc_new(a, DOC_TABLE);
	const struct doc *same;
	uint64_t size = 0;
	struct err err;
	int fd = -1;
	(void)state;

	assert_int_equal(own_program_add(facts, NULL, a, NULL), 0);
	const struct doc *own = doc_table(facts, "binary");

	assert_int_equal(describe(a, own_program_machine(), &same, &err), 0);
	assert_string_equal(sum(own), sum(same));
	assert_int_equal(own_program_open(sum(own), &fd, &size, &err), 0);
	assert_int_equal(doc_int(own, "size", 0), (int64_t)size);
	assert_int_equal(lseek(fd, 0, SEEK_END), (off_t)size);
	close(fd);
	arena_free(a);
}

static void the_program_for_other_machines_is_found_and_opened(void **state)
{
	struct arena *a = arena_new();
	const struct doc *program;
	char head[SIZE + 1];
	uint64_t size = 0;
	struct err err;
	int fd = -1;

	other_program_write(*state, other_machine(), true, 'b');
	assert_int_equal(describe(a, other_machine(), &program, &err), 0);
	assert_int_equal(doc_int(program, "size", 0), SIZE);
	assert_string_equal(doc_str(program, "machine", STR("")).p, other_machine());
	assert_int_equal(own_program_open(sum(program), &fd, &size, &err), 0);
	assert_int_equal(size, SIZE);
	assert_int_equal(read(fd, head, sizeof(head)), SIZE);
	assert_true(head[SIZE - 1] == 'b');
	close(fd);
	arena_free(a);
}

static void a_program_that_is_replaced_has_another_sum(void **state)
{
	struct arena *a = arena_new();
	const struct doc *before, *after;
	uint64_t size;
	struct err err;
	int fd;

	assert_int_equal(describe(a, other_machine(), &before, &err), 0);
	assert_int_equal(unlink(unit_path(state, "regatta-arm64")), 0);
	assert_int_equal(unlink(unit_path(state, "regatta-x86_64")), 0);
	other_program_write(*state, other_machine(), true, 'c');
	assert_int_equal(describe(a, other_machine(), &after, &err), 0);
	assert_string_not_equal(sum(before), sum(after));
	assert_int_equal(own_program_open(sum(before), &fd, &size, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	arena_free(a);
}

static void what_is_missing_or_wrong_is_said_with_what_to_do(void **state)
{
	char *missing = xasprintf("there is no regatta-%s for these machines", other_machine());

	other_program_write(*state, other_machine(), false, 'a');
	refused(other_machine(), ERR_INVALID, "is no program for");
	assert_int_equal(truncate(unit_path(state, "regatta-arm64"), 10), 0);
	assert_int_equal(truncate(unit_path(state, "regatta-x86_64"), 10), 0);
	refused(other_machine(), ERR_INVALID, "is no program for");
	setenv("REGATTA_BINARIES", "/nonexistent", 1);
	refused(other_machine(), ERR_NOT_FOUND, missing);
	refused(other_machine(), ERR_NOT_FOUND, "REGATTA_BINARIES");
	refused("riscv64", ERR_INVALID, "only for x86_64 and arm64");
	free(missing);
}

#define program_test(f)                                                                            \
	cmocka_unit_test_setup_teardown(f, other_programs_make, other_programs_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		program_test(this_program_needs_no_file_beside_it),
		program_test(the_program_for_other_machines_is_found_and_opened),
		program_test(a_program_that_is_replaced_has_another_sum),
		program_test(what_is_missing_or_wrong_is_said_with_what_to_do),
	};

	return cmocka_run_group_tests_name("own_program", tests, NULL, NULL);
}
