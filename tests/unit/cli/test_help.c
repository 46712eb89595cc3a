/* Help, man page and completion are renderings of the table; the files in the tree are what the
 * table says. */
#include "spec/golden.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "cli/cli.h"

static void check(const char *file, const struct buf *got)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	assert_false(got->overflow);
	golden_check(golden_path(a, file), buf_str(got));
}

static void the_overview_is_as_in_the_tree(void **state)
{
	CLEANUP(buf_release) struct buf b;

	(void)state;
	buf_init(&b, CLI_MAX_TEXT);
	help_overview(&b);
	check("golden/cli/help.txt", &b);
}

static void the_help_of_every_command_is_as_in_the_tree(void **state)
{
	CLEANUP(buf_release) struct buf b;

	(void)state;
	buf_init(&b, CLI_MAX_TEXT);
	for (const struct command *c = cli_commands; c->name; c++) {
		if (!c->group)
			continue;
		help_command(c, &b);
		buf_addz(&b, "\n----\n");
	}
	check("golden/cli/help-commands.txt", &b);
}

static void no_line_of_help_is_wider_than_a_terminal(void **state)
{
	CLEANUP(buf_release) struct buf b;

	(void)state;
	buf_init(&b, CLI_MAX_TEXT);
	help_overview(&b);
	help_usage(&b);
	for (const struct command *c = cli_commands; c->name; c++)
		help_command(c, &b);
	struct str rest = buf_str(&b);
	while (rest.p) {
		struct str line = str_cut(&rest, '\n');
		if (line.n > 80 && !memmem(line.p, line.n, "completions/", 12))
			fail_msg("%zu columns: %.*s", line.n, STR_ARG(line));
	}
}

static void the_man_page_is_as_in_the_tree(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;

	(void)state;
	buf_init(&b, CLI_MAX_TEXT);
	manpage_render(&b);
	golden_check(arena_printf(a, "%s/docs/man/regatta.1", golden_env("REGATTA_SOURCE_ROOT")),
		     buf_str(&b));
}

/* Exit code of a program that gets the text as its last argument's file; 127 if there is no such
 * program. */
static int run_on(const char *const *argv, struct str text)
{
	char path[] = "/tmp/regatta-help-XXXXXX";
	int fd = mkstemp(path), status;
	const char *words[8] = {0};
	struct err err;

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text.p, text.n, &err), 0);
	close(fd);
	size_t n = 0;
	for (; argv[n]; n++)
		words[n] = argv[n];
	words[n] = path;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		execvp(words[0], (char *const *)(uintptr_t)words);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void the_completion_scripts_are_as_in_the_tree(void **state)
{
	static const char *const shells[] = {"bash", "zsh", "fish"};

	(void)state;
	for (size_t i = 0; i < COUNT(shells); i++) {
		CLEANUP(buf_release) struct buf b;
		char file[64];
		buf_init(&b, CLI_MAX_TEXT);
		assert_true(completion_render(shells[i], &b));
		snprintf(file, sizeof(file), "golden/cli/completion.%s", shells[i]);
		check(file, &b);
	}
	CLEANUP(buf_release) struct buf none;
	buf_init(&none, CLI_MAX_TEXT);
	assert_false(completion_render("tcsh", &none));
}

/* What bash offers at the end of these words. */
static void bash_offers(const char *words, const char *last, const char *want)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, CLI_MAX_TEXT);
	completion_render("bash", &b);
	buf_printf(
		&b,
		"compopt() { :; }\nregatta() { printf 'quick-abcd\\nquick-efgh\\n'; }\n"
		"COMP_WORDS=(%s %s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_regatta\n"
		"got=\"${COMPREPLY[*]}\"\n[ \"$got\" = '%s' ] || { echo \"offered: $got\" >&2; exit 1; }\n",
		words, last, want);
	const char *const argv[] = {"bash", NULL};
	assert_int_equal(run_on(argv, buf_str(&b)), 0);
}

static void bash_completes_commands_options_values_and_runs(void **state)
{
	(void)state;
	bash_offers("regatta", "st", "status");
	bash_offers("regatta logs", "q", "quick-abcd quick-efgh");
	bash_offers("regatta logs quick-abcd --tail 5", "quick-e", "quick-efgh");
	bash_offers("regatta ps", "--l", "--limit");
	bash_offers("regatta ps --output", "j", "json");
	bash_offers("regatta status --output json", "quick-e", "quick-efgh");
	bash_offers("regatta completion", "z", "zsh");
	bash_offers("regatta kill quick-abcd", "quick-e", "quick-efgh");
	bash_offers("regatta help", "expl", "explain");
	bash_offers("regatta export quick-abcd --to", "ten", "tensorboard");
	bash_offers("regatta report -o", "/proc/self/cmdl", "/proc/self/cmdline");
	bash_offers("regatta init --to", "/proc/self/cmdl", "/proc/self/cmdline");
}

