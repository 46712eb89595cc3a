#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "small_disk.h"
#include "store/logfile.h"

static struct logfile *open_log(const char *dir, const char *name)
{
	struct logfile *lf = NULL;
	struct err err;

	assert_ok(logfile_open(dir, name, &lf, &err), &err);
	return lf;
}

static void append(struct logfile *lf, uint64_t offset, const char *text)
{
	struct err err;

	assert_ok(logfile_append(lf, offset, str_from(text), &err), &err);
}

static void assert_content(const char *path, struct str content)
{
	struct buf b;

	buf_init(&b, 1 << 24);
	assert_int_equal(file_read(path, &b, NULL), 0);
	assert_int_equal(b.n, content.n);
	assert_true(str_eq(buf_str(&b), content));
	buf_release(&b);
}

/* Rule: bytes are appended at the end, each once. */

static void bytes_are_stored_as_they_are(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct stat sb;
	struct err err;

	append(lf, 0, "abc");
	assert_ok(logfile_append(lf, 3, STR("\0\xff\n\x1b["), &err), &err);
	assert_int_equal(logfile_size(lf), 8);
	assert_null(logfile_close(lf));
	assert_content(unit_path(state, "n.log"), STR("abc\0\xff\n\x1b["));
	assert_int_equal(stat(unit_path(state, "n.log"), &sb), 0);
	assert_int_equal(sb.st_mode & 0777, 0600);
	assert_null(logfile_close(NULL));
}

static void what_is_stored_already_is_skipped(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");

	append(lf, 0, "abcdef");
	append(lf, 0, "abcdef");
	append(lf, 2, "cd");
	append(lf, 6, "");
	append(lf, 4, "efgh");
	append(lf, 0, "abcdefghi");
	append(lf, 0, "");
	assert_int_equal(logfile_size(lf), 9);
	assert_content(unit_path(state, "n.log"), STR("abcdefghi"));
	logfile_close(lf);
}

static void a_hole_is_refused(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct err err;

	append(lf, 0, "abc");
	assert_fails(logfile_append(lf, 4, STR("x"), &err), &err, ERR_PROTOCOL,
		     "log 'n.log': bytes for offset 4, but 3 are stored");
	assert_fails(logfile_append(lf, 4, STR(""), &err), &err, ERR_PROTOCOL, "offset 4");
	assert_fails(logfile_append(lf, UINT64_MAX, STR("x"), &err), &err, ERR_PROTOCOL, "offset");
	assert_int_equal(logfile_size(lf), 3);
	append(lf, 3, "d");
	assert_content(unit_path(state, "n.log"), STR("abcd"));
	logfile_close(lf);
}

static void a_log_goes_on_where_it_ended(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");

	append(lf, 0, "one\n");
	logfile_close(lf);
	lf = open_log(*state, "n.log");
	assert_int_equal(logfile_size(lf), 4);
	append(lf, 4, "two\n");
	logfile_close(lf);
	assert_content(unit_path(state, "n.log"), STR("one\ntwo\n"));
}

/* Random pieces, repeated and overlapping, give the stream they were cut from. */
static void any_resending_gives_the_stream_exactly_once(void **state)
{
	enum { SIZE = 200000 };
	char *stream = xmalloc(SIZE);
	struct rng rng;
	struct err err;

	rng_seed(&rng, fixture_seed("resending"));
	for (size_t i = 0; i < SIZE; i++)
		stream[i] = (char)rng_next(&rng);
	struct logfile *lf = open_log(*state, "n.log");
	while (logfile_size(lf) < SIZE) {
		uint64_t from = rng_below(&rng, logfile_size(lf) + 1);
		uint64_t n = rng_below(&rng, 9000);

		n = from + n > SIZE ? SIZE - from : n;
		assert_ok(logfile_append(lf, from, (struct str){stream + from, n}, &err), &err);
		if (rng_below(&rng, 20) == 0) {
			logfile_close(lf);
			lf = open_log(*state, "n.log");
		}
	}
	logfile_close(lf);
	assert_content(unit_path(state, "n.log"), (struct str){stream, SIZE});
	free(stream);
}

/* Rule: only what was synced may be acknowledged. */

