/*
 * tar_unpack - unpacks an untrusted archive below one directory.
 *
 * Only regular files and directories are made, each by openat() from the
 * destination's own descriptor, part by part, following nothing; a name that
 * leaves the destination, a link, a device or a second file of the same name
 * is an error.  Sizes are checked against the limits.
 */
#include "fmt/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/quote.h"
#include "fmt/tar_block.h"

#define TAR_MAX_EXTENSION (64 * 1024) /* bytes of a pax header or a GNU long name */

struct unpack {
	int in_fd;
	int root_fd;
	char *chunk; /* TAR_COPY_BYTES, of which [pos, len) is still to be used */
	size_t pos, len;
	uint64_t bytes;	 /* of content, so far */
	size_t blocks;	 /* headers of every kind, so far */
	struct buf path; /* name of the current entry */
	/* From extension headers, for the next entry. */
	bool has_path, has_size;
	struct buf next_path;
	uint64_t next_size;
	struct err *err;
};

static void unpack_release(struct unpack *u)
{
	close_fdp(&u->root_fd);
	free(u->chunk);
	buf_release(&u->path);
	buf_release(&u->next_path);
}

/* An error about the current entry. */
static int refuse(struct unpack *u, const char *why)
{
	char text[QUOTE_MAX];

	return err_set(u->err, ERR_INVALID, "entry %zu '%s': %s", u->blocks,
		       str_quote(buf_str(&u->path), text), why);
}

static int refuse_errno(struct unpack *u, int errnum, const char *what)
{
	char text[QUOTE_MAX];

	return err_errno(u->err, errnum, "%s entry %zu '%s'", what, u->blocks,
			 str_quote(buf_str(&u->path), text));
}

/* The next bytes of the archive, at most `want`; the end of the file is an error. */
static int take(struct unpack *u, size_t want, const char **ret_bytes, size_t *ret_n)
{
	while (u->pos == u->len) {
		ssize_t n = read(u->in_fd, u->chunk, TAR_COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(u->err, errno, "read the archive");
		if (n == 0)
			return err_set(u->err, ERR_INVALID,
				       "the archive ends after %zu headers, too early", u->blocks);
		u->pos = 0;
		u->len = (size_t)n;
	}
	size_t have = u->len - u->pos;

	*ret_bytes = u->chunk + u->pos;
	*ret_n = have < want ? have : want;
	u->pos += *ret_n;
	return 0;
}

static int take_all(struct unpack *u, void *out, size_t n)
{
	char *at = out;

	while (n > 0) {
		const char *bytes;
		size_t got;

		if (take(u, n, &bytes, &got) < 0)
			return -1;
		memcpy(at, bytes, got);
		at += got;
		n -= got;
	}
	return 0;
}

static int skip_padding(struct unpack *u, uint64_t size)
{
	char pad[TAR_BLOCK];

	return take_all(u, pad, tar_padding(size));
}

/* The bytes of an extension header into out. */
static int take_extension(struct unpack *u, uint64_t size, struct buf *out)
{
	if (size > TAR_MAX_EXTENSION)
		return refuse(u, "an extension header of more than 64 KiB");
	buf_reset(out);
	char *room = buf_reserve(out, (size_t)size);

	if (take_all(u, room, (size_t)size) < 0)
		return -1;
	buf_commit(out, (size_t)size);
	return skip_padding(u, size);
}

static int set_next_path(struct unpack *u, struct str path)
{
	if (path.n == 0 || path.n > TAR_MAX_PATH || memchr(path.p, '\0', path.n))
		return refuse(u, "a name that is empty, too long or holds a NUL");
	buf_reset(&u->next_path);
	buf_addstr(&u->next_path, path);
	u->has_path = true;
	return 0;
}

/* One pax record that matters; unknown ones are times, owners and the like. */
static int use_record(struct unpack *u, struct str key, struct str value)
{
	if (str_is(key, "path"))
		return set_next_path(u, value);
	if (str_is(key, "size")) {
		if (!str_to_u64(value, &u->next_size))
			return refuse(u, "a pax size that is not a number");
		u->has_size = true;
	}
	if (str_starts(key, STR("GNU.sparse.")))
		return refuse(u, "a sparse file: pack it without holes");
	return 0;
}

/* "LEN key=value\n" until the end. */
static int read_pax(struct unpack *u, struct str records, bool global)
{
	while (records.n > 0) {
		struct str rest = records, key, value;
		struct str number = str_cut(&rest, ' ');
		uint64_t len;

		if (!rest.p || !str_to_u64(number, &len) || len > records.n || len < number.n + 4 ||
		    records.p[len - 1] != '\n')
			return refuse(u, "a pax record that is not well formed");
		value = (struct str){rest.p, (size_t)len - number.n - 2};
		key = str_cut(&value, '=');
		if (!value.p)
			return refuse(u, "a pax record that is not well formed");
		records.p += len;
		records.n -= (size_t)len;
		/* A global header is ignored, but one name or size for all entries makes no sense. */
		if (global && (str_is(key, "path") || str_is(key, "size")))
			return refuse(u, "a global pax header with a name or size");
		if (!global && use_record(u, key, value) < 0)
			return -1;
	}
	return 0;
}

static int read_extension(struct unpack *u, char type, uint64_t size)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, TAR_MAX_EXTENSION);
	if (take_extension(u, size, &text) < 0)
		return -1;
	if (type != 'L')
		return read_pax(u, buf_str(&text), type == 'g');
	struct str name = buf_str(&text);

	/* GNU counts the NUL at the end of the name. */
	if (name.n > 0 && name.p[name.n - 1] == '\0')
		name.n--;
	return set_next_path(u, name);
}

