/* Malicious archives, and damaged ones. */
#include "tar_test.h"

#include <pthread.h>
#include <signal.h>

#include "fmt/tar_block.h"

/* An archive in memory, block by block. */
struct archive {
	struct buf bytes;
};

static void archive_release(struct archive *a)
{
	buf_release(&a->bytes);
}

static struct archive archive_new(void)
{
	struct archive a;

	buf_init(&a.bytes, 1 << 24);
	return a;
}

static struct tar_block block_of(const char *name, char type, uint64_t size)
{
	struct tar_block b = {.type = type};

	memcpy(b.name, name, strnlen(name, sizeof(b.name)));
	memcpy(b.magic, "ustar\00000", 8);
	tar_write_number(b.mode, sizeof(b.mode), 0644);
	tar_write_number(b.size, sizeof(b.size), size);
	return b;
}

static void sign(struct tar_block *b)
{
	tar_write_number(b->checksum, sizeof(b->checksum) - 1, tar_checksum(b));
	b->checksum[7] = ' ';
}

static void add_block(struct archive *a, struct tar_block b)
{
	sign(&b);
	buf_add(&a->bytes, &b, sizeof(b));
}

static void add_content(struct archive *a, struct str content)
{
	static const char zeros[TAR_BLOCK];

	buf_addstr(&a->bytes, content);
	buf_add(&a->bytes, zeros, tar_padding(content.n));
}

static void add_entry(struct archive *a, const char *name, char type, const char *content)
{
	add_block(a, block_of(name, type, strlen(content)));
	add_content(a, str_from(content));
}

static void add_end(struct archive *a)
{
	static const char zeros[2 * TAR_BLOCK];

	buf_add(&a->bytes, zeros, sizeof(zeros));
}

/* "LEN key=value\n" for values that keep LEN at two digits. */
static void add_pax(struct archive *a, char type, const char *key, const char *value)
{
	CLEANUP(freep)
	char *record = xasprintf("%zu %s=%s\n", strlen(key) + strlen(value) + 5, key, value);

	assert_int_equal(strtoul(record, NULL, 10), strlen(record));
	add_entry(a, "pax", type, record);
}

