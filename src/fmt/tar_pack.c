/*
 * tar_pack - a file or a directory's contents as a tar archive.
 *
 * Names are sorted, owners and times are zero, modes are 0755 or 0644: the
 * same tree gives the same bytes.  What cannot be unpacked safely elsewhere
 * (links that lead out, devices, sockets) is refused by name.
 */
#include "fmt/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/below.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/vec.h"
#include "fmt/ignore.h"
#include "fmt/quote.h"
#include "fmt/tar_block.h"

#define GIT_DIR ".git"
#define OCTAL_SIZE_MAX ((UINT64_C(1) << 33) - 1) /* what 11 octal digits hold */

struct pack {
	int out_fd;
	char *root;	 /* real path of the directory; links must stay below it */
	struct buf path; /* name of the current entry, relative to the root */
	struct buf out;	 /* to be written */
	uint64_t bytes;	 /* of content, so far */
	size_t entries;
	struct ignore *ignore; /* what is left out; NULL: nothing */
	size_t left_out;
	struct err *err;
};

struct names {
	VEC(char *) list;
};

static void names_release(struct names *n)
{
	for (size_t i = 0; i < n->list.n; i++)
		free(n->list.v[i]);
	vec_release(&n->list);
}

static void pack_release(struct pack *p)
{
	free(p->root);
	ignore_free(p->ignore);
	buf_release(&p->path);
	buf_release(&p->out);
}

static const char *shown(const struct pack *p, char out[static QUOTE_MAX])
{
	return str_quote(buf_str(&p->path), out);
}

static int flush(struct pack *p)
{
	int ret = file_write_all(p->out_fd, buf_str(&p->out).p, p->out.n, p->err);

	buf_reset(&p->out);
	return ret;
}

static int emit(struct pack *p, const void *bytes, size_t n)
{
	if (p->out.n + n > TAR_COPY_BYTES && flush(p) < 0)
		return -1;
	buf_add(&p->out, bytes, n);
	return 0;
}

static int emit_padding(struct pack *p, uint64_t size)
{
	static const char zeros[TAR_BLOCK];

	return emit(p, zeros, tar_padding(size));
}

/* Split "prefix/name" so that both parts fit; false if there is no such '/'. */
static bool split_name(struct str path, struct tar_block *b)
{
	if (path.n <= sizeof(b->name)) {
		memcpy(b->name, path.p, path.n);
		return true;
	}
	for (size_t i = path.n - 1; i > 0 && path.n - i - 1 <= sizeof(b->name); i--) {
		/* Not at the trailing '/' of a directory: the name would be empty. */
		if (path.p[i] != '/' || i > sizeof(b->prefix) || i + 1 == path.n)
			continue;
		memcpy(b->prefix, path.p, i);
		memcpy(b->name, path.p + i + 1, path.n - i - 1);
		return true;
	}
	return false;
}

static int emit_block(struct pack *p, struct tar_block *b, char type, mode_t mode, uint64_t size)
{
	b->type = type;
	memcpy(b->magic, "ustar\00000", sizeof(b->magic));
	tar_write_number(b->mode, sizeof(b->mode), mode);
	tar_write_number(b->uid, sizeof(b->uid), 0);
	tar_write_number(b->gid, sizeof(b->gid), 0);
	tar_write_number(b->size, sizeof(b->size), size);
	tar_write_number(b->mtime, sizeof(b->mtime), 0);
	tar_write_number(b->dev_major, sizeof(b->dev_major), 0);
	tar_write_number(b->dev_minor, sizeof(b->dev_minor), 0);
	tar_write_number(b->checksum, sizeof(b->checksum) - 1, tar_checksum(b));
	b->checksum[7] = ' ';
	return emit(p, b, sizeof(*b));
}

