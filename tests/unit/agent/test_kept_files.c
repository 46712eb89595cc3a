/* Files that a job leaves to be kept: asked for again after a crash, and never in the way of an end. */
#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "fake_master.h"

/* The copy of a file that begins with "slow" never ends, that of one that begins with "once" does when it is tried
 * again; a second file beside it says that its copy has begun, and which process copies. */
int __real_file_copy_content(int from, int to, struct err *err);
int __wrap_file_copy_content(int from, int to, struct err *err);
int __wrap_file_copy_content(int from, int to, struct err *err)
{
	char self[64], path[4096], word[4] = "", pid[32];
	ssize_t n;

	if (pread(from, word, 4, 0) != 4 ||
	    (memcmp(word, "slow", 4) != 0 && memcmp(word, "once", 4) != 0))
		return __real_file_copy_content(from, to, err);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", from);
	n = readlink(self, path, sizeof(path) - 10);
	snprintf(path + n, 10, ".copying");
	if (word[0] == 'o' && file_exists(path))
		return __real_file_copy_content(from, to, err);
	assert_int_equal(write(to, word, 4), 4);
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	assert_int_equal(file_write_atomic(path, str_from(pid), 0600, false, NULL), 0);
	for (;;)
		pause();
}

static void what_to_keep_is_asked_for_again_after_a_crash(void **state)
{
	struct fake *f = *state;
	const char *inputs = "{\"argv0\":\"sh\",\"path\":\"/bin:/usr/bin\",\"keep\":[\"model\"]}";

	f->config = arena_printf(f->arena, ",\"output_dir\":\"%s/kept\"", f->dir);

	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, inputs);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	pid_t pid = fake_start(f, "echo m > model; " FAKE_UNTIL("go"));
	pid_t shim = fake_shim(f);

	fake_kill(f->agent);
	fake_touch(fake_below(f, "go"));
	fake_gone(pid);
	fake_gone(shim);
	/* The next one knows of the end for a while before anybody tells it what to keep. */
	fake_agent(f);
	fake_accept(f);
	for (int i = 0; i < 2; i++) {
		fake_send(f, FRAME_PING, "{}");
		fake_wait(f, FRAME_PONG);
	}
	fake_welcome(f, 60000);
	const struct doc *c = fake_wait(f, FRAME_COLLECTED);

	assert_null(doc_get(c, "error"));
	assert_int_equal(fake_int(c, "files"), 1);
	assert_string_equal(fake_file(f, fake_below(f, "kept/model")), "m\n");
}

/* The job keeps a file with this word in it; returns the file that says that it is being copied. */
static const char *copying(struct fake *f, const char *word)
{
	f->config = arena_printf(f->arena, ",\"output_dir\":\"%s/kept\"", f->dir);
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS,
		  "{\"argv0\":\"sh\",\"path\":\"/bin:/usr/bin\",\"keep\":[\"big\"]}");
	fake_wait(f, FRAME_READY);
	fake_start(f, arena_printf(f->arena, "echo %s > big; pwd > $DIR/where", word));
	fake_wait(f, FRAME_EXIT);
	const char *where = fake_file(f, fake_below(f, "where"));

	return arena_printf(f->arena, "%.*s/big.copying", (int)strcspn(where, "\n"), where);
}

static void copying_for_ever(struct fake *f)
{
	fake_file(f, copying(f, "slow"));
}

static pid_t copier(struct fake *f, const char *copying)
{
	int64_t pid;

	assert_true(str_to_i64(str_trim(str_from(fake_file(f, copying))), &pid));
	return (pid_t)pid;
}

static void a_killed_copy_of_kept_files_is_made_again(void **state)
{
	struct fake *f = *state;

	fake_kill(copier(f, copying(f, "once")));
	const struct doc *c = fake_wait(f, FRAME_COLLECTED);

	assert_null(doc_get(c, "error"));
	assert_int_equal(fake_int(c, "files"), 1);
	assert_string_equal(fake_file(f, fake_below(f, "kept/big")), "once\n");
	fake_release(f);
}

static void copies_that_are_always_killed_are_given_up(void **state)
{
	struct fake *f = *state;
	const char *mark = copying(f, "slow");

	for (int i = 0; i < 3; i++) {
		pid_t pid = copier(f, mark);

		unlink(mark);
		fake_kill(pid);
	}
	assert_string_equal(fake_str(fake_wait(f, FRAME_COLLECTED), "error"),
			    "collecting was interrupted");
	fake_release(f);
}

static bool is_empty(struct fake *f, const char *name)
{
	char **names;
	size_t n;

	assert_int_equal(file_list_tree(fake_below(f, name), 10, &names, &n, NULL), 0);
	file_list_free(names, n);
	return n == 0;
}

static void a_signal_stops_the_copying_of_kept_files(void **state)
{
	for (int hurry = 0; hurry < 2; hurry++) {
		struct fake *f = *state;

		if (hurry == 1) {
			fake_teardown(state);
			assert_int_equal(fake_setup(state), 0);
			f = *state;
		}
		copying_for_ever(f);
		fake_send(f, FRAME_SIGNAL,
			  hurry ? "{\"sig\":\"KILL\",\"hurry\":true}"
				: "{\"sig\":\"TERM\",\"hurry\":false}");
		assert_string_equal(fake_str(fake_wait(f, FRAME_COLLECTED), "error"),
				    "keeping files was stopped");
		assert_true(is_empty(f, "kept"));
		fake_release(f);
	}
}

static void a_release_stops_the_copying_of_kept_files(void **state)
{
	struct fake *f = *state;

	copying_for_ever(f);
	fake_release(f);
	assert_true(is_empty(f, "kept"));
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
	static const struct CMUnitTest tests[] = {
		CASE(what_to_keep_is_asked_for_again_after_a_crash),
		CASE(a_killed_copy_of_kept_files_is_made_again),
		CASE(copies_that_are_always_killed_are_given_up),
		CASE(a_signal_stops_the_copying_of_kept_files),
		CASE(a_release_stops_the_copying_of_kept_files),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: kept files", tests, NULL, NULL);
}