static int unpack(void **state, const struct archive *a, const char *to, struct err *err)
{
	CLEANUP(close_fdp) int fd = temp_fd(state);

	assert_int_equal(file_write_all(fd, buf_str(&a->bytes).p, a->bytes.n, NULL), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return tar_unpack(fd, unit_path(state, to), err);
}

static void assert_refused_tar(void **state, const struct archive *a, enum err_kind kind,
			       const char *why)
{
	struct err err = {0};

	assert_int_equal(unpack(state, a, "box/dst", &err), -1);
	assert_int_equal(err.kind, kind);
	if (!strstr(err.msg, why))
		fail_msg("'%s' is not in '%s'", why, err.msg);
	/* Whatever it was, nothing is beside the destination. */
	char **names;
	size_t n;

	assert_int_equal(file_list_tree(unit_path(state, "box"), 1000, &names, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(str_starts(str_from(names[i]), STR("dst/")));
	file_list_free(names, n);
}

/* Names. */

static void names_that_leave_the_destination_are_refused(void **state)
{
	static const char *const names[] = {
		"../x", "a/../../x", "a/..",  "..", "/x", "/",	    "a//x",
		"//x",	"./../x",    "a/./x", "x/", "",	  "././/x",
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		CLEANUP(archive_release) struct archive a = archive_new();

		add_entry(&a, names[i], '0', "evil");
		add_end(&a);
		assert_refused_tar(state, &a, ERR_INVALID, "entry 1 '");
	}
	for (size_t i = 0; i < 8; i++) {
		CLEANUP(archive_release) struct archive a = archive_new();

		add_entry(&a, names[i], '5', "");
		add_end(&a);
		assert_refused_tar(state, &a, ERR_INVALID, "entry 1 '");
	}
}

static void a_prefix_cannot_hide_the_way_out(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	struct tar_block b = block_of("x", '0', 0);

	memcpy(b.prefix, "..", 2);
	add_block(&a, b);
	add_end(&a);
	assert_refused_tar(state, &a, ERR_INVALID,
			   "entry 1 '../x': a name that is empty, absolute or has '..' in it");
}

static void a_pax_path_cannot_hide_the_way_out(void **state)
{
	static const char *const paths[] = {"../../box/evil", "/tmp/evil", "a/../../evil"};

	for (size_t i = 0; i < COUNT(paths); i++) {
		CLEANUP(archive_release) struct archive a = archive_new();

		add_pax(&a, 'x', "path", paths[i]);
		add_entry(&a, "harmless", '0', "evil");
		add_end(&a);
		assert_refused_tar(state, &a, ERR_INVALID,
				   "a name that is empty, absolute or has '..' in it");
	}
}

static void a_long_name_cannot_hide_the_way_out(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();

	add_entry(&a, "././@LongLink", 'L', "../evil");
	add_entry(&a, "harmless", '0', "evil");
	add_end(&a);
	assert_refused_tar(state, &a, ERR_INVALID,
			   "'../evil': a name that is empty, absolute or has '..' in it");
}

static void names_with_a_nul_or_too_long_are_refused(void **state)
{
	CLEANUP(archive_release) struct archive nul = archive_new();
	CLEANUP(archive_release) struct archive long_name = archive_new();
	CLEANUP(archive_release) struct archive pax_nul = archive_new();
	CLEANUP(archive_release) struct archive empty = archive_new();
	CLEANUP(buf_release) struct buf text;

	add_block(&nul, block_of("l", 'L', 4));
	add_content(&nul, STR("a\0b\0"));
	assert_refused_tar(state, &nul, ERR_INVALID,
			   "a name that is empty, too long or holds a NUL");
	buf_init(&text, 10000);
	add_nested(&text, TAR_MAX_PATH + 1, "a", "", "");
	add_entry(&long_name, "l", 'L', text.p);
	assert_refused_tar(state, &long_name, ERR_INVALID,
			   "a name that is empty, too long or holds a NUL");
	add_block(&pax_nul, block_of("pax", 'x', 13));
	add_content(&pax_nul, STR("13 path=a\0bc\n"));
	assert_refused_tar(state, &pax_nul, ERR_INVALID,
			   "a name that is empty, too long or holds a NUL");
	add_entry(&empty, "l", 'L', "");
	assert_refused_tar(state, &empty, ERR_INVALID,
			   "a name that is empty, too long or holds a NUL");
	CLEANUP(archive_release) struct archive part = archive_new();

	buf_reset(&text);
	add_nested(&text, 256, "a", "/b", "");
	add_entry(&part, "l", 'L', text.p);
	add_entry(&part, "x", '0', "");
	assert_refused_tar(state, &part, ERR_INVALID, "a directory's name of more than 255 bytes");
	CLEANUP(archive_release) struct archive last = archive_new();

	text.n = 256;
	text.p[256] = '\0';
	add_entry(&last, "l", 'L', text.p);
	add_entry(&last, "x", '0', "");
	assert_refused_tar(state, &last, ERR_INVALID, "create entry 2 'aaaa");
}

static void directories_too_deep_are_refused(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	CLEANUP(buf_release) struct buf name;

	buf_init(&name, 10000);
	add_nested(&name, TAR_MAX_LEVELS, "d/", "x", "");
	add_entry(&a, "l", 'L', name.p);
	add_entry(&a, "x", '0', "");
	add_end(&a);
	assert_refused_tar(state, &a, ERR_INVALID, "more than 128 directories within each other");
}

static void terminal_escapes_in_names_stay_out_of_messages(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();

	add_entry(&a, "\x1b[2J", '2', "");
	assert_refused_tar(state, &a, ERR_INVALID, "entry 1 '\\x1b[2J': a symbolic link");
}

/* Kinds. */

static void only_files_and_directories_are_made(void **state)
{
	static const struct {
		char type;
		const char *why;
	} kinds[] = {
		{'1', "a hard link: links are not unpacked"},
		{'2', "a symbolic link: links are not unpacked"},
		{'3', "a character device: devices are not unpacked"},
		{'4', "a block device: devices are not unpacked"},
		{'6', "a pipe: pipes are not unpacked"},
		{'7', "an entry of an unknown kind"},
		{'K', "a link with a long name: links are not unpacked"},
		{'S', "a sparse file: pack it without holes"},
		{'D', "an entry of an unknown kind"},
		{'\xff', "an entry of an unknown kind"},
	};

	for (size_t i = 0; i < COUNT(kinds); i++) {
		CLEANUP(archive_release) struct archive a = archive_new();
		struct tar_block b = block_of("x", kinds[i].type, 0);

		memcpy(b.link, "/etc/passwd", 11);
		add_block(&a, b);
		add_end(&a);
		assert_refused_tar(state, &a, ERR_INVALID, kinds[i].why);
		assert_false(file_exists(unit_path(state, "box/dst/x")));
	}
}

static void a_link_in_the_archive_cannot_redirect_a_later_file(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	struct tar_block b = block_of("way", '2', 0);

	memcpy(b.link, "..", 2);
	add_block(&a, b);
	add_entry(&a, "way/evil", '0', "evil");
	add_end(&a);
	assert_refused_tar(state, &a, ERR_INVALID, "entry 1 'way': a symbolic link");
}

static void a_link_that_is_there_already_is_not_followed(void **state)
{
	CLEANUP(archive_release) struct archive below = archive_new();
	CLEANUP(archive_release) struct archive over = archive_new();
	CLEANUP(archive_release) struct archive dir = archive_new();

	put_dir(state, "box/dst");
	assert_int_equal(symlink("..", unit_path(state, "box/dst/way")), 0);
	assert_int_equal(symlink("../evil", unit_path(state, "box/dst/file")), 0);
	add_entry(&below, "way/evil", '0', "evil");
	add_end(&below);
	assert_refused_tar(state, &below, ERR_INVALID,
			   "something that is not a directory is in its way");
	add_entry(&over, "file", '0', "evil");
	add_end(&over);
	assert_refused_tar(state, &over, ERR_CONFLICT,
			   "entry 1 'file': there is one of that name already");
	add_entry(&dir, "way", '5', "");
	add_end(&dir);
	assert_refused_tar(state, &dir, ERR_INVALID,
			   "something that is not a directory is in its way");
}

static void a_name_cannot_come_twice(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	CLEANUP(archive_release) struct archive mixed = archive_new();
	CLEANUP(archive_release) struct archive dirs = archive_new();
	struct err err = {0};

	add_entry(&a, "x", '0', "one");
	add_entry(&a, "./x", '0', "two");
	add_end(&a);
	assert_refused_tar(state, &a, ERR_CONFLICT,
			   "entry 2 'x': there is one of that name already");
	assert_content(state, "box/dst/x", "one");
	add_entry(&mixed, "y", '0', "one");
	add_entry(&mixed, "y/z", '0', "two");
	add_end(&mixed);
	assert_refused_tar(state, &mixed, ERR_INVALID,
			   "entry 2 'y/z': something that is not a directory is in its way");
	/* A directory may: it is there, and that is all it says. */
	add_entry(&dirs, "./", '5', "");
	add_entry(&dirs, "d/", '5', "");
	add_entry(&dirs, "d", '5', "");
	add_entry(&dirs, "d/f", '0', "x");
	add_entry(&dirs, "e/", '\0', "");
	add_end(&dirs);
	assert_int_equal(unpack(state, &dirs, "box/dst", &err), 0);
	assert_content(state, "box/dst/d/f", "x");
	assert_true(file_exists(unit_path(state, "box/dst/e")));
}

static void modes_lose_what_is_dangerous(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	struct tar_block b = block_of("x", '0', 0);
	struct err err = {0};
	struct stat st;

	tar_write_number(b.mode, sizeof(b.mode), 07777);
	add_block(&a, b);
	add_end(&a);
	assert_int_equal(unpack(state, &a, "dst", &err), 0);
	assert_int_equal(stat(unit_path(state, "dst/x"), &st), 0);
	assert_int_equal(st.st_mode & 07000, 0);
	assert_true(st.st_mode & S_IXUSR);
	assert_int_equal(st.st_uid, geteuid());
}

/* Sizes. */

static void huge_sizes_are_refused_before_anything_is_read(void **state)
{
	CLEANUP(archive_release) struct archive octal = archive_new();
	CLEANUP(archive_release) struct archive base256 = archive_new();
	CLEANUP(archive_release) struct archive over = archive_new();
	CLEANUP(archive_release) struct archive pax = archive_new();
	struct tar_block b = block_of("x", '0', 0);

	/* 8 GiB is allowed by the limit, but there is nothing behind it. */
	memcpy(b.size, "77777777777", 11);
	add_block(&octal, b);
	assert_refused_tar(state, &octal, ERR_INVALID,
			   "the archive ends after 1 headers, too early");
	memset(b.size, 0, sizeof(b.size));
	b.size[0] = (char)0x80;
	b.size[5] = 1; /* 2^48 */
	memcpy(b.name, "y", 1);
	add_block(&base256, b);
	assert_refused_tar(state, &base256, ERR_CAPACITY,
			   "entry 1 'y': more than 68719476736 bytes in all");
	memset(b.size + 1, 0xff, sizeof(b.size) - 1);
	add_block(&over, b);
	assert_refused_tar(state, &over, ERR_INVALID, "a size that is not a number");
	add_pax(&pax, 'x', "size", "18446744073709551615");
	add_entry(&pax, "z", '0', "");
	assert_refused_tar(state, &pax, ERR_CAPACITY,
			   "entry 2 'z': more than 68719476736 bytes in all");
}

static void sizes_of_many_entries_add_up(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	struct tar_block b = block_of("y", '0', 0);

	add_entry(&a, "x", '0', "12345");
	b.size[0] = (char)0x80;
	memset(b.size + 1, 0, sizeof(b.size) - 1);
	b.size[7] = 0x10; /* 64 GiB, the whole limit */
	add_block(&a, b);
	assert_refused_tar(state, &a, ERR_CAPACITY,
			   "entry 2 'y': more than 68719476736 bytes in all");
}

static void numbers_that_are_none_are_refused(void **state)
{
	CLEANUP(archive_release) struct archive size = archive_new();
	CLEANUP(archive_release) struct archive negative = archive_new();
	CLEANUP(archive_release) struct archive mode = archive_new();
	CLEANUP(archive_release) struct archive empty = archive_new();
	struct tar_block b = block_of("x", '0', 0);

	memcpy(b.size, "0000009z000", 11);
	add_block(&size, b);
	assert_refused_tar(state, &size, ERR_INVALID, "a size that is not a number");
	memset(b.size, 0xff, sizeof(b.size)); /* -1 for GNU */
	add_block(&negative, b);
	assert_refused_tar(state, &negative, ERR_INVALID, "a size that is not a number");
	memset(b.size, ' ', sizeof(b.size));
	add_block(&empty, b);
	assert_refused_tar(state, &empty, ERR_INVALID, "a size that is not a number");
	b = block_of("x", '0', 0);
	memcpy(b.mode, "rwxr-xr", 7);
	add_block(&mode, b);
	assert_refused_tar(state, &mode, ERR_INVALID, "a mode that is not a number");
}

static void a_directory_has_no_content(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();

	add_entry(&a, "d/", '5', "content");
	add_end(&a);
	assert_refused_tar(state, &a, ERR_INVALID, "a directory entry that has bytes of its own");
}

static void a_pax_size_wins_over_the_header(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	struct err err = {0};

	add_pax(&a, 'x', "size", "0000000005");
	add_block(&a, block_of("x", '0', 0));
	add_content(&a, STR("12345"));
	add_entry(&a, "y", '0', "67");
	add_end(&a);
	assert_int_equal(unpack(state, &a, "dst", &err), 0);
	assert_content(state, "dst/x", "12345");
	assert_content(state, "dst/y", "67");
}

/* Writes the same header for as long as somebody reads. */
static void *write_many(void *arg)
{
	int fd = *(int *)arg;
	struct tar_block blocks[100];
	struct tar_block b = block_of("", 'g', 0); /* the cheapest header there is */

	sign(&b);
	for (size_t i = 0; i < COUNT(blocks); i++)
		blocks[i] = b;
	for (int i = 0; i < 10000; i++) { /* a million entries in all */
		if (file_write_all(fd, blocks, sizeof(blocks), NULL) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static void a_million_entries_are_refused(void **state)
{
	struct err err = {0};
	pthread_t writer;
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_many, &fds[1]), 0);
	assert_int_equal(tar_unpack(fds[0], unit_path(state, "dst"), &err), -1);
	close(fds[0]);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "more than 200000 entries"));
}

/* Damage. */

static void a_wrong_checksum_is_refused(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	CLEANUP(archive_release) struct archive garbage = archive_new();

	add_entry(&a, "x", '0', "");
	add_end(&a);
	a.bytes.p[0] = 'y';
	assert_refused_tar(state, &a, ERR_INVALID,
			   "header 1: the checksum is wrong: this is not a tar archive");
	for (int i = 0; i < 100; i++)
		buf_addz(&garbage.bytes, "this is not a tar archive at all. ");
	assert_refused_tar(state, &garbage, ERR_INVALID,
			   "header 1: the checksum is wrong: this is not a tar archive");
}

static void another_format_is_refused(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();
	struct tar_block b = block_of("x", '0', 0);

	memset(b.magic, 0, sizeof(b.magic));
	add_block(&a, b);
	assert_refused_tar(state, &a, ERR_INVALID, "not of the ustar format");
}

static void an_archive_that_ends_early_is_refused_wherever_it_ends(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();

	add_pax(&a, 'x', "path", "a/long/name");
	add_entry(&a, "x", '0', "content");
	add_entry(&a, "././@LongLink", 'L', "b");
	add_entry(&a, "x", '0', "more");
	add_end(&a);
	for (size_t n = 0; n < a.bytes.n; n += 64) {
		CLEANUP(archive_release) struct archive cut = archive_new();
		CLEANUP(freep) char *to = xasprintf("dst%zu", n);
		struct err err = {0};

		buf_add(&cut.bytes, a.bytes.p, n);
		assert_int_equal(unpack(state, &cut, to, &err), -1);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_non_null(strstr(err.msg, "too early"));
	}
	struct err err = {0};

	assert_int_equal(unpack(state, &a, "dst", &err), 0);
	assert_content(state, "dst/a/long/name", "content");
	assert_content(state, "dst/b", "more");
}

static void an_odd_end_is_refused(void **state)
{
	CLEANUP(archive_release) struct archive lone = archive_new();
	CLEANUP(archive_release) struct archive dangling = archive_new();
	static const char zeros[TAR_BLOCK];

	buf_add(&lone.bytes, zeros, sizeof(zeros));
	add_entry(&lone, "x", '0', "");
	assert_refused_tar(state, &lone, ERR_INVALID, "the archive does not end as it should");
	add_pax(&dangling, 'x', "path", "a/long/name");
	add_end(&dangling);
	assert_refused_tar(state, &dangling, ERR_INVALID, "the archive does not end as it should");
}

static void broken_pax_records_are_refused(void **state)
{
	static const struct {
		const char *record, *why;
	} cases[] = {
		{"x", "a pax record that is not well formed"},
		{"9 path=a", "a pax record that is not well formed"},
		{"99 path=a\n", "a pax record that is not well formed"},
		{"5 path=a\n", "a pax record that is not well formed"},
		{"-1 path=a\n", "a pax record that is not well formed"},
		{"9 path-a\n", "a pax record that is not well formed"},
		{"4 a\n", "a pax record that is not well formed"},
		{"18446744073709551615 path=a\n", "a pax record that is not well formed"},
		{"10 path=a\n10 path=", "a pax record that is not well formed"},
		{"10 size=x\n", "a pax size that is not a number"},
		{"11 size=-1\n", "a pax size that is not a number"},
		{"22 GNU.sparse.major=1\n", "a sparse file: pack it without holes"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(archive_release) struct archive a = archive_new();

		add_entry(&a, "pax", 'x', cases[i].record);
		add_entry(&a, "x", '0', "");
		add_end(&a);
		assert_refused_tar(state, &a, ERR_INVALID, cases[i].why);
	}
}

static void a_global_header_is_only_a_comment(void **state)
{
	CLEANUP(archive_release) struct archive good = archive_new();
	CLEANUP(archive_release) struct archive bad = archive_new();
	struct err err = {0};

	add_pax(&good, 'g', "comment", "0123456789");
	add_entry(&good, "x", '0', "1");
	add_end(&good);
	assert_int_equal(unpack(state, &good, "dst", &err), 0);
	assert_content(state, "dst/x", "1");
	add_pax(&bad, 'g', "path", "every/where");
	assert_refused_tar(state, &bad, ERR_INVALID, "a global pax header with a name or size");
}

static void an_endless_extension_header_is_refused(void **state)
{
	CLEANUP(archive_release) struct archive a = archive_new();

	add_block(&a, block_of("pax", 'x', 1 << 30));
	assert_refused_tar(state, &a, ERR_INVALID, "an extension header of more than 64 KiB");
}

static void damaged_archives_never_leave_the_destination(void **state)
{
	struct rng r;

	seed_rng(&r);
	for (int i = 0; i < 200; i++) {
		CLEANUP(archive_release) struct archive a = archive_new();
		CLEANUP(freep) char *box = xasprintf("box%d", i);
		CLEANUP(freep) char *to = xasprintf("box%d/dst", i);
		struct err err = {0};

		add_entry(&a, "d/", '5', "");
		add_pax(&a, 'x', "path", "d/long/name");
		add_entry(&a, "x", '0', "content");
		add_entry(&a, "l", 'L', "d/other");
		add_entry(&a, "y", '0', "more");
		add_end(&a);
		for (int j = 0; j < 3; j++) {
			size_t at = (size_t)rng_below(&r, a.bytes.n) & ~(size_t)(TAR_BLOCK - 1);
			struct tar_block *b = (struct tar_block *)(void *)(a.bytes.p + at);

			((char *)b)[rng_below(&r, TAR_BLOCK)] = "/.\0x7\xff"[rng_below(&r, 6)];
			if (memcmp(b->magic, "ustar", 5) == 0)
				sign(b);
		}
		put_dir(state, box);
		unpack(state, &a, to, &err);
		char **names;
		size_t n;

		assert_int_equal(file_list_tree(unit_path(state, box), 1000, &names, &n, NULL), 0);
		for (size_t j = 0; j < n; j++)
			assert_true(str_starts(str_from(names[j]), STR("dst/")));
		file_list_free(names, n);
	}
}

int main(void)
{
#define rule(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		rule(names_that_leave_the_destination_are_refused),
		rule(a_prefix_cannot_hide_the_way_out),
		rule(a_pax_path_cannot_hide_the_way_out),
		rule(a_long_name_cannot_hide_the_way_out),
		rule(names_with_a_nul_or_too_long_are_refused),
		rule(directories_too_deep_are_refused),
		rule(terminal_escapes_in_names_stay_out_of_messages),
		rule(only_files_and_directories_are_made),
		rule(a_link_in_the_archive_cannot_redirect_a_later_file),
		rule(a_link_that_is_there_already_is_not_followed),
		rule(a_name_cannot_come_twice),
		rule(modes_lose_what_is_dangerous),
		rule(huge_sizes_are_refused_before_anything_is_read),
		rule(sizes_of_many_entries_add_up),
		rule(numbers_that_are_none_are_refused),
		rule(a_directory_has_no_content),
		rule(a_pax_size_wins_over_the_header),
		rule(a_million_entries_are_refused),
		rule(a_wrong_checksum_is_refused),
		rule(another_format_is_refused),
		rule(an_archive_that_ends_early_is_refused_wherever_it_ends),
		rule(an_odd_end_is_refused),
		rule(broken_pax_records_are_refused),
		rule(a_global_header_is_only_a_comment),
		rule(an_endless_extension_header_is_refused),
		rule(damaged_archives_never_leave_the_destination),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
