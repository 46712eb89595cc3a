/* The part of a boot script that fetches this program, run by a shell that has one tool for it. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/hex.h"
#include "driver/boot_program.h"
#include "fake_http.h"
#include "net/digest.h"
#include "sys/child_run.h"

#define PROGRAM "#!/bin/sh\necho the program\n"
#define TEXT_MAX 65536

static bool serve(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	if (fake_is(asked, "GET /right "))
		fake_say(fd, 200, "", PROGRAM);
	else
		fake_say(fd, fake_is(asked, "GET /other ") ? 200 : 404, "", "another program");
	return true;
}

/* A directory of links to the programs that the script needs, and to the tool; false: this machine has it not. */
static bool link_tools(const char *dir, const char *tool)
{
	const char *const names[] = {"sha256sum", "chmod", "mv", tool};
	struct err err;

	for (size_t i = 0; i < COUNT(names); i++) {
		char *from = NULL, *to = xasprintf("%s/%s", dir, names[i]);
		bool found = child_find_command(names[i], "/usr/bin:/bin", "/", &from, &err) == 0;

		if (found)
			assert_int_equal(symlink(from, to), 0);
		free(from);
		free(to);
		if (!found)
			return false;
	}
	return true;
}

/* What the shell says, which has nothing but the tool; the directory is the one that it works in. */
static void fetch(struct fake_http *f, const char *dir, const char *paths[2], struct buf *said)
{
	const struct deadline d = deadline_in(30000, NULL);
	char sum[2 * SHA256_BYTES + 1];
	uint8_t digest[SHA256_BYTES];
	struct err err;
	int code = -1;
	struct buf script;

	sha256_of(PROGRAM, strlen(PROGRAM), digest);
	hex_encode(digest, sizeof(digest), sum);
	buf_init(&script, TEXT_MAX);
	buf_printf(&script, "cd '%s'\nPATH='%s'\n", dir, dir);
	char *urls = xasprintf("'%s%s' '%s%s'", f->url, paths[0], f->url, paths[1]);

	boot_program_put(urls, sum, &script);
	buf_addz(&script, "program >fetched 2>&1 && ./regatta\n");
	buf_addc(&script, '\0');
	const char *const argv[] = {"/bin/sh", "-c", script.p, NULL};

	if (child_run_words(argv, &d, said, &code, &err) < 0)
		fail_msg("%s", err.msg);
	free(urls);
	buf_release(&script);
}

static void it_is_fetched(const char *tool)
{
	const char *paths[][2] = {{"/right", "/none"},
				  {"/none", "/right"},
				  {"/other", "/right"},
				  {"/other", "/none"}};
	struct fake_http f = {.answer = serve};
	bool has = true;

	fake_start(&f);
	for (size_t i = 0; i < COUNT(paths) && has; i++) {
		CLEANUP(buf_release) struct buf said = {0};
		void *dir = NULL;

		buf_init(&said, TEXT_MAX);
		assert_int_equal(unit_make_dir(&dir), 0);
		has = link_tools(dir, tool);
		if (has)
			fetch(&f, dir, paths[i], &said);
		assert_int_equal(unit_remove_dir(&dir), 0);
		if (has)
			assert_true(str_is(buf_str(&said), i < 3 ? "the program\n" : ""));
	}
	fake_stop(&f);
	if (!has)
		skip();
}

static void the_program_is_fetched_with_curl(void **state)
{
	(void)state;
	it_is_fetched("curl");
}

static void the_program_is_fetched_with_wget(void **state)
{
	(void)state;
	it_is_fetched("wget");
}

static void the_program_is_fetched_with_python3(void **state)
{
	(void)state;
	it_is_fetched("python3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_is_fetched_with_curl),
		cmocka_unit_test(the_program_is_fetched_with_wget),
		cmocka_unit_test(the_program_is_fetched_with_python3),
	};

	return cmocka_run_group_tests_name("driver boot_program", tests, NULL, NULL);
}