static void synced_follows_the_syncs_and_never_passes_the_size(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct err err;

	assert_int_equal(logfile_synced(lf), 0);
	append(lf, 0, "abcdef");
	assert_int_equal(logfile_synced(lf), 0);
	assert_ok(logfile_sync_fd(logfile_fd(lf), &err), &err);
	logfile_mark_synced(lf, 4);
	assert_int_equal(logfile_synced(lf), 4);
	logfile_mark_synced(lf, 2); /* an answer that came late */
	assert_int_equal(logfile_synced(lf), 4);
	logfile_mark_synced(lf, 100);
	assert_int_equal(logfile_synced(lf), 6);
	append(lf, 6, "g");
	logfile_close(lf);
	/* Opening syncs what is there. */
	lf = open_log(*state, "n.log");
	assert_int_equal(logfile_synced(lf), 7);
	logfile_close(lf);
}

static void a_sync_that_fails_says_so(void **state)
{
	struct err err;
	int ends[2];

	(void)state;
	assert_fails(logfile_sync_fd(-1, &err), &err, ERR_IO, "sync log");
	assert_int_equal(pipe(ends), 0);
	assert_fails(logfile_sync_fd(ends[1], &err), &err, ERR_INVALID, "sync log");
	close(ends[0]);
	close(ends[1]);
}

/* Rule: an append that does not fit leaves no trace. */

static void with_file_limit(rlim_t bytes, struct rlimit *was)
{
	struct rlimit low;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, was), 0);
	low = (struct rlimit){bytes, was->rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
}

static void a_half_written_append_is_cut_off(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct rlimit was;
	struct err err;

	append(lf, 0, "abc");
	with_file_limit(5, &was);
	assert_fails(logfile_append(lf, 3, STR("defg"), &err), &err, ERR_CAPACITY, "n.log");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(logfile_size(lf), 3);
	assert_content(unit_path(state, "n.log"), STR("abc"));
	append(lf, 3, "defg");
	assert_content(unit_path(state, "n.log"), STR("abcdefg"));
	logfile_close(lf);
}

/* The descriptor is made to refuse truncation by turning it into a pipe's. */
static void a_log_that_cannot_be_cut_off_takes_no_more(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct err err;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], logfile_fd(lf)), logfile_fd(lf));
	assert_fails(logfile_append(lf, 0, STR("x"), &err), &err, ERR_IO, "append to log 'n.log'");
	assert_fails(logfile_append(lf, 0, STR("x"), &err), &err, ERR_IO, "torn: open it again");
	logfile_close(lf);
	close(ends[0]);
	close(ends[1]);
	lf = open_log(*state, "n.log");
	append(lf, 0, "x");
	logfile_close(lf);
}

static void fill_with_log(void *ctx, const char *dir)
{
	struct logfile *lf = open_log(dir, "n.log");
	static char block[10000];
	struct stat sb;
	struct err err;

	(void)ctx;
	memset(block, 'x', sizeof(block));
	struct str bytes = {block, sizeof(block)};
	while (logfile_append(lf, logfile_size(lf), bytes, &err) == 0)
		assert_true(logfile_size(lf) < 1 << 20);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_true(logfile_size(lf) >= sizeof(block));
	assert_int_equal(logfile_size(lf) % sizeof(block), 0);
	assert_int_equal(fstat(logfile_fd(lf), &sb), 0);
	assert_int_equal(sb.st_size, logfile_size(lf));
	small_disk_grow(dir, 1 << 20);
	assert_ok(logfile_append(lf, logfile_size(lf), bytes, &err), &err);
	logfile_close(lf);
}

static void a_full_disk_leaves_whole_appends_and_can_be_gone_on_with(void **state)
{
	small_disk_run(*state, 64 << 10, fill_with_log, NULL);
}

/* Rule: the files of a pool are closed only when they are synced, and go on where they were. */

static struct logfile *open_shared(const char *dir, const char *name, struct logfile_pool *p)
{
	struct logfile *lf = open_log(dir, name);

	logfile_share(lf, p);
	return lf;
}

static bool is_open(const struct logfile *lf)
{
	return logfile_fd(lf) >= 0;
}

static void sync_log(struct logfile *lf)
{
	struct err err;

	assert_ok(logfile_sync_fd(logfile_fd(lf), &err), &err);
	logfile_mark_synced(lf, logfile_size(lf));
}

