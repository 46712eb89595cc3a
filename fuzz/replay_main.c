/*
 * Replays a stored corpus through one fuzz target, in the normal build.
 *
 *	replay_<name> DIRECTORY
 *
 * Every file is one test, and so is the empty input.  The name is printed
 * before its turn, so that the last line before a crash tells the culprit.
 * A directory without files fails: a corpus that vanished must not pass.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"

#define REPLAY_FILES_MAX 100000
#define REPLAY_BYTES_MAX ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An exact allocation of its own, so that a sanitizer sees a read past the end. */
static void feed(struct str bytes)
{
	uint8_t *copy = xmalloc(bytes.n);

	memcpy(copy, bytes.p, bytes.n);
	LLVMFuzzerTestOneInput(copy, bytes.n);
	free(copy);
}

static int replay(const char *dir, const char *name, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	CLEANUP(buf_release) struct buf bytes;

	buf_init(&bytes, REPLAY_BYTES_MAX);
	if (file_read(path, &bytes, err) < 0)
		return -1;
	feed(buf_str(&bytes));
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = {0};
	char **names;
	size_t n, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	if (file_list_tree(argv[1], REPLAY_FILES_MAX, &names, &n, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 2;
	}
	if (n == 0) {
		fprintf(stderr, "no corpus in '%s'\n", argv[1]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n# the empty input\n", n + 1);
	feed(STR(""));
	printf("ok 1 - the empty input\n");
	for (size_t i = 0; i < n; i++) {
		printf("# %s\n", names[i]);
		if (replay(argv[1], names[i], &err) == 0) {
			printf("ok %zu - %s\n", i + 2, names[i]);
		} else {
			printf("not ok %zu - %s: %s\n", i + 2, names[i], err.msg);
			failed++;
		}
	}
	file_list_free(names, n);
	return failed ? 1 : 0;
}
