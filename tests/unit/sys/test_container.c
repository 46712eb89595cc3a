/* The program that runs containers: found, recorded, asked; by programs of the test's own. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "sys/container.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void program(void **state, const char *name, const char *script)
{
	char *text = xasprintf("#!/bin/sh\ncd '%s'\n%s\n", (const char *)*state, script);

	assert_int_equal(file_write(unit_path(state, name), str_from(text), 0700, NULL), 0);
	free(text);
}

static void docker_comes_before_podman_and_with_gpus_nvidia_docker_before_both(void **state)
{
	struct container_tool t;
	struct err err = {0};

	assert_int_equal(container_find(*state, false, &t, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(err.msg,
			    "image: neither docker nor podman is installed on this machine");
	program(state, "podman", "");
	assert_int_equal(container_find(*state, false, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_PODMAN);
	program(state, "docker", "");
	assert_int_equal(container_find(*state, true, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_DOCKER);
	assert_string_equal(t.program, unit_path(state, "docker"));
	assert_false(t.gpus); /* nothing here gives them to containers */
	program(state, "nvidia-container-runtime", "");
	assert_int_equal(container_find(*state, true, &t, &err), 0);
	assert_true(t.gpus);
	program(state, "nvidia-docker", "");
	assert_int_equal(container_find(*state, true, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_NVIDIA_DOCKER);
	assert_int_equal(container_find(*state, false, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_DOCKER);
	assert_false(t.gpus);
}

static void a_docker_that_does_not_answer_gives_way_to_podman(void **state)
{
	struct container_tool t;
	struct err err = {0};

	program(state, "docker", "echo \"$@\" >>asked; exit 1");
	assert_int_equal(container_find(*state, false, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_DOCKER); /* there is no other: it may be starting */
	assert_null(t.in_place_of);
	assert_false(file_exists(unit_path(state, "asked")));
	program(state, "podman", "");
	assert_int_equal(container_find(*state, false, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_PODMAN);
	assert_string_equal(t.in_place_of, "docker");
	program(state, "docker", "[ \"$1\" = version ]");
	assert_int_equal(container_find(*state, false, &t, &err), 0);
	assert_int_equal(t.kind, CONTAINER_DOCKER);
	assert_null(t.in_place_of);
}

static struct container_record record_of(void **state, bool limited)
{
	struct container_record r = {.tool = {.kind = CONTAINER_PODMAN, .gpus = true},
				     .label = "run/node/1/mark",
				     .limited = limited};

	snprintf(r.tool.program, sizeof(r.tool.program), "%s", unit_path(state, "podman"));
	return r;
}

static void a_record_is_read_as_it_was_written(void **state)
{
	struct container_record r = record_of(state, true), got;
	const char *path = unit_path(state, "container");
	struct err err = {0};

	assert_int_equal(container_record_read(AT_FDCWD, path, &got, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(container_record_write(AT_FDCWD, path, &r, &err), 0);
	assert_int_equal(container_record_read(AT_FDCWD, path, &got, &err), 0);
	assert_int_equal(got.tool.kind, CONTAINER_PODMAN);
	assert_true(got.tool.gpus && got.limited);
	assert_string_equal(got.tool.program, r.tool.program);
	assert_string_equal(got.label, r.label);
	assert_int_equal(file_write(path, STR("podman\n/x\n"), 0600, NULL), 0);
	assert_int_equal(container_record_read(AT_FDCWD, path, &got, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
}

/* Lists the container in the file `there`, which rm removes. */
#define PODMAN                                                                                     \
	"echo \"$@\" >> calls\n"                                                                   \
	"case $1 in ps) cat there 2>/dev/null || true;; rm) rm there;; inspect) echo $OOM;; esac"

static const char *calls(void **state)
{
	static struct buf text;

	buf_release(&text);
	buf_init(&text, 4096);
	file_read(unit_path(state, "calls"), &text, NULL);
	return buf_str(&text).p;
}

static int remove_all(void **state, bool limited, bool *oom, struct err *err)
{
	struct container_record r = record_of(state, limited);
	struct deadline d = deadline_in(10000, NULL);

	*oom = false;
	*err = (struct err){0};
	return container_remove(&r, &d, oom, err);
}

static void containers_are_killed_removed_and_looked_for_again(void **state)
{
	struct err err;
	bool oom;

	program(state, "podman", PODMAN);
	file_write(unit_path(state, "there"), STR(ID_A "\n"), 0600, NULL);
	assert_int_equal(remove_all(state, false, &oom, &err), 0);
	assert_string_equal(
		calls(state),
		"ps --all --quiet --no-trunc --filter label=regatta.node=run/node/1/mark\n"
		"kill " ID_A "\nrm --force --volumes " ID_A "\n"
		"ps --all --quiet --no-trunc --filter label=regatta.node=run/node/1/mark\n");
	assert_false(oom);
}

static void whether_a_limit_was_reached_is_asked_before_the_removal(void **state)
{
	struct err err;
	bool oom;

	setenv("OOM", "true", 1);
	program(state, "podman", PODMAN);
	file_write(unit_path(state, "there"), STR(ID_A "\n"), 0600, NULL);
	assert_int_equal(remove_all(state, true, &oom, &err), 0);
	assert_true(oom);
	setenv("OOM", "false", 1);
	file_write(unit_path(state, "there"), STR(ID_A "\n"), 0600, NULL);
	assert_int_equal(remove_all(state, true, &oom, &err), 0);
	assert_false(oom);
}

static void no_answer_is_not_taken_for_none(void **state)
{
	struct err err;
	bool oom;

	program(state, "podman", "echo 'Cannot connect to the Docker daemon' >&2; exit 1");
	assert_int_equal(remove_all(state, false, &oom, &err), -1);
	assert_string_equal(err.msg,
			    "podman cannot list containers: Cannot connect to the Docker daemon");
	program(state, "podman", "echo 'Cannot connect to the Docker daemon' >&2");
	assert_int_equal(remove_all(state, false, &oom, &err), -1);
	program(state, "podman", "exit 1");
	assert_int_equal(remove_all(state, false, &oom, &err), -1);
	program(state, "podman", "echo 'time=\"x\" level=warning msg=\"cgroups\"' >&2");
	assert_int_equal(remove_all(state, false, &oom, &err), 0);
	remove(unit_path(state, "podman"));
	assert_int_equal(remove_all(state, false, &oom, &err), -1);
}

static void a_container_that_stays_is_an_error_at_the_deadline(void **state)
{
	struct container_record r = record_of(state, false);
	struct deadline d = deadline_in(300, NULL);
	struct err err = {0};
	bool oom = false;

	program(state, "podman", "[ $1 != ps ] || echo " ID_A);
	assert_int_equal(container_remove(&r, &d, &oom, &err), -1);
	assert_int_equal(err.kind, ERR_TIMEOUT);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(docker_comes_before_podman_and_with_gpus_nvidia_docker_before_both),
		CASE(a_docker_that_does_not_answer_gives_way_to_podman),
		CASE(a_record_is_read_as_it_was_written),
		CASE(containers_are_killed_removed_and_looked_for_again),
		CASE(whether_a_limit_was_reached_is_asked_before_the_removal),
		CASE(no_answer_is_not_taken_for_none),
		CASE(a_container_that_stays_is_an_error_at_the_deadline),
	};

	return cmocka_run_group_tests_name("sys: container", tests, NULL, NULL);
}