static void the_log_that_was_not_used_for_the_longest_time_is_closed(void **state)
{
	struct logfile_pool *p = logfile_pool_new(2);
	struct logfile *a = open_shared(*state, "a", p), *b = open_shared(*state, "b", p), *c;

	append(a, 0, "1");
	sync_log(a);
	c = open_shared(*state, "c", p);
	assert_true(is_open(a) && !is_open(b) && is_open(c));
	append(b, 0, "2");
	assert_true(!is_open(a) && is_open(b) && is_open(c));
	logfile_close(c); /* its place is free */
	append(a, 1, "3");
	assert_true(is_open(a) && is_open(b));
	logfile_close(a);
	logfile_close(b);
	assert_null(logfile_pool_free(p));
	assert_content(unit_path(state, "a"), STR("13"));
	assert_content(unit_path(state, "b"), STR("2"));
}

static void a_log_that_is_not_synced_keeps_its_descriptor(void **state)
{
	struct logfile_pool *p = logfile_pool_new(1);
	struct logfile *a = open_shared(*state, "a", p), *b;
	struct err err;

	append(a, 0, "12");
	b = open_shared(*state, "b", p);
	assert_true(is_open(a) && !is_open(b));
	assert_fails(logfile_append(b, 0, STR("3"), &err), &err, ERR_CAPACITY,
		     "log 'b' has to wait: the disk is slow, and all 1 logs that may be open");
	logfile_mark_synced(a, 1); /* half of it */
	assert_fails(logfile_append(b, 0, STR("3"), &err), &err, ERR_CAPACITY, "log 'b'");
	assert_int_equal(logfile_size(b), 0);
	sync_log(a);
	append(b, 0, "3");
	assert_true(!is_open(a) && is_open(b));
	logfile_close(a);
	logfile_close(b);
	logfile_pool_free(p);
	assert_content(unit_path(state, "b"), STR("3"));
}

static void any_use_of_a_pool_gives_the_streams_and_keeps_the_bound(void **state)
{
	enum { LOGS = 7, MAX = 3, BYTES = 3000 };
	struct logfile_pool *p = logfile_pool_new(MAX);
	struct logfile *logs[LOGS];
	char stream[BYTES], name[] = "0";
	struct rng rng;
	struct err err;
	int waited = 0;

	rng_seed(&rng, fixture_seed("pool"));
	for (size_t i = 0; i < BYTES; i++)
		stream[i] = (char)rng_next(&rng);
	for (int i = 0; i < LOGS; i++, name[0]++)
		logs[i] = open_shared(*state, name, p);
	for (int ended = 0; ended < LOGS;) {
		struct logfile *lf = logs[rng_below(&rng, LOGS)];
		uint64_t at = logfile_size(lf), n = rng_below(&rng, 100);
		int open = 0, unsynced = 0;

		n = at + n > BYTES ? BYTES - at : n;
		if (rng_below(&rng, 2) && logfile_synced(lf) < at)
			sync_log(lf);
		else if (logfile_append(lf, at, (struct str){stream + at, n}, &err) < 0)
			assert_int_equal(err.kind, ERR_CAPACITY);
		ended = 0;
		for (int i = 0; i < LOGS; i++) {
			bool waits = logfile_synced(logs[i]) < logfile_size(logs[i]);

			open += is_open(logs[i]);
			unsynced += waits;
			assert_true(!waits || is_open(logs[i]));
			ended += logfile_size(logs[i]) == BYTES;
		}
		assert_true(open <= MAX);
		if (n && at < BYTES && logfile_size(lf) == at && logfile_synced(lf) == at &&
		    !is_open(lf)) {
			assert_int_equal(unsynced, MAX);
			waited++;
		}
	}
	assert_true(waited > 0);
	name[0] = '0';
	for (int i = 0; i < LOGS; i++, name[0]++) {
		logfile_close(logs[i]);
		assert_content(unit_path(state, name), (struct str){stream, BYTES});
	}
	logfile_pool_free(p);
}

/* A log of a pool that has "abc" and is closed, and the one that has its descriptor. */
static struct logfile *closed_log(void **state, struct logfile_pool *p, struct logfile **ret_other)
{
	struct logfile *lf = open_shared(*state, "n.log", p);