/* The name of the entry into u->path: "./" in front and "/" behind are dropped. */
static void find_path(struct unpack *u, const struct tar_block *b)
{
	struct str name = {b->name, strnlen(b->name, sizeof(b->name))};
	struct str prefix = {b->prefix, strnlen(b->prefix, sizeof(b->prefix))};

	buf_reset(&u->path);
	if (u->has_path) {
		buf_addstr(&u->path, buf_str(&u->next_path));
	} else {
		/* The GNU format has other fields in the place of the prefix. */
		if (prefix.n > 0 && memcmp(b->magic, "ustar\0", 6) == 0) {
			buf_addstr(&u->path, prefix);
			buf_addc(&u->path, '/');
		}
		buf_addstr(&u->path, name);
	}
	while (u->path.n >= 2 && memcmp(u->path.p, "./", 2) == 0) {
		buf_drop_front(&u->path, 2);
		if (u->path.n == 0)
			buf_addc(&u->path, '.');
	}
}

/* Does the text of the path stay below the destination? */
static int check_path(struct unpack *u)
{
	struct str path = buf_str(&u->path);
	size_t levels = 1;

	if (!path_is_below(path))
		return refuse(u, "a name that is empty, absolute or has '..' in it");
	while (path.p) {
		struct str part = str_cut(&path, '/');

		if (str_is(part, "."))
			return refuse(u, "a name with '.' in it");
		if (levels++ > TAR_MAX_LEVELS)
			return refuse(u, "more than 128 directories within each other");
	}
	return 0;
}

/* Enter the directory `part`, made if it is missing; closes *dir_fd and replaces it. */
static int enter_dir(struct unpack *u, int *dir_fd, struct str part)
{
	char name[NAME_MAX + 1];

	if (part.n > NAME_MAX)
		return refuse(u, "a directory's name of more than 255 bytes");
	memcpy(name, part.p, part.n);
	name[part.n] = '\0';
	if (mkdirat(*dir_fd, name, 0777) < 0 && errno != EEXIST)
		return refuse_errno(u, errno, "make a directory for");
	int fd = openat(*dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return refuse(u, "something that is not a directory is in its way");
	if (fd < 0)
		return refuse_errno(u, errno, "open the directory of");
	if (*dir_fd != u->root_fd)
		close(*dir_fd);
	*dir_fd = fd;
	return 0;
}

/* Enter every directory of the path; *ret_name is its last part.  *dir_fd is the caller's on
 * failure too. */
static int enter_parents(struct unpack *u, int *dir_fd, struct str *ret_name)
{
	struct str rest = buf_str(&u->path);

	for (;;) {
		struct str part = str_cut(&rest, '/');

		if (!rest.p) {
			*ret_name = part;
			return 0;
		}
		if (enter_dir(u, dir_fd, part) < 0)
			return -1;
	}
}

static int write_content(struct unpack *u, int fd, uint64_t size)
{
	char text[QUOTE_MAX];
	uint64_t left = size;

	while (left > 0) {
		const char *bytes;
		size_t n, want = left < TAR_COPY_BYTES ? (size_t)left : TAR_COPY_BYTES;

		if (take(u, want, &bytes, &n) < 0)
			return -1;
		if (file_write_all(fd, bytes, n, u->err) < 0)
			return err_wrap(u->err, "entry %zu '%s'", u->blocks,
					str_quote(buf_str(&u->path), text));
		left -= n;
	}
	return skip_padding(u, size);
}

static int make_file(struct unpack *u, int dir_fd, const char *name, mode_t mode, uint64_t size)
{
	CLEANUP(close_fdp)
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			mode & S_IXUSR ? 0777 : 0666);
	char text[QUOTE_MAX];

	if (fd < 0 && errno == EEXIST)
		return err_set(u->err, ERR_CONFLICT,
			       "entry %zu '%s': there is one of that name already", u->blocks,
			       str_quote(buf_str(&u->path), text));
	if (fd < 0)
		return refuse_errno(u, errno, "create");
	return write_content(u, fd, size);
}

