/*
 * Whatever the archive, nothing is made outside the destination, nothing but
 * files and directories inside, and what was unpacked can be packed again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/tar.h"
#include "fmt/tar_block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A memory file with these bytes. */
static int archive_fd(const void *bytes, size_t n)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, bytes, n, NULL) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}

/* The checksum keeps a fuzzer out: make it right wherever a header may stand. */
static void sign_headers(char *bytes, size_t n)
{
	for (size_t at = 0; n - at >= TAR_BLOCK; at += TAR_BLOCK) {
		struct tar_block b;

		memcpy(&b, bytes + at, sizeof(b));
		if (memcmp(b.magic, "ustar", 5) != 0)
			continue;
		tar_write_number(b.checksum, sizeof(b.checksum) - 1, tar_checksum(&b));
		memcpy(bytes + at, &b, sizeof(b));
	}
}

static void check_below(const char *box)
{
	char **names;
	size_t n;

	/* Stops at links and other kinds: the destination must have none. */
	if (file_list_tree(box, 100000, &names, &n, NULL) < 0)
		abort();
	for (size_t i = 0; i < n; i++)
		if (!str_starts(str_from(names[i]), STR("dst/")))
			abort();
	file_list_free(names, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	char box[256], dst[300];
	CLEANUP(close_fdp) int in = -1;
	CLEANUP(close_fdp) int out = -1;
	struct buf bytes;

	snprintf(box, sizeof(box), "%s/regatta-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(box))
		abort();
	snprintf(dst, sizeof(dst), "%s/dst", box);
	buf_init(&bytes, SIZE_MAX - 1);
	buf_add(&bytes, data, size);
	if (size > 0)
		sign_headers(bytes.p, bytes.n);
	in = archive_fd(buf_str(&bytes).p, bytes.n);
	buf_release(&bytes);
	int ret = tar_unpack(in, dst, NULL);

	check_below(box);
	if (ret == 0) {
		out = archive_fd("", 0);
		if (tar_pack(dst, out, NULL) < 0)
			abort();
	}
	if (file_remove_tree(box, NULL) < 0)
		abort();
	return 0;
}
