#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "base/vec.h"

static void a_vector_grows_and_new_elements_are_zero(void **state)
{
	VEC(int) v = {0};

	(void)state;
	for (int i = 0; i < 10000; i++) {
		int *p = vec_push(&v);
		assert_int_equal(*p, 0);
		*p = i;
	}
	assert_int_equal(v.n, 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(v.v[i], i);
	/* A used slot is zero again when it is handed out again. */
	v.n = 0;
	assert_int_equal(*vec_push(&v), 0);
	vec_release(&v);
	assert_null(v.v);
	assert_int_equal(v.n + v.cap, 0);
}

static void a_vector_makes_room_for_what_is_asked(void **state)
{
	size_t cap = 0;
	char *v = vec_grow_(NULL, &cap, 1000, 1);

	(void)state;
	assert_true(cap >= 1000);
	memset(v, 1, cap);
	free(v);
}

struct item {
	int value;
	struct list link;
};

static void a_list_keeps_the_order_of_appending(void **state)
{
	struct item items[4] = {{1, {0}}, {2, {0}}, {3, {0}}, {4, {0}}};
	struct list head, *pos, *tmp;
	int expected = 1;

	(void)state;
	list_init(&head);
	assert_true(list_empty(&head));
	for (size_t i = 0; i < COUNT(items); i++)
		list_append(&head, &items[i].link);
	assert_false(list_empty(&head));
	list_each (pos, &head)
		assert_int_equal(list_item(pos, struct item, link)->value, expected++);
	assert_int_equal(expected, 5);

	list_each_safe (pos, tmp, &head)
		if (list_item(pos, struct item, link)->value % 2)
			list_remove(pos);
	assert_ptr_equal(head.next, &items[1].link);
	assert_ptr_equal(head.prev, &items[3].link);
	list_remove(&items[0].link);
	list_remove(&items[1].link);
	list_remove(&items[3].link);
	assert_true(list_empty(&head));
}

static void an_arena_gives_zeroed_aligned_memory_apart_from_each_other(void **state)
{
	struct arena *a = arena_new();
	unsigned char *blocks[2000];
	size_t sizes[2000];

	(void)state;
	for (size_t i = 0; i < COUNT(blocks); i++) {
		sizes[i] = i % 7 == 0 ? i * 13 : i % 100;
		blocks[i] = arena_alloc(a, sizes[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		for (size_t k = 0; k < sizes[i]; k++)
			if (blocks[i][k])
				fail_msg("block %zu is not zero", i);
		memset(blocks[i], (int)(i % 255 + 1), sizes[i]);
	}
	for (size_t i = 0; i < COUNT(blocks); i++)
		for (size_t k = 0; k < sizes[i]; k++)
			if (blocks[i][k] != i % 255 + 1)
				fail_msg("block %zu was written over", i);
	assert_null(arena_free(a));
	assert_null(arena_free(NULL));
}

static void an_arena_takes_a_first_block_of_any_size(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	memset(arena_alloc(a, 1000000), 1, 1000000);
	memset(arena_alloc(a, 10), 2, 10);
	memset(arena_alloc(a, 4096), 3, 4096);
	/* A large block does not end the chunk that is being filled. */
	char *before = arena_alloc(a, 16);
	memset(arena_alloc(a, 2000000), 4, 2000000);
	assert_ptr_equal(arena_alloc(a, 16), before + 16);
}

static void an_arena_copies_and_formats_text(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	assert_string_equal(arena_strdup(a, "abc"), "abc");
	assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
	assert_string_equal(arena_strndup(a, NULL, 0), "");
	assert_string_equal(arena_printf(a, "%s-%d", "run", 7), "run-7");
	assert_string_equal(arena_printf(a, "%ls", L"\x20ac"), "");
	for (int n = 1; n < 600; n++) {
		char *text = arena_printf(a, "%0*d", n, 7);
		memset(arena_alloc(a, 16), 'y', 16);
		assert_int_equal(strlen(text), n);
		assert_int_equal(text[n - 1], '7');
	}
	struct str s = arena_str(a, STR("a\0b"));
	assert_int_equal(s.n, 3);
	assert_memory_equal(s.p, "a\0b", 4);
	int *numbers = arena_array(a, int, 100);
	assert_int_equal(numbers[99], 0);
	struct item *one = arena_new_of(a, struct item);
	assert_int_equal(one->value, 0);
}

static void owned_copies_are_exact(void **state)
{
	char *a = xstrdup("abc"), *b = xstrndup("abcdef", 2), *c = xasprintf("%s%d", "x", 5);
	char *d = xstrndup("a\0b", 3);

	(void)state;
	assert_string_equal(a, "abc");
	assert_string_equal(b, "ab");
	assert_string_equal(c, "x5");
	assert_string_equal(d, "a");
	free(a);
	free(b);
	free(c);
	free(d);
	free(xmalloc(0));
	free(xcalloc(0, 8));
	free(xrealloc(NULL, 0));
}

/* Runs fn in a child; `said` gets its standard error.  Returns the wait status. */
static int run_apart(void (*fn)(void), char *said, size_t size)
{
	int pipe_fds[2], status;

	assert_int_equal(pipe(pipe_fds), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		dup2(pipe_fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(pipe_fds[1]);
	size_t n = 0;
	ssize_t got;
	while (n + 1 < size && (got = read(pipe_fds[0], said + n, size - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(pipe_fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Volatile, so that no compiler proves the size absurd. */
static volatile size_t absurd = SIZE_MAX / 4;

static void ask_malloc(void)
{
	free(xmalloc(absurd));
}

static void ask_calloc(void)
{
	free(xcalloc(absurd, 8));
}

static void ask_realloc(void)
{
	free(xrealloc(NULL, absurd));
}

static void ask_format(void)
{
	free(xasprintf("%ls", L"\x20ac"));
}

static void ask_vec(void)
{
	size_t cap = 0;
	free(vec_grow_(NULL, &cap, absurd, 64));
}

static void ask_arena(void)
{
	struct arena *a = arena_new();
	arena_alloc(a, SIZE_MAX);
	arena_free(a);
}

static void running_out_of_memory_aborts_with_a_message(void **state)
{
	static void (*const ask[])(void) = {ask_malloc, ask_calloc, ask_realloc,
					    ask_format, ask_vec,    ask_arena};

	(void)state;
	for (size_t i = 0; i < COUNT(ask); i++) {
		char said[512];
		int status = run_apart(ask[i], said, sizeof(said));

		assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		/* A sanitizer's allocator says it in its own words. */
		if (!strstr(said, "out of memory") && !strstr(said, "Sanitizer"))
			fail_msg("case %zu said '%s'", i, said);
	}
}

static void what_is_cleaned_up_is_what_was_not_taken(void **state)
{
	int kept = -1, pipe_fds[2];

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	{
		CLEANUP(close_fdp) int read_end = pipe_fds[0];
		CLEANUP(close_fdp) int write_end = pipe_fds[1];
		CLEANUP(close_fdp) int none = -1;
		CLEANUP(freep) char *text = xstrdup("text");
		CLEANUP(fclosep) FILE *no_file = NULL;
		CLEANUP(fclosep) FILE *file = fopen("/dev/null", "re");

		assert_non_null(file);
		(void)no_file;
		(void)none;
		(void)write_end;
		kept = TAKE_FD(read_end);
		assert_int_equal(read_end, -1);
		char *mine = TAKE_PTR(text);
		assert_null(text);
		free(mine);
	}
	assert_int_equal(fcntl(pipe_fds[1], F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	assert_true(fcntl(kept, F_GETFD) >= 0);
	close(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vector_grows_and_new_elements_are_zero),
		cmocka_unit_test(a_vector_makes_room_for_what_is_asked),
		cmocka_unit_test(a_list_keeps_the_order_of_appending),
		cmocka_unit_test(an_arena_gives_zeroed_aligned_memory_apart_from_each_other),
		cmocka_unit_test(an_arena_takes_a_first_block_of_any_size),
		cmocka_unit_test(an_arena_copies_and_formats_text),
		cmocka_unit_test(owned_copies_are_exact),
		cmocka_unit_test(running_out_of_memory_aborts_with_a_message),
		cmocka_unit_test(what_is_cleaned_up_is_what_was_not_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
