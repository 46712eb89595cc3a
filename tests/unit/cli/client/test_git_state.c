/* Which commit a directory is at, asked of git, or read from the files of the repository where there is none. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/client/git_state.h"
#include "fmt/jsonw.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"

static void put(void **state, const char *name, const char *text)
{
	const char *path = unit_path(state, name);
	CLEANUP(freep) char *dir = xstrdup(path);
	struct err err = {0};

	*strrchr(dir, '/') = '\0';
	assert_int_equal(file_mkdir_p(dir, 0700, &err), 0);
	assert_int_equal(file_write(path, str_from(text), 0700, &err), 0);
}

static int setup(void **state)
{
	if (unit_make_dir(state) < 0)
		return -1;
	put(state, "bin/README", "");
	put(state, "repo/deep/file", "");
	put(state, "repo/.git/HEAD", "ref: refs/heads/main\n");
	put(state, "repo/.git/refs/heads/main", COMMIT "\n");
	return setenv("PATH", unit_path(state, "bin"), 1);
}

/* The JSON of a directory's state, as it is submitted. */
static const char *state_of(void **state, const char *dir, struct arena *a, int rc)
{
	struct git_state g;
	struct err err = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;

	assert_int_equal(git_state_read(unit_path(state, dir), a, &g, &err), rc);
	buf_init(&text, 4096);
	jsonw_init(&w, &text);
	if (g.revision)
		git_state_to_json(&g, true, &w);
	git_state_release(&g);
	return arena_strndup(a, text.p ? text.p : "", text.n);
}

#define EXPECT(dir, rc, text)                                                                      \
	do {                                                                                       \
		CLEANUP(arena_freep) struct arena *a_ = arena_new();                               \
		assert_string_equal(state_of(state, dir, a_, rc), text);                           \
	} while (0)

static void without_git_the_files_tell_the_commit_but_not_whether_it_was_changed(void **state)
{
	EXPECT("repo/deep", 0, "{\"revision\":\"" COMMIT "\",\"branch\":\"main\"}");
	EXPECT(".", 0, "");
	put(state, "repo/.git/HEAD", OTHER "\n");
	EXPECT("repo", 0, "{\"revision\":\"" OTHER "\"}");
	put(state, "repo/.git/HEAD", "ref: refs/heads/old\n");
	put(state, "repo/.git/packed-refs",
	    "# pack-refs with: peeled\n" COMMIT " refs/heads/older\n" OTHER " refs/heads/old\n");
	EXPECT("repo", 0, "{\"revision\":\"" OTHER "\",\"branch\":\"old\"}");
}

static void a_linked_work_tree_has_its_own_head_and_the_refs_of_the_repository(void **state)
{
	put(state, "tree/.git", "gitdir: ../repo/.git/worktrees/tree\n");
	put(state, "repo/.git/worktrees/tree/HEAD", "ref: refs/heads/side\n");
	put(state, "repo/.git/worktrees/tree/commondir", "../..\n");
	put(state, "repo/.git/refs/heads/side", OTHER "\n");
	EXPECT("tree", 0, "{\"revision\":\"" OTHER "\",\"branch\":\"side\"}");
}

static void a_damaged_repository_has_no_commit(void **state)
{
	put(state, "secret", COMMIT "\n");
	for (int i = 0; i < 4; i++) {
		static const char *const heads[] = {"", "ref: refs/heads/none\n",
						    "ref: ../../secret\n", "0123456789\n"};

		put(state, "repo/.git/HEAD", heads[i]);
		EXPECT("repo", 0, "");
	}
}

#define FAKE_GIT                                                                                   \
	"#!/bin/sh\n"                                                                              \
	"echo \"$*\" >> \"${0%/*}/asked\"\n"                                                       \
	"while [ \"$1\" != -C ]; do shift; done\n"                                                 \
	"case $3 in\n"

static void a_changed_file_makes_it_dirty_and_the_difference_is_kept(void **state)
{
	put(state, "bin/git",
	    FAKE_GIT "status) echo '# branch.oid " OTHER "'; echo '# branch.head trunk'\n"
		     "  echo '1 .M N... 100644 100644 100644 a b file'; echo '? new file';;\n"
		     "diff) echo '-old'; echo '+new';;\n"
		     "esac\n");
	/* "# not tracked: new file\n-old\n+new\n" */
	EXPECT("repo", 0,
	       "{\"revision\":\"" OTHER "\",\"branch\":\"trunk\",\"dirty\":true,"
	       "\"diff\":\"IyBub3QgdHJhY2tlZDogbmV3IGZpbGUKLW9sZAorbmV3Cg==\"}");
}

static void a_clean_one_is_not_dirty_and_no_difference_is_asked_for(void **state)
{
	CLEANUP(buf_release) struct buf asked = {0};

	put(state, "bin/git",
	    FAKE_GIT "status) echo '# branch.oid " OTHER "'; echo '# branch.head (detached)';;\n"
		     "diff) exit 1;;\n"
		     "esac\n");
	EXPECT("repo", 0, "{\"revision\":\"" OTHER "\",\"dirty\":false}");
	buf_init(&asked, 4096);
	assert_int_equal(file_read(unit_path(state, "bin/asked"), &asked, NULL), 0);
	CLEANUP(freep) char *text = buf_take(&asked);

	assert_null(strstr(text, " diff "));
	assert_non_null(strstr(text, "core.hooksPath=/dev/null"));
}

static void a_git_that_fails_leaves_the_commit_that_the_files_tell(void **state)
{
	put(state, "bin/git", "#!/bin/sh\nexit 128\n");
	EXPECT("repo", -1, "{\"revision\":\"" COMMIT "\",\"branch\":\"main\"}");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(without_git_the_files_tell_the_commit_but_not_whether_it_was_changed),
		CASE(a_linked_work_tree_has_its_own_head_and_the_refs_of_the_repository),
		CASE(a_damaged_repository_has_no_commit),
		CASE(a_changed_file_makes_it_dirty_and_the_difference_is_kept),
		CASE(a_clean_one_is_not_dirty_and_no_difference_is_asked_for),
		CASE(a_git_that_fails_leaves_the_commit_that_the_files_tell),
	};

	return cmocka_run_group_tests_name("cli: git state", tests, NULL, NULL);
}