	append(lf, 0, "abc");
	sync_log(lf);
	*ret_other = open_shared(*state, "other.log", p);
	assert_false(is_open(lf));
	return lf;
}

static void a_log_that_was_changed_meanwhile_takes_no_more(void **state)
{
	static const char *const texts[] = {"", "ab", "abcd"};
	struct logfile_pool *p = logfile_pool_new(1);
	struct logfile *other, *lf = closed_log(state, p, &other);
	const char *path = unit_path(state, "n.log");
	struct err err;

	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_int_equal(file_write(path, str_from(texts[i]), 0600, NULL), 0);
		assert_fails(logfile_append(lf, 3, STR("d"), &err), &err, ERR_IO,
			     "n.log' was changed: it has");
		assert_content(path, str_from(texts[i]));
	}
	assert_true(is_open(other)); /* whoever fails takes nothing from others */
	assert_int_equal(file_write(path, STR("abc"), 0600, NULL), 0);
	append(lf, 3, "d");
	assert_content(path, STR("abcd"));
	logfile_close(lf);
	logfile_close(other);
	logfile_pool_free(p);
}

static void a_log_that_cannot_be_opened_again_says_why(void **state)
{
	struct logfile_pool *p = logfile_pool_new(1);
	struct logfile *other, *lf = closed_log(state, p, &other);
	struct rlimit was, low;
	struct err err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	int rc = logfile_append(lf, 3, STR("d"), &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "n.log' again"));
	append(lf, 3, "d"); /* there is room again */
	sync_log(lf);
	append(other, 0, "x");
	sync_log(other);

	assert_int_equal(unlink(unit_path(state, "n.log")), 0);
	assert_fails(logfile_append(lf, 4, STR("e"), &err), &err, ERR_NOT_FOUND, "n.log' again");
	assert_int_equal(err.code, ENOENT);
	assert_false(file_exists(unit_path(state, "n.log")));
	assert_int_equal(symlink("other.log", unit_path(state, "n.log")), 0);
	assert_fails(logfile_append(lf, 4, STR("e"), &err), &err, ERR_INVALID, "n.log' again");
	assert_int_equal(logfile_size(lf), 4);
	logfile_close(lf);
	logfile_close(other);
	logfile_pool_free(p);
}

static void what_needs_no_descriptor_takes_none(void **state)
{
	struct logfile_pool *p = logfile_pool_new(1);
	struct logfile *other, *lf = closed_log(state, p, &other);
	char text[4] = "";
	struct err err;
	size_t n;

	append(lf, 0, "abc"); /* sent again */
	assert_ok(logfile_pread(lf, text, 2, 1, &n, &err), &err);
	assert_int_equal(n, 2);
	assert_string_equal(text, "bc");
	assert_true(!is_open(lf) && is_open(other));
	assert_ok(logfile_pread(other, text, 2, 0, &n, &err), &err);
	assert_int_equal(n, 0);
	logfile_limit(lf, 3, 3); /* it is full */
	append(lf, 3, "d");
	assert_int_equal(logfile_synced(lf), 4);
	assert_true(!is_open(lf) && is_open(other));
	assert_int_equal(unlink(unit_path(state, "n.log")), 0);
	assert_fails(logfile_pread(lf, text, 2, 1, &n, &err), &err, ERR_NOT_FOUND, "n.log' again");
	logfile_close(lf);
	logfile_close(other);
	logfile_pool_free(p);
}

/* Rule: a log is a plain file of that name in that directory, or nothing. */

static const char *const bad_names[] = {"", ".", "..", "a/b", "/etc/passwd", "../x", "x/"};

static void a_name_that_leads_elsewhere_is_refused(void **state)
{
	struct logfile *lf = (void *)1;
	struct err err;
	uint64_t size;
	int fd;

	assert_int_equal(mkdir(unit_path(state, "a"), 0700), 0);
	assert_int_equal(file_write_atomic(unit_path(state, "a/b"), STR("x"), 0600, false, NULL),
			 0);
	for (size_t i = 0; i < COUNT(bad_names); i++) {
		assert_fails(logfile_open(*state, bad_names[i], &lf, &err), &err, ERR_INVALID,
			     "cannot name a log");
		assert_fails(logfile_open_read(*state, bad_names[i], &fd, &size, &err), &err,
			     ERR_NOT_FOUND, "no log");
	}
	assert_ptr_equal(lf, (void *)1);
}