static int make_entry(struct unpack *u, bool is_dir, mode_t mode, uint64_t size)
{
	int dir_fd = u->root_fd, ret;
	struct str name;

	if (check_path(u) < 0)
		return -1;
	ret = enter_parents(u, &dir_fd, &name);
	if (ret == 0)
		/* name is the end of the path, so it is NUL-terminated. */
		ret = is_dir ? enter_dir(u, &dir_fd, name)
			     : make_file(u, dir_fd, name.p, mode, size);
	if (dir_fd != u->root_fd)
		close(dir_fd);
	return ret;
}

static const char *kind_refused(char type)
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
		{'K', "a link with a long name: links are not unpacked"},
		{'S', "a sparse file: pack it without holes"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].type == type)
			return kinds[i].why;
	}
	return "an entry of an unknown kind";
}

static int unpack_entry(struct unpack *u, const struct tar_block *b, uint64_t size)
{
	uint64_t mode;
	char text[QUOTE_MAX];

	find_path(u, b);
	/* Before POSIX a directory was a file whose name ends in '/'. */
	bool slash = u->path.n > 0 && u->path.p[u->path.n - 1] == '/';
	bool is_dir = b->type == '5' || (b->type == '\0' && slash);

	if (b->type != '0' && b->type != '\0' && !is_dir)
		return refuse(u, kind_refused(b->type));
	if (u->has_size)
		size = u->next_size;
	u->has_path = u->has_size = false;
	if (!tar_read_number(b->mode, sizeof(b->mode), &mode))
		return refuse(u, "a mode that is not a number");
	if (is_dir) {
		if (size > 0)
			return refuse(u, "a directory entry that has bytes of its own");
		if (slash)
			u->path.p[--u->path.n] = '\0';
		return str_is(buf_str(&u->path), ".") ? 0 : make_entry(u, true, 0, 0);
	}
	if (size > TAR_MAX_BYTES - u->bytes)
		return err_set(u->err, ERR_CAPACITY, "entry %zu '%s': more than %llu bytes in all",
			       u->blocks, str_quote(buf_str(&u->path), text), TAR_MAX_BYTES);
	u->bytes += size;
	return make_entry(u, false, (mode_t)(mode & 0777), size);
}

/* Reads one header and its content; sets *ret_end at the end of the archive. */
static int unpack_block(struct unpack *u, bool *ret_end)
{
	struct tar_block b;
	uint64_t sum, size;

	if (take_all(u, &b, sizeof(b)) < 0)
		return -1;
	if (tar_is_zero(&b)) {
		if (take_all(u, &b, sizeof(b)) < 0)
			return -1;
		*ret_end = true;
		if (!tar_is_zero(&b) || u->has_path || u->has_size)
			return err_set(u->err, ERR_INVALID,
				       "after %zu headers: the archive does not end as it should",
				       u->blocks);
		return 0;
	}
	u->blocks++;
	buf_reset(&u->path);
	buf_add(&u->path, b.name, strnlen(b.name, sizeof(b.name)));
	if (u->blocks > TAR_MAX_ENTRIES)
		return err_set(u->err, ERR_CAPACITY, "more than %d entries", TAR_MAX_ENTRIES);
	if (!tar_read_number(b.checksum, sizeof(b.checksum), &sum) || sum != tar_checksum(&b))
		return err_set(u->err, ERR_INVALID,
			       "header %zu: the checksum is wrong: this is not a tar archive",
			       u->blocks);
	if (memcmp(b.magic, "ustar", 5) != 0)
		return refuse(u, "not of the ustar format");
	if (!tar_read_number(b.size, sizeof(b.size), &size))
		return refuse(u, "a size that is not a number");
	if (b.type == 'x' || b.type == 'g' || b.type == 'L')
		return read_extension(u, b.type, size);
	return unpack_entry(u, &b, size);
}

int tar_unpack(int in_fd, const char *dest_dir, struct err *err)
{
	CLEANUP(unpack_release) struct unpack u = {.in_fd = in_fd, .root_fd = -1, .err = err};
	char text[QUOTE_MAX];
	bool end = false;

	if (file_mkdir_p(dest_dir, 0777, err) < 0)
		return -1;
	buf_init(&u.path, TAR_MAX_PATH + 1);
	buf_init(&u.next_path, TAR_MAX_PATH);
	u.chunk = xmalloc(TAR_COPY_BYTES);
	u.root_fd = open(dest_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (u.root_fd < 0)
		return err_errno(err, errno, "open '%s'", str_quote(str_from(dest_dir), text));
	while (!end) {
		if (unpack_block(&u, &end) < 0)
			return err_wrap(err, "unpack to '%s'", str_quote(str_from(dest_dir), text));
	}
	return 0;
}
