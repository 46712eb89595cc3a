#include "driver/own_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/doc.h"
#include "net/digest.h"

#define OWN "/proc/self/exe"

static const struct machine {
	const char *name;
	Elf64_Half elf;
} machines[] = {{"x86_64", EM_X86_64}, {"arm64", EM_AARCH64}};
#define MACHINES (sizeof(machines) / sizeof(machines[0]))

const char *own_program_machine(void)
{
#if defined(__aarch64__)
	return "arm64";
#else
	return "x86_64";
#endif
}

/* ---- where they are ---- */

/* "/usr/local/bin": where this program is. */
static const char *own_directory(struct arena *a)
{
	char path[PATH_MAX];
	ssize_t n = readlink(OWN, path, sizeof(path));
	const char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;

	return slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
}

static int check_machine(int fd, const struct machine *m, const char *path, struct err *err)
{
	Elf64_Ehdr head = {0};
	size_t n = 0;

	if (file_pread_full(fd, &head, sizeof(head), 0, &n, err) < 0)
		return err_wrap(err, "read '%s'", path);
	if (n < sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_machine != m->elf)
		return err_set(err, ERR_INVALID, "'%s' is no program for %s", path, m->name);
	return 0;
}

/* ERR_NOT_FOUND: it is in none of the places. */
static int open_other(const struct machine *m, struct arena *a, int *ret_fd, struct err *err)
{
	const char *own = own_directory(a), *given = getenv("REGATTA_BINARIES");
	const char *dirs[] = {given, own, arena_printf(a, "%s/../lib/regatta", own)};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (!dirs[i] || !*dirs[i])
			continue;
		const char *path = arena_printf(a, "%s/regatta-%s", dirs[i], m->name);
		CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		if (fd < 0)
			return err_errno(err, errno, "open '%s'", path);
		if (check_machine(fd, m, path, err) < 0)
			return -1;
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND,
		       "there is no regatta-%s for these machines: put that of this version beside "
		       "regatta, or name its directory in REGATTA_BINARIES",
		       m->name);
}

static int open_for(const struct machine *m, struct arena *a, int *ret_fd, struct err *err)
{
	if (strcmp(m->name, own_program_machine()) != 0)
		return open_other(m, a, ret_fd, err);
	CLEANUP(close_fdp) int fd = open(OWN, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open this program");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- their sums ---- */

/* A thousand nodes that boot ask for the same sum: it is worked out once for each state of the file. */
static struct known_sum {
	struct stat st;
	char hex[SHA256_TEXT];
} known[MACHINES];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same(const struct stat *x, const struct stat *y)
{
	return x->st_dev == y->st_dev && x->st_ino == y->st_ino && x->st_size == y->st_size &&
	       x->st_mtim.tv_sec == y->st_mtim.tv_sec && x->st_mtim.tv_nsec == y->st_mtim.tv_nsec;
}

static int sum_of(size_t machine, int fd, char hex[SHA256_TEXT], uint64_t *ret_size,
		  struct err *err)
{
	struct known_sum *k = &known[machine];
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "read the program for %s", machines[machine].name);
	pthread_mutex_lock(&known_lock);
	if (!k->hex[0] || !is_same(&k->st, &st)) {
		k->hex[0] = '\0';
		k->st = st;
		rc = sha256_fd_hex(fd, k->hex, ret_size, err);
	}
	memcpy(hex, k->hex, SHA256_TEXT);
	pthread_mutex_unlock(&known_lock);
	*ret_size = (uint64_t)st.st_size;
	return rc < 0 ? err_wrap(err, "read the program for %s", machines[machine].name) : 0;
}

/* ---- the facts ---- */

static int describe(const char *machine, struct arena *a, struct doc **ret, struct err *err)
{
	struct doc *d = doc_new(a, DOC_TABLE);
	char hex[SHA256_TEXT];
	uint64_t size;
	size_t i = 0;

	while (i < MACHINES && strcmp(machines[i].name, machine) != 0)
		i++;
	if (i == MACHINES)
		return err_set(
			err, ERR_INVALID,
			"there is no regatta for machines with '%s', only for x86_64 and arm64",
			machine);
	CLEANUP(close_fdp) int fd = -1;

	if (open_for(&machines[i], a, &fd, err) < 0 || sum_of(i, fd, hex, &size, err) < 0)
		return -1;
	doc_set(a, d, STR("sha256"), doc_new_str(a, str_from(arena_strdup(a, hex))));
	doc_set(a, d, STR("size"), doc_new_int(a, (int64_t)size));
	*ret = d;
	return 0;
}

int own_program_add(struct doc *facts, const char *machine, struct arena *a, struct err *err)
{
	struct doc *d;

	if (describe(machine ? machine : own_program_machine(), a, &d, err) < 0)
		return -1;
	doc_set(a, facts, STR("binary"), d);
	return 0;
}

int own_program_add_named(struct doc *facts, const char *name, const char *machine, struct arena *a,
			  struct err *err)
{
	const struct doc *there = doc_table(facts, "binaries");
	struct doc *all = there ? doc_copy(a, there) : doc_new(a, DOC_TABLE), *d;

	if (describe(machine, a, &d, err) < 0)
		return -1;
	doc_set(a, d, STR("machine"), doc_new_str(a, str_from(machine)));
	doc_set(a, all, str_from(arena_strdup(a, name)), d);
	doc_set(a, facts, STR("binaries"), all);
	return 0;
}

int own_program_open(const char *sha256, int *ret_fd, uint64_t *ret_size, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	char hex[SHA256_TEXT];

	for (size_t i = 0; i < MACHINES; i++) {
		CLEANUP(close_fdp) int fd = -1;
		struct err ignored = {
			0}; /* a program that cannot be read is not the one that is asked for */

		if (open_for(&machines[i], a, &fd, &ignored) < 0 ||
		    sum_of(i, fd, hex, ret_size, &ignored) < 0 || strcmp(hex, sha256) != 0)
			continue;
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "no program here has that sum");
}