/* "LEN key=value\n", where LEN counts itself too. */
static void add_record(struct buf *out, const char *key, struct str value)
{
	size_t n = strlen(key) + value.n + 3, digits = 1;

	for (size_t total = n + digits; total >= 10; total /= 10)
		digits++;
	if (snprintf(NULL, 0, "%zu", n + digits) != (int)digits)
		digits++;
	buf_printf(out, "%zu %s=", n + digits, key);
	buf_addstr(out, value);
	buf_addc(out, '\n');
}

static int emit_pax(struct pack *p, bool with_path, bool with_size, uint64_t size)
{
	CLEANUP(buf_release) struct buf records = {0};
	struct tar_block b = {.name = "pax"};
	char text[24];

	buf_init(&records, 2 * TAR_MAX_PATH);
	if (with_path)
		add_record(&records, "path", buf_str(&p->path));
	if (with_size) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
		add_record(&records, "size", str_from(text));
	}
	if (emit_block(p, &b, 'x', 0644, records.n) < 0 ||
	    emit(p, buf_str(&records).p, records.n) < 0)
		return -1;
	return emit_padding(p, records.n);
}

/* The header of the entry p->path. */
static int emit_header(struct pack *p, char type, mode_t mode, uint64_t size)
{
	struct tar_block b = {0};
	bool named = split_name(buf_str(&p->path), &b), sized = size <= OCTAL_SIZE_MAX;
	char text[QUOTE_MAX];

	if (++p->entries > TAR_MAX_ENTRIES)
		return err_set(p->err, ERR_CAPACITY, "more than %d files", TAR_MAX_ENTRIES);
	if (size > TAR_MAX_BYTES - p->bytes)
		return err_set(p->err, ERR_CAPACITY, "'%s': more than %llu bytes in all",
			       shown(p, text), TAR_MAX_BYTES);
	p->bytes += size;
	if (!named) {
		/* The pax record has the whole name; readers without pax get its last bytes. */
		struct str path = buf_str(&p->path);

		memcpy(b.name, path.p + path.n - sizeof(b.name), sizeof(b.name));
	}
	if ((!named || !sized) && emit_pax(p, !named, !sized, size) < 0)
		return -1;
	return emit_block(p, &b, type, mode, sized ? size : 0);
}