static void make_odd_things(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
		file_write_atomic(unit_path(state, "target"), STR("secret"), 0600, false, NULL), 0);
	assert_int_equal(symlink("target", unit_path(state, "link")), 0);
	assert_int_equal(symlink("nowhere", unit_path(state, "dangling")), 0);
	assert_int_equal(mkfifo(unit_path(state, "fifo"), 0600), 0);
	assert_int_equal(mkdir(unit_path(state, "dir"), 0700), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", unit_path(state, "sock"));
	assert_int_equal(bind(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	close(sock);
}

static void anything_but_a_plain_file_is_refused(void **state)
{
	static const char *const names[] = {"link", "dangling", "fifo", "dir"};
	struct logfile *lf;
	struct err err;
	uint64_t size = 7;
	int fd = -7;

	make_odd_things(state);
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_fails(logfile_open(*state, names[i], &lf, &err), &err, ERR_INVALID,
			     names[i]);
		assert_fails(logfile_open_read(*state, names[i], &fd, &size, &err), &err,
			     ERR_NOT_FOUND, names[i]);
	}
	assert_fails(logfile_open(*state, "sock", &lf, &err), &err, ERR_NOT_FOUND, "sock");
	assert_fails(logfile_open_read(*state, "sock", &fd, &size, &err), &err, ERR_NOT_FOUND,
		     "sock");
	assert_int_equal(fd, -7);
	assert_int_equal(size, 7);
	assert_false(file_exists(unit_path(state, "nowhere")));
	assert_content(unit_path(state, "target"), STR("secret"));
}

static void a_directory_that_is_a_link_or_missing_is_refused(void **state)
{
	struct logfile *lf;
	struct err err;
	uint64_t size;
	int fd;

	assert_int_equal(mkdir(unit_path(state, "real"), 0700), 0);
	assert_int_equal(symlink("real", unit_path(state, "logs")), 0);
	assert_fails(logfile_open(unit_path(state, "logs"), "n.log", &lf, &err), &err, ERR_INVALID,
		     "n.log");
	assert_fails(logfile_open(unit_path(state, "none"), "n.log", &lf, &err), &err,
		     ERR_NOT_FOUND, "n.log");
	assert_fails(logfile_open_read(unit_path(state, "logs"), "n.log", &fd, &size, &err), &err,
		     ERR_NOT_FOUND, "no log");
}

static void a_log_is_opened_for_reading_with_its_size(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct err err;
	uint64_t size;
	char text[8] = "";
	int fd;

	append(lf, 0, "abc");
	assert_ok(logfile_open_read(*state, "n.log", &fd, &size, &err), &err);
	assert_int_equal(size, 3);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(write(fd, "x", 1), -1);
	close(fd);
	assert_fails(logfile_open_read(*state, "other.log", &fd, &size, &err), &err, ERR_NOT_FOUND,
		     "no log 'other.log'");
	logfile_close(lf);
}

static void running_out_of_descriptors_is_not_a_missing_log(void **state)
{
	struct logfile *lf = open_log(*state, "n.log");
	struct rlimit was, low;
	struct err err;
	uint64_t size;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	int rc = logfile_open_read(*state, "n.log", &fd, &size, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	logfile_close(lf);
}

/* Rule: the tail is the last lines, as `tail -n` counts them. */

static int tail_file(void **state, struct str content)
{
	assert_int_equal(file_write_atomic(unit_path(state, "t.log"), content, 0600, false, NULL),
			 0);
	int fd = open(unit_path(state, "t.log"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static uint64_t tail_of(int fd, uint64_t lines)
{
	struct err err;
	uint64_t offset;

	assert_ok(logfile_tail_offset(fd, lines, &offset, &err), &err);
	return offset;
}

static void the_last_lines_begin_where_they_should(void **state)
{
	static const struct {
		const char *text;
		uint64_t lines, offset;
	} cases[] = {
		{"", 0, 0},	   {"", 1, 0},	      {"", 5, 0},	{"\n", 0, 1},
		{"\n", 1, 0},	   {"\n", 2, 0},      {"a", 0, 1},	{"a", 1, 0},
		{"a\n", 1, 0},	   {"a\nb", 1, 2},    {"a\nb\n", 1, 2}, {"a\nb\n", 2, 0},
		{"a\nb\nc", 2, 2}, {"a\n\n", 1, 2},   {"a\n\n", 2, 0},	{"\n\n\n", 2, 1},
		{"\na", 1, 1},	   {"\na", 2, 0},     {"a\nb\n", 0, 4}, {"a\nb\n", UINT64_MAX, 0},
		{"a\r\nb", 1, 3},  {"a\rb\rc", 1, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int fd = tail_file(state, str_from(cases[i].text));

		if (tail_of(fd, cases[i].lines) != cases[i].offset)
			fail_msg("case %zu: %" PRIu64, i, tail_of(fd, cases[i].lines));
		close(fd);
	}
}

/* Written for being obvious: where each line begins, and then the nth from the end. */
static uint64_t naive_tail(struct str s, uint64_t lines)
{
	VEC(uint64_t) starts = {0};
	uint64_t offset = s.n;

	for (size_t i = 0; i < s.n; i++)
		if (i == 0 || s.p[i - 1] == '\n')
			*vec_push(&starts) = i;
	if (lines > 0 && starts.n > 0)
		offset = lines >= starts.n ? 0 : starts.v[starts.n - lines];
	vec_release(&starts);
	return offset;
}

static void any_file_has_the_tail_that_a_simple_count_gives(void **state)
{
	enum { BLOCK = 65536, MAX = 4 * BLOCK };
	char *text = xmalloc(MAX);
	struct rng rng;

	rng_seed(&rng, fixture_seed("tail"));
	for (int round = 0; round < 120; round++) {
		/* Sizes and newlines lie close to the borders of blocks more often than not. */
		uint64_t blocks = rng_below(&rng, 4),
			 gap = 1 + rng_below(&rng, 1u << rng_below(&rng, 17));
		size_t n = (size_t)(blocks * BLOCK + (rng_below(&rng, 2) ? rng_below(&rng, 4)
									 : rng_below(&rng, BLOCK)));
		for (size_t i = 0; i < n; i++)
			text[i] = rng_below(&rng, gap) == 0 ? '\n' : 'x';
		for (size_t at = BLOCK; at + 1 < n; at += BLOCK)
			text[at + rng_below(&rng, 3) - 1] = '\n';
		struct str s = {text, n};
		int fd = tail_file(state, s);
		for (uint64_t lines = 0; lines < 6; lines++)
			assert_int_equal(tail_of(fd, lines), naive_tail(s, lines));
		uint64_t many = rng_below(&rng, 100000);
		assert_int_equal(tail_of(fd, many), naive_tail(s, many));
		close(fd);
	}
	free(text);
}

/* Sparse: nothing of it is on disk. */
static int giant(void **state, uint64_t size)
{
	close(tail_file(state, STR("first\n")));
	int fd = open(unit_path(state, "t.log"), O_RDWR | O_CLOEXEC);

	assert_int_equal(pwrite(fd, "\nlast\n", 6, (off_t)size), 6);
	return fd;
}

static void a_giant_line_is_passed_over(void **state)
{
	uint64_t size = (100u << 20) + 17;
	int fd = giant(state, size);

	assert_int_equal(tail_of(fd, 1), size + 1);
	assert_int_equal(tail_of(fd, 2), 6);
	assert_int_equal(tail_of(fd, 3), 0);
	close(fd);
}

static void the_tail_of_a_giant_file_reads_only_its_end(void **state)
{
	uint64_t size = 3ull << 40;
	int fd = giant(state, size);

	assert_int_equal(tail_of(fd, 1), size + 1);
	close(fd);
}

static void a_file_that_cannot_be_read_has_no_tail(void **state)
{
	struct err err;
	uint64_t offset = 7;
	int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_fails(logfile_tail_offset(-1, 1, &offset, &err), &err, ERR_IO, "stat log");
	assert_fails(logfile_tail_offset(fd, 1, &offset, &err), &err, ERR_INVALID, "log");
	assert_int_equal(offset, 7);
	close(fd);
}

#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)

static void bytes_beyond_the_limit_are_counted_and_not_stored(void **state)
{
	struct logfile *lf;
	struct err err;

	assert_ok(logfile_open(*state, "n.log", &lf, &err), &err);
	logfile_limit(lf, 10, 0);
	assert_ok(logfile_append(lf, 0, STR("12345678"), &err), &err);
	assert_false(logfile_is_full(lf));
	assert_ok(logfile_append(lf, 8, STR("90abcd"), &err), &err);
	assert_true(logfile_is_full(lf));
	assert_int_equal(logfile_size(lf), 14);
	assert_int_equal(logfile_stored(lf), 10);
	/* The stored ones are not synced yet, so the others cannot be acknowledged either. */
	assert_ok(logfile_append(lf, 14, STR("ef"), &err), &err);
	assert_int_equal(logfile_synced(lf), 0);
	logfile_mark_synced(lf, 16);
	assert_ok(logfile_append(lf, 16, STR("gh"), &err), &err);
	assert_int_equal(logfile_synced(lf), 18);
	/* Repeated bytes and holes are what they always are. */
	assert_ok(logfile_append(lf, 4, STR("5678"), &err), &err);
	assert_int_equal(logfile_size(lf), 18);
	assert_fails(logfile_append(lf, 19, STR("j"), &err), &err, ERR_PROTOCOL, "18 are stored");
	logfile_close(lf);

	/* The next master knows how far metrics were taken. */
	assert_ok(logfile_open(*state, "n.log", &lf, &err), &err);
	assert_int_equal(logfile_size(lf), 10);
	logfile_limit(lf, 10, 15);
	assert_int_equal(logfile_size(lf), 15);
	assert_int_equal(logfile_synced(lf), 15);
	assert_int_equal(logfile_stored(lf), 10);
	logfile_close(lf);
}

static void what_metrics_were_taken_of_is_not_skipped_below_the_limit(void **state)
{
	struct logfile *lf;
	struct err err;

	assert_ok(logfile_open(*state, "n.log", &lf, &err), &err);
	assert_ok(logfile_append(lf, 0, STR("123"), &err), &err);
	logfile_close(lf);
	assert_ok(logfile_open(*state, "n.log", &lf, &err), &err);
	logfile_limit(lf, 10, 8); /* metrics are taken before the bytes are sent */
	assert_int_equal(logfile_size(lf), 3);
	assert_int_equal(logfile_synced(lf), 3);
	logfile_close(lf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_dir(bytes_are_stored_as_they_are),
		on_dir(what_is_stored_already_is_skipped),
		on_dir(a_hole_is_refused),
		on_dir(a_log_goes_on_where_it_ended),
		on_dir(any_resending_gives_the_stream_exactly_once),
		on_dir(synced_follows_the_syncs_and_never_passes_the_size),
		cmocka_unit_test(a_sync_that_fails_says_so),
		on_dir(a_half_written_append_is_cut_off),
		on_dir(a_log_that_cannot_be_cut_off_takes_no_more),
		on_dir(a_full_disk_leaves_whole_appends_and_can_be_gone_on_with),
		on_dir(the_log_that_was_not_used_for_the_longest_time_is_closed),
		on_dir(a_log_that_is_not_synced_keeps_its_descriptor),
		on_dir(any_use_of_a_pool_gives_the_streams_and_keeps_the_bound),
		on_dir(a_log_that_was_changed_meanwhile_takes_no_more),
		on_dir(a_log_that_cannot_be_opened_again_says_why),
		on_dir(what_needs_no_descriptor_takes_none),
		on_dir(a_name_that_leads_elsewhere_is_refused),
		on_dir(anything_but_a_plain_file_is_refused),
		on_dir(a_directory_that_is_a_link_or_missing_is_refused),
		on_dir(a_log_is_opened_for_reading_with_its_size),
		on_dir(running_out_of_descriptors_is_not_a_missing_log),
		on_dir(the_last_lines_begin_where_they_should),
		on_dir(any_file_has_the_tail_that_a_simple_count_gives),
		on_dir(a_giant_line_is_passed_over),
		on_dir(the_tail_of_a_giant_file_reads_only_its_end),
		on_dir(a_file_that_cannot_be_read_has_no_tail),
		on_dir(bytes_beyond_the_limit_are_counted_and_not_stored),
		on_dir(what_metrics_were_taken_of_is_not_skipped_below_the_limit),
	};

	return cmocka_run_group_tests_name("logfile", tests, NULL, NULL);
}