/* Skips the test if the shell is not installed. */
static void assert_done(int code)
{
	assert_true(code == 0 || code == 127);
}

/* What fish offers at the end of a line; the descriptions behind a tab are left out. */
static void fish_offers(const char *line, const char *want)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, CLI_MAX_TEXT);
	completion_render("fish", &b);
	buf_printf(&b,
		   "function regatta\n\tif test \"$argv[2]\" = nodes\n\t\techo node-of-$argv[3]\n"
		   "\telse\n\t\tprintf 'quick-abcd\\nquick-efgh\\n'\n\tend\nend\n"
		   "set got (complete -C '%s' | string replace -r '\\t.*' '')\n"
		   "if test \"$got\" != '%s'\n\techo offered: $got >&2\n\texit 1\nend\n",
		   line, want);
	assert_done(run_on((const char *const[]){"fish", "--no-config", NULL}, buf_str(&b)));
}

static void fish_completes_commands_options_values_and_runs(void **state)
{
	(void)state;
	fish_offers("regatta stat", "status");
	fish_offers("regatta logs quick-a", "quick-abcd");
	fish_offers("regatta logs quick-abcd ", "node-of-quick-abcd");
	fish_offers("regatta logs -f --tail 5 quick-abcd ", "node-of-quick-abcd");
	fish_offers("regatta metrics quick-abcd --node ", "node-of-quick-abcd");
	fish_offers("regatta kill quick-abcd quick-e", "quick-efgh");
	fish_offers("regatta ps --output j", "json");
	fish_offers("regatta report -o /proc/self/cmdl", "/proc/self/cmdline");
	fish_offers("regatta run -n 2 -- cat /proc/self/cmdl", "/proc/self/cmdline");
	fish_offers("regatta help run --c", "");
}

/* The functions of zsh are replaced by ones that print their arguments. */
static void zsh_asks(const char *words, const char *want)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, CLI_MAX_TEXT);
	buf_addz(&b, "compdef() { :; }\n_normal() { got=\"normal $CURRENT: $words\" }\n"
		     "_describe() { got=\"describe $#names\" }\n"
		     "_arguments() { got=\"$words[1] $CURRENT: ${(M)@:#*NODE:*}\" }\n");
	completion_render("zsh", &b);
	buf_printf(&b,
		   "words=(%s)\nCURRENT=$#words\n_regatta\n"
		   "[[ $got == '%s' ]] || { print -u2 -- \"asked: $got\"; exit 1 }\n",
		   words, want);
	assert_done(run_on((const char *const[]){"zsh", "-f", NULL}, buf_str(&b)));
}

static void zsh_leaves_the_command_behind_the_dashes_to_its_own_completion(void **state)
{
	(void)state;
	zsh_asks("regatta lo", "describe 20");
	zsh_asks("regatta run -n 2 -- python3 tr", "normal 2: python3 tr");
	zsh_asks("regatta run --", "run 2: ");
	/* The run is the first argument, wherever the options stand. */
	zsh_asks("regatta logs -f quick w",
		 "logs 4: ::NODE:{compadd -- $(regatta words nodes $line[1] 2>/dev/null)}");
}

static void the_shells_accept_their_scripts(void **state)
{
	static const char *const checks[][3] = {{"bash", "-n"}, {"zsh", "-n"}, {"fish", "-n"}};

	(void)state;
	for (size_t i = 0; i < COUNT(checks); i++) {
		CLEANUP(buf_release) struct buf b;
		buf_init(&b, CLI_MAX_TEXT);
		completion_render(checks[i][0], &b);
		assert_done(run_on(checks[i], buf_str(&b)));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_overview_is_as_in_the_tree),
		cmocka_unit_test(the_help_of_every_command_is_as_in_the_tree),
		cmocka_unit_test(no_line_of_help_is_wider_than_a_terminal),
		cmocka_unit_test(the_man_page_is_as_in_the_tree),
		cmocka_unit_test(the_completion_scripts_are_as_in_the_tree),
		cmocka_unit_test(bash_completes_commands_options_values_and_runs),
		cmocka_unit_test(fish_completes_commands_options_values_and_runs),
		cmocka_unit_test(zsh_leaves_the_command_behind_the_dashes_to_its_own_completion),
		cmocka_unit_test(the_shells_accept_their_scripts),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("help", tests, NULL, NULL);
}