static int pack_content(struct pack *p, int fd, uint64_t size)
{
	char text[QUOTE_MAX];
	uint64_t left = size;

	while (left > 0) {
		if (p->out.n == TAR_COPY_BYTES && flush(p) < 0)
			return -1;
		size_t want = TAR_COPY_BYTES - p->out.n;
		char *room = buf_reserve(&p->out, want);
		ssize_t n = read(fd, room, left < want ? (size_t)left : want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(p->err, errno, "read '%s'", shown(p, text));
		if (n == 0)
			return err_set(p->err, ERR_CONFLICT,
				       "'%s' became shorter while it was packed", shown(p, text));
		buf_commit(&p->out, (size_t)n);
		left -= (uint64_t)n;
	}
	return emit_padding(p, size);
}

/* Packs an open file; its type is checked again, because the name may have been replaced before the open. */
static int pack_file(struct pack *p, int fd)
{
	char text[QUOTE_MAX];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(p->err, errno, "stat '%s'", shown(p, text));
	if (!S_ISREG(st.st_mode))
		return err_set(p->err, ERR_INVALID, "'%s' is not a regular file", shown(p, text));
	if (emit_header(p, '0', st.st_mode & S_IXUSR ? 0755 : 0644, (uint64_t)st.st_size) < 0)
		return -1;
	return pack_content(p, fd, (uint64_t)st.st_size);
}

/* A link to a regular file below the root is packed as that file. */
static int pack_link(struct pack *p)
{
	CLEANUP(freep) char *link = path_join(p->root, buf_str(&p->path).p);
	CLEANUP(freep) char *target = realpath(link, NULL);
	CLEANUP(close_fdp) int fd = -1;
	size_t n = strlen(p->root);
	char text[QUOTE_MAX];
	struct stat st;

	if (!target)
		return err_set(p->err, ERR_INVALID, "'%s' is a link that leads nowhere",
			       shown(p, text));
	bool inside = strncmp(target, p->root, n) == 0 && (n == 1 || target[n] == '/');

	if (!inside || stat(target, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(p->err, ERR_INVALID,
			       "'%s' is a link to something else than a file of this directory",
			       shown(p, text));
	fd = open(target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_errno(p->err, errno, "open '%s'", shown(p, text));
	return pack_file(p, fd);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Closes fd. */
static int list_names(struct pack *p, int fd, struct names *ret_names)
{
	char text[QUOTE_MAX];
	DIR *dir = fdopendir(fd);
	int ret = 0;

	if (!dir) {
		close(fd);
		return err_errno(p->err, errno, "list '%s'", shown(p, text));
	}
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(dir);

		if (!e) {
			if (errno)
				ret = err_errno(p->err, errno, "list '%s'", shown(p, text));
			break;
		}
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (ret_names->list.n == TAR_MAX_ENTRIES) {
			ret = err_set(p->err, ERR_CAPACITY, "more than %d files", TAR_MAX_ENTRIES);
			break;
		}
		*vec_push(&ret_names->list) = xstrdup(e->d_name);
	}
	closedir(dir);
	if (ret_names->list.n > 0)
		qsort(ret_names->list.v, ret_names->list.n, sizeof(*ret_names->list.v), by_bytes);
	return ret;
}

static int pack_dir(struct pack *p, int dir_fd, int level);

/* Packs one entry of a directory; p->path ends with its name already. */
static int pack_entry(struct pack *p, int dir_fd, const char *name, int level)
{
	CLEANUP(close_fdp) int fd = -1;
	char text[QUOTE_MAX];
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(p->err, errno, "stat '%s'", shown(p, text));
	if (S_ISLNK(st.st_mode))
		return pack_link(p);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(
			p->err, ERR_INVALID,
			"'%s' is a device, socket or pipe: only files and directories are packed",
			shown(p, text));
	fd = openat(dir_fd, name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
			    (S_ISDIR(st.st_mode) ? O_DIRECTORY : 0));
	if (fd < 0)
		return err_errno(p->err, errno, "open '%s'", shown(p, text));
	if (S_ISREG(st.st_mode))
		return pack_file(p, fd);
	buf_addc(&p->path, '/');
	if (emit_header(p, '5', 0755, 0) < 0)
		return -1;
	return pack_dir(p, fd, level + 1);
}

/* The rules of a directory: those of the second file come after those of the first, and so before them. */
static int read_ignore(struct pack *p, int dir_fd)
{
	static const char *const files[] = {".gitignore", ".regattaignore"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		CLEANUP(buf_release) struct buf text = {0};
		struct err err = {0};

		buf_init(&text, IGNORE_MAX_BYTES);
		if (faccessat(dir_fd, files[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (file_read_at(dir_fd, files[i], &text, &err) < 0)
			return err_set(p->err, err.kind, "'%s': %.150s", files[i], err.msg);
		ignore_add(p->ignore, buf_str(&text), buf_str(&p->path).p);
	}
	return 0;
}

/* Is the entry p->path of this directory left out? */
static bool is_left_out(struct pack *p, int dir_fd, const char *name)
{
	struct stat st;

	if (!p->ignore)
		return false;
	bool is_dir = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);

	if (!ignore_matches(p->ignore, buf_str(&p->path).p, is_dir))
		return false;
	p->left_out += strcmp(name, GIT_DIR) != 0;
	return true;
}

static int pack_names(struct pack *p, int dir_fd, const struct names *names, int level)
{
	size_t path_n = p->path.n;
	char text[QUOTE_MAX];

	for (size_t i = 0; i < names->list.n; i++) {
		p->path.n = path_n;
		buf_addz(&p->path, names->list.v[i]);
		if (p->path.overflow)
			return err_set(p->err, ERR_CAPACITY, "'%s...': name longer than %d bytes",
				       shown(p, text), TAR_MAX_PATH);
		if (!is_left_out(p, dir_fd, names->list.v[i]) &&
		    pack_entry(p, dir_fd, names->list.v[i], level) < 0)
			return -1;
	}
	return 0;
}

/* Everything in the directory p->path, which ends in '/' or is the root. */
static int pack_dir(struct pack *p, int dir_fd, int level)
{
	CLEANUP(names_release) struct names names = {0};
	char text[QUOTE_MAX];
	size_t rules = p->ignore ? ignore_count(p->ignore) : 0;
	int again = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (again < 0)
		return err_errno(p->err, errno, "open '%s'", shown(p, text));
	if (list_names(p, again, &names) < 0)
		return -1;
	if (level > TAR_MAX_LEVELS)
		return err_set(p->err, ERR_CAPACITY,
			       "'%s': more than %d directories within each other", shown(p, text),
			       TAR_MAX_LEVELS);
	if (p->ignore && read_ignore(p, dir_fd) < 0)
		return -1;
	int ret = pack_names(p, dir_fd, &names, level);

	if (p->ignore)
		ignore_cut(p->ignore, rules);
	return ret;
}

static int pack_end(struct pack *p)
{
	static const struct tar_block zeros[2];

	return emit(p, zeros, sizeof(zeros)) < 0 ? -1 : flush(p);
}

static int pack_path(const char *path, int out_fd, struct ignore *ignore, size_t *ret_left_out,
		     struct err *err)
{
	CLEANUP(pack_release) struct pack p = {.out_fd = out_fd, .ignore = ignore, .err = err};
	CLEANUP(close_fdp) int fd = -1;
	char text[QUOTE_MAX];
	struct stat st;
	int ret;

	buf_init(&p.path, TAR_MAX_PATH - 1);
	buf_init(&p.out, TAR_COPY_BYTES);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	p.root = fd < 0 ? NULL : realpath(path, NULL);
	if (!p.root || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", str_quote(str_from(path), text));
	if (S_ISDIR(st.st_mode)) {
		ret = pack_dir(&p, fd, 0);
	} else {
		/* The entry has the given name, not that of the link's target. */
		CLEANUP(freep) char *clean = path_clean(path);

		buf_addz(&p.path, path_base(clean));
		ret = pack_file(&p, fd);
	}
	if (ret < 0)
		return err_wrap(err, "pack '%s'", str_quote(str_from(path), text));
	*ret_left_out = p.left_out;
	return pack_end(&p);
}

int tar_pack(const char *path, int out_fd, struct err *err)
{
	size_t none;

	return pack_path(path, out_fd, NULL, &none, err);
}

int tar_pack_source(const char *path, int out_fd, size_t *ret_left_out, struct err *err)
{
	struct ignore *ignore = ignore_new();

	ignore_add(ignore, STR(GIT_DIR), "");
	return pack_path(path, out_fd, ignore, ret_left_out, err);
}

static int pack_named(struct pack *p, int top, const char *name)
{
	CLEANUP(close_fdp) int fd = below_open(top, name);
	char text[QUOTE_MAX];
	struct stat st;

	buf_reset(&p->path);
	buf_addz(&p->path, name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(p->err, errno, "open '%s'", shown(p, text));
	if (p->path.overflow || !S_ISREG(st.st_mode))
		return err_set(p->err, ERR_INVALID, "'%s' cannot be packed", shown(p, text));
	return pack_file(p, fd);
}

int tar_pack_files(const char *dir, char *const *names, size_t n, int out_fd, struct err *err)
{
	CLEANUP(pack_release) struct pack p = {.out_fd = out_fd, .err = err};
	CLEANUP(close_fdp) int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[QUOTE_MAX];

	buf_init(&p.path, TAR_MAX_PATH - 1);
	buf_init(&p.out, TAR_COPY_BYTES);
	if (top < 0)
		return err_errno(err, errno, "open '%s'", str_quote(str_from(dir), text));
	for (size_t i = 0; i < n; i++)
		if (pack_named(&p, top, names[i]) < 0)
			return err_wrap(err, "pack '%s'", str_quote(str_from(dir), text));
	return pack_end(&p);
}
