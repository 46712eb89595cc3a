#include "tar_test.h"

#include <spawn.h>
#include <sys/wait.h>
#include <sys/un.h>
#include <sys/socket.h>

extern char **environ;

/* Pack below the state's directory; the archive, rewound. */
static int packed(void **state, const char *name)
{
	struct err err = {0};
	int fd = temp_fd(state);

	if (tar_pack(unit_path(state, name), fd, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void unpacked(void **state, int fd, const char *to)
{
	struct err err = {0};

	if (tar_unpack(fd, unit_path(state, to), &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_not_packed(void **state, const char *name, enum err_kind kind,
			      const char *message)
{
	CLEANUP(close_fdp) int fd = temp_fd(state);
	struct err err = {0};

	assert_int_equal(tar_pack(unit_path(state, name), fd, &err), -1);
	assert_int_equal(err.kind, kind);
	if (!strstr(err.msg, message))
		fail_msg("'%s' is not in '%s'", message, err.msg);
}

static void a_tree_comes_back_as_it_was(void **state)
{
	struct stat st;

	put_file(state, "src/b.txt", "hello", 0640);
	put_file(state, "src/a/run.sh", "#!/bin/sh\n", 0755);
	put_file(state, "src/a/empty", "", 0600);
	put_file(state, "src/a/\xc3\xa9 x\n", "odd name", 0644);
	put_dir(state, "src/nothing/here");
	CLEANUP(close_fdp) int fd = packed(state, "src");

	unpacked(state, fd, "dst/new");
	assert_content(state, "dst/new/b.txt", "hello");
	assert_content(state, "dst/new/a/run.sh", "#!/bin/sh\n");
	assert_content(state, "dst/new/a/empty", "");
	assert_content(state, "dst/new/a/\xc3\xa9 x\n", "odd name");
	assert_int_equal(stat(unit_path(state, "dst/new/nothing/here"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(stat(unit_path(state, "dst/new/a/run.sh"), &st), 0);
	assert_true(st.st_mode & S_IXUSR);
	assert_int_equal(stat(unit_path(state, "dst/new/b.txt"), &st), 0);
	assert_false(st.st_mode & S_IXUSR);
}

static void a_single_file_is_packed_under_its_own_name(void **state)
{
	put_file(state, "dir/train.py", "print()", 0644);
	assert_int_equal(symlink("train.py", unit_path(state, "dir/link.py")), 0);
	CLEANUP(close_fdp) int fd = packed(state, "dir/train.py");
	CLEANUP(close_fdp) int link_fd = packed(state, "dir/link.py");

	unpacked(state, fd, "dst");
	unpacked(state, link_fd, "dst");
	assert_content(state, "dst/train.py", "print()");
	assert_content(state, "dst/link.py", "print()");
}

static void the_same_tree_gives_the_same_bytes(void **state)
{
	CLEANUP(buf_release) struct buf one;
	CLEANUP(buf_release) struct buf two;

	put_file(state, "x/b", "1", 0644);
	put_file(state, "x/a/c", "2", 0755);
	put_file(state, "y/a/c", "2", 0711);
	put_file(state, "y/b", "1", 0600);
	CLEANUP(close_fdp) int x = packed(state, "x");
	CLEANUP(close_fdp) int y = packed(state, "y");

	buf_init(&one, 1 << 20);
	buf_init(&two, 1 << 20);
	for (int i = 0; i < 2; i++) {
		struct buf *b = i ? &two : &one;
		char *room = buf_reserve(b, 65536);
		ssize_t n = read(i ? y : x, room, 65536);

		assert_true(n > 0);
		buf_commit(b, (size_t)n);
	}
	/* a/ a/c b, a block of content each for the files, two blocks of zeros */
	assert_int_equal(one.n, (3 + 2 + 2) * 512);
	assert_true(str_eq(buf_str(&one), buf_str(&two)));
	assert_true(str_starts(buf_str(&one), STR("a/\0")));
}

/* Names from 1 to 2000 bytes, at every border of the format. */
static void names_of_every_length_survive(void **state)
{
	static const size_t lengths[] = {1,   99,  100, 101, 155, 156, 200, 255,  256, 257,
					 300, 988, 989, 990, 991, 992, 993, 1000, 2000};

	for (size_t i = 0; i < COUNT(lengths); i++) {
		CLEANUP(buf_release) struct buf name;
		CLEANUP(freep) char *src = xasprintf("src%zu", i);
		CLEANUP(freep) char *dst = xasprintf("dst%zu", i);

		buf_init(&name, 5000);
		/* Parts of up to 120 bytes; the file's own part is what remains. */
		while (name.n < lengths[i]) {
			bool slash =
				name.n > 0 && (name.n + 1) % 121 == 0 && name.n + 1 < lengths[i];

			buf_addc(&name, slash ? '/' : (char)('a' + name.n % 26));
		}
		CLEANUP(freep) char *from = xasprintf("%s/%s", unit_path(state, src), name.p);
		CLEANUP(freep) char *to = xasprintf("%s/%s", unit_path(state, dst), name.p);
		char *slash = strrchr(from, '/');
		struct err err = {0};

		*slash = '\0';
		assert_int_equal(file_mkdir_p(from, 0755, &err), 0);
		*slash = '/';
		assert_int_equal(file_write_atomic(from, STR("x"), 0644, false, &err), 0);
		CLEANUP(close_fdp) int fd = packed(state, src);

		unpacked(state, fd, dst);
		assert_true(file_exists(to));
	}
}

/* A random tree below the name; returns how many files. */
static size_t make_tree(struct rng *r, void **state, const char *name, int level)
{
	size_t files = 0, n = (size_t)rng_below(r, 5);

	put_dir(state, name);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(freep)
		char *below = xasprintf("%s/%c%llu", name, (char)('a' + i),
					(unsigned long long)rng_below(r, 1000));

		if (level > 0 && rng_below(r, 3) == 0) {
			files += make_tree(r, state, below, level - 1);
			continue;
		}
		CLEANUP(buf_release) struct buf content;
		size_t size = (size_t)rng_below(r, rng_below(r, 4) ? 1500 : 300000);

		buf_init(&content, 1 << 20);
		for (size_t j = 0; j < size; j++)
			buf_addc(&content, (char)rng_next(r));
		assert_int_equal(file_write_atomic(unit_path(state, below), buf_str(&content),
						   rng_below(r, 2) ? 0755 : 0644, false, NULL),
				 0);
		files++;
	}
	return files;
}

static void assert_same_trees(const char *x, const char *y)
{
	char **names, **others;
	size_t n, n_others;
	struct err err = {0};

	assert_int_equal(file_list_tree(x, 100000, &names, &n, &err), 0);
	assert_int_equal(file_list_tree(y, 100000, &others, &n_others, &err), 0);
	assert_int_equal(n, n_others);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(buf_release) struct buf one;
		CLEANUP(buf_release) struct buf two;
		CLEANUP(freep) char *one_path = path_join(x, names[i]);
		CLEANUP(freep) char *two_path = path_join(y, others[i]);
		struct stat one_st, two_st;

		buf_init(&one, 1 << 20);
		buf_init(&two, 1 << 20);
		assert_string_equal(names[i], others[i]);
		assert_int_equal(file_read(one_path, &one, &err), 0);
		assert_int_equal(file_read(two_path, &two, &err), 0);
		assert_true(str_eq(buf_str(&one), buf_str(&two)));
		assert_int_equal(stat(one_path, &one_st), 0);
		assert_int_equal(stat(two_path, &two_st), 0);
		assert_int_equal(one_st.st_mode & S_IXUSR, two_st.st_mode & S_IXUSR);
	}
	file_list_free(names, n);
	file_list_free(others, n_others);
}

static void random_trees_survive_the_round_trip(void **state)
{
	struct rng r;
	size_t files = 0;

	seed_rng(&r);
	for (int i = 0; i < 40; i++) {
		CLEANUP(freep) char *src = xasprintf("tree%d", i);
		CLEANUP(freep) char *dst = xasprintf("copy%d", i);

		files += make_tree(&r, state, src, 3);
		CLEANUP(close_fdp) int fd = packed(state, src);

		unpacked(state, fd, dst);
		assert_same_trees(unit_path(state, src), unit_path(state, dst));
	}
	assert_true(files > 0);
}

/* Links. */

static void a_link_to_a_file_inside_is_packed_as_that_file(void **state)
{
	struct stat st;

	put_file(state, "src/real", "content", 0755);
	put_dir(state, "src/sub");
	assert_int_equal(symlink("../real", unit_path(state, "src/sub/near")), 0);
	assert_int_equal(symlink(unit_path(state, "src/real"), unit_path(state, "src/absolute")),
			 0);
	assert_int_equal(symlink("sub/near", unit_path(state, "src/twice")), 0);
	CLEANUP(close_fdp) int fd = packed(state, "src");

	unpacked(state, fd, "dst");
	assert_content(state, "dst/sub/near", "content");
	assert_content(state, "dst/absolute", "content");
	assert_content(state, "dst/twice", "content");
	assert_int_equal(lstat(unit_path(state, "dst/twice"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void other_links_are_refused_by_name(void **state)
{
	put_file(state, "outside", "x", 0644);
	put_file(state, "srcx/file", "x", 0644);
	put_dir(state, "out/src");
	assert_int_equal(symlink("../../outside", unit_path(state, "out/src/leak")), 0);
	assert_not_packed(state, "out/src", ERR_INVALID,
			  "'leak' is a link to something else than a file of this directory");
	put_dir(state, "dir/src/d");
	assert_int_equal(symlink("d", unit_path(state, "dir/src/loop")), 0);
	assert_not_packed(state, "dir/src", ERR_INVALID,
			  "'loop' is a link to something else than a file of this directory");
	put_dir(state, "none/src");
	assert_int_equal(symlink("nowhere", unit_path(state, "none/src/dead")), 0);
	assert_not_packed(state, "none/src", ERR_INVALID, "'dead' is a link that leads nowhere");
	/* "src" is not inside "srcx", whatever their first letters. */
	put_dir(state, "src");
	assert_int_equal(symlink("../srcx/file", unit_path(state, "src/near")), 0);
	assert_not_packed(state, "src", ERR_INVALID,
			  "'near' is a link to something else than a file of this directory");
}

static void what_is_no_file_is_refused_by_name(void **state)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX};
	CLEANUP(close_fdp) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	put_dir(state, "pipe");
	assert_int_equal(mkfifo(unit_path(state, "pipe/p"), 0600), 0);
	assert_not_packed(state, "pipe", ERR_INVALID,
			  "'p' is a device, socket or pipe: only files and directories are packed");
	assert_not_packed(state, "pipe/p", ERR_INVALID, "'p' is not a regular file");
	put_dir(state, "socket");
	snprintf(where.sun_path, sizeof(where.sun_path), "%s", unit_path(state, "socket/s"));
	assert_int_equal(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	assert_not_packed(state, "socket", ERR_INVALID, "'s' is a device, socket or pipe");
}

/* Errors. */

static void what_is_not_there_is_not_found(void **state)
{
	assert_not_packed(state, "nothing", ERR_NOT_FOUND, "open '");
}

static void an_output_that_fails_is_an_error(void **state)
{
	CLEANUP(close_fdp) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct err err = {0};
	CLEANUP(buf_release) struct buf large;

	assert_true(full >= 0);
	put_file(state, "src/a", "x", 0644);
	assert_int_equal(tar_pack(unit_path(state, "src"), full, &err), -1);
	assert_int_equal(err.code, ENOSPC);
	/* The same in the middle of a file, and of a header. */
	buf_init(&large, 1 << 20);
	while (large.n < 400000)
		buf_addz(&large, "0123456789");
	put_file(state, "src/large", large.p, 0644);
	assert_int_equal(tar_pack(unit_path(state, "src"), full, &err), -1);
	for (int i = 0; i < 300; i++) {
		CLEANUP(freep) char *name = xasprintf("many/%d", i);

		put_file(state, name, "", 0644);
	}
	assert_int_equal(tar_pack(unit_path(state, "many"), full, &err), -1);
	assert_int_equal(err.code, ENOSPC);
	/* Of a directory's header, and of a long name's. */
	for (int i = 0; i < 300; i++) {
		CLEANUP(freep) char *name = xasprintf("dirs/%d", i);

		put_dir(state, name);
	}
	err = (struct err){0};
	assert_int_equal(tar_pack(unit_path(state, "dirs"), full, &err), -1);
	assert_int_equal(err.code, ENOSPC);
	for (int i = 0; i < 90; i++) {
		CLEANUP(freep) char *name = xasprintf("long/%0120d", i);

		put_file(state, name, "", 0644);
	}
	err = (struct err){0};
	assert_int_equal(tar_pack(unit_path(state, "long"), full, &err), -1);
	assert_int_equal(err.code, ENOSPC);
}

static void directories_too_deep_are_refused(void **state)
{
	CLEANUP(buf_release) struct buf path;

	buf_init(&path, 1000);
	buf_addz(&path, "deep");
	for (int i = 0; i < 130; i++)
		buf_addz(&path, "/d");
	put_dir(state, buf_str(&path).p);
	assert_not_packed(state, "deep", ERR_CAPACITY,
			  "more than 128 directories within each other");
}

static void a_name_too_long_is_refused(void **state)
{
	CLEANUP(close_fdp) int fd = -1;
	char part[251];

	/* Longer than any path that one call takes, so made step by step. */
	put_dir(state, "deep");
	fd = open(unit_path(state, "deep"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	memset(part, 'n', sizeof(part) - 1);
	part[sizeof(part) - 1] = '\0';
	for (int i = 0; i < 17; i++) {
		assert_int_equal(mkdirat(fd, part, 0755), 0);
		int below = openat(fd, part, O_PATH | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		fd = below;
	}
	assert_not_packed(state, "deep", ERR_CAPACITY, "name longer than 4095 bytes");
}

static void a_destination_that_cannot_be_made_is_an_error(void **state)
{
	struct err err = {0};

	put_file(state, "file", "x", 0644);
	put_file(state, "src/a", "x", 0644);
	CLEANUP(close_fdp) int fd = packed(state, "src");

	assert_int_equal(tar_unpack(fd, unit_path(state, "file/below"), &err), -1);
	assert_int_equal(tar_unpack(fd, unit_path(state, "file"), &err), -1);
	assert_int_equal(tar_unpack(-1, unit_path(state, "dst"), &err), -1);
	assert_int_equal(err.code, EBADF);
}

/* Other people's tar. */

static bool run_tar(const char *const *argv)
{
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, "tar", NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		return false;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return true;
}

static void make_odd_tree(void **state)
{
	CLEANUP(buf_release) struct buf name;

	buf_init(&name, 2000);
	buf_addz(&name, "src/");
	for (int i = 0; i < 5; i++) {
		add_nested(&name, 60, "n", "/", "");
		put_dir(state, name.p);
	}
	add_nested(&name, 120, "f", "", "");
	put_file(state, name.p, "deep", 0644);
	put_file(state, "src/x", "1", 0755);
	put_file(state, "src/\xc3\xa9", "2", 0644);
	put_dir(state, "src/empty");
}

static void tar_reads_what_we_pack(void **state)
{
	struct err err = {0};

	make_odd_tree(state);
	CLEANUP(close_fdp)
	int fd = open(unit_path(state, "a.tar"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(tar_pack(unit_path(state, "src"), fd, &err), 0);
	put_dir(state, "dst");
	if (!run_tar((const char *[]){"tar", "-xf", unit_path(state, "a.tar"), "-C",
				      unit_path(state, "dst"), NULL})) {
		print_message("# skipped: there is no tar here\n");
		skip();
	}
	assert_same_trees(unit_path(state, "src"), unit_path(state, "dst"));
}

static void we_read_what_tar_packs(void **state)
{
	static const char *const formats[] = {"--format=gnu", "--format=pax", "--format=posix"};

	make_odd_tree(state);
	for (size_t i = 0; i < COUNT(formats); i++) {
		CLEANUP(freep) char *dst = xasprintf("dst%zu", i);
		const char *archive = unit_path(state, "b.tar");

		if (!run_tar((const char *[]){"tar", "-cf", archive, formats[i], "-C",
					      unit_path(state, "src"), ".", NULL})) {
			print_message("# skipped: there is no tar here\n");
			skip();
		}
		CLEANUP(close_fdp) int fd = open(archive, O_RDONLY | O_CLOEXEC);

		unpacked(state, fd, dst);
		assert_same_trees(unit_path(state, "src"), unit_path(state, dst));
	}
}

static void chosen_files_are_packed_without_the_rest(void **state)
{
	char a[] = "deep/er/a", b[] = "b", link[] = "link", none[] = "none";
	char *const good[] = {a, b};
	char *const bad[] = {link, none};
	CLEANUP(close_fdp) int fd = open(unit_path(state, "x.tar"), O_RDWR | O_CREAT, 0600);

	assert_int_equal(file_mkdir_p(unit_path(state, "src/deep/er"), 0755, NULL), 0);
	assert_int_equal(file_write(unit_path(state, "src/deep/er/a"), STR("a"), 0644, NULL), 0);
	assert_int_equal(file_write(unit_path(state, "src/b"), STR("b"), 0644, NULL), 0);
	assert_int_equal(file_write(unit_path(state, "src/c"), STR("c"), 0644, NULL), 0);
	assert_int_equal(symlink("/etc/passwd", unit_path(state, "src/link")), 0);
	assert_int_equal(tar_pack_files(unit_path(state, "src"), good, 2, fd, NULL), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	unpacked(state, fd, "dst");
	assert_true(file_exists(unit_path(state, "dst/deep/er/a")));
	assert_true(file_exists(unit_path(state, "dst/b")));
	assert_false(file_exists(unit_path(state, "dst/c")));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(tar_pack_files(unit_path(state, "src"), &bad[i], 1, fd, NULL), -1);
}

int main(void)
{
#define rule(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		rule(a_tree_comes_back_as_it_was),
		rule(a_single_file_is_packed_under_its_own_name),
		rule(the_same_tree_gives_the_same_bytes),
		rule(names_of_every_length_survive),
		rule(random_trees_survive_the_round_trip),
		rule(a_link_to_a_file_inside_is_packed_as_that_file),
		rule(other_links_are_refused_by_name),
		rule(what_is_no_file_is_refused_by_name),
		rule(what_is_not_there_is_not_found),
		rule(an_output_that_fails_is_an_error),
		rule(directories_too_deep_are_refused),
		rule(a_name_too_long_is_refused),
		rule(a_destination_that_cannot_be_made_is_an_error),
		rule(chosen_files_are_packed_without_the_rest),
		rule(tar_reads_what_we_pack),
		rule(we_read_what_tar_packs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
