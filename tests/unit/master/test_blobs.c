/* Archives of sources: what a name in blobs/ promises. */
#include "rig.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"

#define ABC                                                                                        \
	"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* SHA-256 of "abc" */

static size_t files_in(const char *dir)
{
	char **names;
	size_t n;

	assert_int_equal(file_list_tree(dir, 10, &names, &n, NULL), 0);
	file_list_free(names, n);
	return n;
}

static void an_archive_with_another_digest_than_its_name_is_refused(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *blobs = path_join(r->home, "blobs");

	assert_int_equal(rig_http(r, "PUT", "/api/v1/blobs/" ABC, "abd"), 400);
	assert_int_equal(files_in(blobs), 0);
	assert_int_equal(rig_http(r, "HEAD", "/api/v1/blobs/" ABC, ""), 404);
}

/* The client that hears 201 does not send it again. */
static void an_archive_that_is_acknowledged_is_on_disk(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *blobs = path_join(r->home, "blobs");
	CLEANUP(freep) char *path = path_join(blobs, ABC);

	assert_int_equal(rig_http(r, "PUT", "/api/v1/blobs/" ABC, "abc"), 201);
	assert_int_equal(files_in(blobs), 1);
	assert_true(rig_is_synced(path));
	assert_true(rig_is_synced(blobs));
	assert_int_equal(rig_http(r, "HEAD", "/api/v1/blobs/" ABC, ""), 200);
}

/* Makes blobs/NAME, last changed so long before or after the start of the master. */
static char *make_part(struct rig *r, const char *name, int64_t after_ms)
{
	char *path = xasprintf("%s/blobs/%s", r->home, name);
	int64_t at_ms = r->m.started_ms + after_ms;
	const struct timespec times[2] = {{.tv_sec = at_ms / 1000}, {.tv_sec = at_ms / 1000}};

	assert_int_equal(file_write(path, STR("ab"), 0600, NULL), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	return path;
}

static void a_partial_upload_of_an_earlier_master_is_removed(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *blobs = path_join(r->home, "blobs");

	assert_int_equal(file_mkdir_p(blobs, 0700, NULL), 0);
	CLEANUP(freep) char *old = make_part(r, ABC ".0x1.part", -60000);
	CLEANUP(freep) char *current = make_part(r, ABC ".0x2.part", 1000);
	CLEANUP(freep) char *whole = make_part(r, "whole", -60000);

	assert_int_equal(rig_http(r, "PUT", "/api/v1/blobs/" ABC, "abc"), 201);
	assert_false(file_exists(old));
	assert_true(file_exists(current));
	assert_true(file_exists(whole));
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(an_archive_with_another_digest_than_its_name_is_refused),
		CASE(an_archive_that_is_acknowledged_is_on_disk),
		CASE(a_partial_upload_of_an_earlier_master_is_removed),
	};

	return cmocka_run_group_tests_name("master: blobs", tests, NULL, NULL);
}
