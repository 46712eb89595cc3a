/* The same commands talk to any master that has a name: over TLS, with a pin and a token, and never
 * to the own one by mistake. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define TOKEN "5ecret0000"
#define OTHER_PIN "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define RUN(state, rest)                                                                           \
	"{\"id\":\"job-abcd\",\"state\":\"" state                                                  \
	"\",\"elapsed_ms\":12,\"dir\":\"/there/job-abcd\""                                         \
	",\"strategy\":\"single\",\"engine\":\"local\",\"counts\":{\"nodes\":1},"                  \
	"\"nodes\":[{\"name\":\"job-0\"}]" rest "}"
#define RUNNING RUN("running", "")
#define SUCCEEDED RUN("succeeded", ",\"verdict\":\"succeeded\",\"exit_code\":0")
#define CANCELLED RUN("cancelled", ",\"verdict\":\"cancelled\",\"exit_code\":7")

/* The other master's home is that of the test; the user's own is the directory "mine" in it. */
static char url[64], pin[80], mine[512];

static void as_other(void)
{
	unsetenv("TEST_KEEP_HOME");
}

static void as_user(void)
{
	setenv("TEST_KEEP_HOME", "1", 1);
	setenv("REGATTA_HOME", mine, 1);
}

/* The other master, started the way its own user does. */
static void start_other(void **state)
{
	int port = 0;

	as_other();
	struct ran r = DRIVE(state, "ps");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	as_user();
	char *http = home_get(state, "http");
	assert_int_equal(sscanf(http, "%d %79s", &port, pin), 2); // NOLINT(cert-err34-c)
	free(http);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d", port);
	/* After a restart it is found where it was. */
	char text[16];
	snprintf(text, sizeof(text), "%d", port);
	home_put(state, "listen", text);
}

static int setup(void **state)
{
	if (drive_setup(state) < 0)
		return -1;
	snprintf(mine, sizeof(mine), "%s", unit_path(state, "mine"));
	home_put(state, "listen", "0");
	home_put(state, "token", TOKEN);
	home_put(state, "token.txt", " " TOKEN "\n");
	home_put(state, "runs.json", "{\"runs\":[{\"id\":\"job-abcd\",\"state\":\"running\"}]}");
	home_put(state, "run.json", SUCCEEDED);
	start_other(state);
	return 0;
}

static int teardown(void **state)
{
	as_other();
	unsetenv("REGATTA_MASTER");
	return drive_teardown(state);
}

static void add(void **state, const char *name)
{
	struct ran r = DRIVE(state, "context", "add", name, url, "--pin", pin, "--token", TOKEN);
	assert_int_equal(r.code, 0);
	ran_release(&r);
}

/* The command ends with this code and says this. */
#define EXPECT(state, want, text, ...)                                                             \
	do {                                                                                       \
		struct ran r_ = DRIVE(state, __VA_ARGS__);                                         \
		if (r_.code != (want))                                                             \
			fail_msg("exit code %d: %.*s", r_.code, STR_ARG(buf_str(&r_.err)));        \
		if (*(text))                                                                       \
			assert_has(&r_.err, (text));                                               \
		assert_has_not(&r_.err, TOKEN);                                                    \
		assert_has_not(&r_.out, TOKEN);                                                    \
		ran_release(&r_);                                                                  \
	} while (0)

static void no_master_was_started(void **state)
{
	struct stat st;

	assert_int_equal(stat(unit_path(state, "mine/api.sock"), &st), -1);
	assert_int_equal(stat(unit_path(state, "mine/master.log"), &st), -1);
}

static void adding_asks_the_master_and_says_what_the_token_may_do(void **state)
{
	struct stat st;

	EXPECT(state, 0, "regatta 9.9 at https://127.0.0.1:", "context", "add", "lab", url, "--pin",
	       pin, "--token-file", unit_path(state, "token.txt"));
	assert_int_equal(stat(unit_path(state, "mine/contexts/lab.json"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	char *text = home_get(state, "mine/contexts/lab.json");
	char *want =
		xasprintf("{\"url\":\"%s\",\"pin\":\"%s\",\"token\":\"" TOKEN "\"}\n", url, pin);
	assert_string_equal(text, want);
	free(text);
	free(want);
	struct ran r = DRIVE(state, "context", "add", "lab2", url, "--pin", pin, "--token", TOKEN,
			     "--output", "json");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "\"checked\":true,\"scope\":\"submit\",\"version\":\"9.9\"}\n");
	ran_release(&r);
	no_master_was_started(state);
}

static void a_master_that_is_not_right_is_not_added(void **state)
{
	struct stat st;

	EXPECT(state, 4, "another server answers there, or the master has a new key", "context",
	       "add", "lab", url, "--pin", OTHER_PIN, "--token", TOKEN);
	EXPECT(state, 4, pin, "context", "add", "lab", url, "--pin", OTHER_PIN, "--token", TOKEN);
	EXPECT(state, 4, "is not of a CA that is trusted here: give its pin", "context", "add",
	       "lab", url, "--token", TOKEN);
	EXPECT(state, 4, "master 'lab': the token is wrong, revoked or too old", "context", "add",
	       "lab", url, "--pin", pin, "--token", "another");
	EXPECT(state, 8, "master 'lab': nobody listens on port 1 of 127.0.0.1", "context", "add",
	       "lab", "https://127.0.0.1:1", "--pin", pin, "--token", TOKEN);
	EXPECT(state, 8, "--no-check adds it without asking", "context", "add", "lab",
	       "https://127.0.0.1:1", "--pin", pin, "--token", TOKEN);
	home_put(state, "old-api", "");
	EXPECT(state, 3, "does not know this call: it is of another version", "context", "add",
	       "lab", url, "--pin", pin, "--token", TOKEN);
	assert_int_equal(stat(unit_path(state, "mine/contexts/lab.json"), &st), -1);
	EXPECT(state, 0, "was added without asking", "context", "add", "lab", url, "--pin",
	       OTHER_PIN, "--token", TOKEN, "--no-check");
	EXPECT(state, 4, "master 'lab': TLS: the server's key is", "ps", "--master", "lab");
	no_master_was_started(state);
}

static void bad_words_are_refused_before_anything_is_dialled(void **state)
{
	static const struct {
		const char *name, *url, *pin, *token, *why;
	} cases[] = {
		{"Lab", "https://a:1", OTHER_PIN, "t", "cannot be the name of a context"},
		{"../lab", "https://a:1", OTHER_PIN, "t", "cannot be the name of a context"},
		{"a/b", "https://a:1", OTHER_PIN, "t", "cannot be the name of a context"},
		{"-lab", "https://a:1", OTHER_PIN, "t", "unknown option"},
		{"", "https://a:1", OTHER_PIN, "t", "cannot be the name of a context"},
		{"local", "https://a:1", OTHER_PIN, "t", "is your own master"},
		{"lab", "a:1", OTHER_PIN, "t", "is no URL of a master"},
		{"lab", "ftp://a:1", OTHER_PIN, "t", "is no URL of a master"},
		{"lab", "https://a:1/page", OTHER_PIN, "t", "and nothing more"},
		{"lab", "https://u:p@a:1", OTHER_PIN, "t", "and nothing more"},
		{"lab", "http://10.0.0.1:1", "", "t", "plain http is for this machine only"},
		{"lab", "http://localhost.evil:1", "", "t", "plain http is for this machine only"},
		{"lab", "http://127.0.0.1:1", OTHER_PIN, "t", "a pin is for https"},
		{"lab", "https://a:1", "sha1//x", "t", "is no pin"},
		{"lab", "https://a:1", OTHER_PIN, "two words", "characters that no token can have"},
		{"lab", "https://a:1", OTHER_PIN, "", "the token is empty"},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		EXPECT(state, 2, cases[i].why, "context", "add", cases[i].name, cases[i].url,
		       "--pin", cases[i].pin, "--token", cases[i].token);
	EXPECT(state, 2, "a token is needed", "context", "add", "lab", url, "--pin", pin);
	EXPECT(state, 2, "NAME and URL are needed", "context", "add", "lab", "--pin", pin);
	EXPECT(state, 2, "exclude each other", "context", "add", "lab", url, "--token", "x",
	       "--token-file", "y");
	EXPECT(state, 3, "read the token from '/nowhere'", "context", "add", "lab", url,
	       "--token-file", "/nowhere");
	EXPECT(state, 2, "--pin goes with add", "context", "list", "--pin", "x");
	EXPECT(state, 2, "did you mean 'remove'?", "context", "remov");
	EXPECT(state, 2, "is an unexpected argument", "context", "use", "a", "b");
	EXPECT(state, 2, "NAME is missing", "context", "use");
	EXPECT(state, 2, "unknown option '--master'", "plan", "--master", "lab", "--", "true");
}

static void names_are_listed_chosen_shown_and_removed(void **state)
{
	add(state, "lab");
	add(state, "zoo");
	struct ran r = DRIVE(state, "context", "list");
	assert_has(&r.out, "*  local  your own master");
	assert_has(&r.out, "   lab    https://127.0.0.1:");
	ran_release(&r);
	EXPECT(state, 0, "", "context", "use", "lab");
	r = DRIVE(state, "context", "ls", "--output", "json");
	assert_has(&r.out, "{\"name\":\"local\",\"url\":null,\"pin\":null,\"current\":false}");
	assert_has(&r.out, "\",\"current\":true},{\"name\":\"zoo\"");
	ran_release(&r);
	r = DRIVE(state, "context", "show");
	assert_has(&r.out, "name    lab (the current one)\nurl     https://127.0.0.1:");
	assert_has(&r.out, pin);
	assert_has_not(&r.out, TOKEN);
	ran_release(&r);
	r = DRIVE(state, "words", "contexts");
	assert_string_equal(r.out.p, "local\nlab\nzoo\n");
	ran_release(&r);
	EXPECT(state, 3, "no context 'lob': did you mean 'lab'?", "context", "use", "lob");
	EXPECT(state, 3, "no context 'lob': did you mean 'lab'?", "context", "remove", "lob");
	EXPECT(state, 3, "--master: no context 'lob': did you mean 'lab'?", "ps", "--master",
	       "lob");
	EXPECT(state, 0, "commands go to your own master now", "context", "remove", "lab");
	EXPECT(state, 0, "", "context", "use", "zoo");
	assert_int_equal(unlink(unit_path(state, "mine/contexts/zoo.json")), 0);
	EXPECT(state, 3, "'regatta context use': no context 'zoo'", "ps");
	EXPECT(state, 0, "", "context", "use", "local");
	no_master_was_started(state);
}

static void a_token_that_others_can_read_is_refused(void **state)
{
	add(state, "lab");
	assert_int_equal(chmod(unit_path(state, "mine/contexts/lab.json"), 0640), 0);
	EXPECT(state, 4, "is open to others (mode 0640): chmod 600 it", "ps", "--master", "lab");
	EXPECT(state, 0, "is open to others", "context", "list");
	home_put(state, "mine/contexts/lab.json", "{\"url\":");
	EXPECT(state, 2, "contexts/lab.json", "ps", "--master", "lab");
	home_put(state, "mine/contexts/lab.json", "{\"url\":\"https://a:1\"}");
	EXPECT(state, 2, "has no url or no token", "ps", "--master", "lab");
	home_put(state, "mine/contexts/current", "../x\n");
	EXPECT(state, 2, "has no name of a context", "ps");
	no_master_was_started(state);
}

static void the_flag_comes_before_the_environment_and_that_before_the_current_one(void **state)
{
	add(state, "lab");
	home_put(state, "mine/contexts/dead.json",
		 "{\"url\":\"https://127.0.0.1:1\",\"token\":\"x\"}");
	EXPECT(state, 0, "", "context", "use", "dead");
	EXPECT(state, 8, "master 'dead'", "ps");
	setenv("REGATTA_MASTER", "lab", 1);
	EXPECT(state, 0, "", "ps");
	EXPECT(state, 8, "master 'dead'", "ps", "--master", "dead");
	EXPECT(state, 0, "REGATTA_MASTER is set to 'lab' and overrides the context", "context",
	       "use", "dead");
	setenv("REGATTA_MASTER", "nosuch", 1);
	EXPECT(state, 3, "REGATTA_MASTER: no context 'nosuch'", "ps");
	EXPECT(state, 0, "", "ps", "--master=lab");
	setenv("REGATTA_MASTER", "", 1);
	EXPECT(state, 8, "master 'dead'", "ps");
	no_master_was_started(state);
	/* The own one has a name too, and --stop means no other. */
	struct ran r = DRIVE(state, "ps", "--master", "local", "--output", "json");
	ran_release(&r);
	setenv("REGATTA_MASTER", "lab", 1);
	EXPECT(state, 0, "stopped", "master", "--stop");
	EXPECT(state, 0, "", "ps");
}

static void a_url_takes_its_token_from_the_environment(void **state)
{
	EXPECT(state, 2, "REGATTA_TOKEN (and REGATTA_PIN) must be set, or give it a name", "ps",
	       "--master", url);
	setenv("REGATTA_TOKEN", TOKEN, 1);
	EXPECT(state, 4, "is not of a CA that is trusted here", "ps", "--master", url);
	setenv("REGATTA_PIN", pin, 1);
	EXPECT(state, 0, "", "ps", "--master", url);
	setenv("REGATTA_TOKEN", "another", 1);
	EXPECT(state, 4, "the token is wrong, revoked or too old", "ps", "--master", url);
	unsetenv("REGATTA_TOKEN");
	unsetenv("REGATTA_PIN");
	EXPECT(state, 8, "resolve 'no-such-host.invalid'", "context", "add", "x",
	       "https://no-such-host.invalid:1", "--token", "x");
	no_master_was_started(state);
}

static void every_command_talks_to_the_named_master(void **state)
{
	static const char *const commands[][4] = {
		{"ps"},		 {"status", "job"},  {"logs", "job"},	 {"events", "job"},
		{"kill", "job"}, {"cleanup", "job"}, {"metrics", "job"}, {"ui", "--print"},
	};

	home_put(state, "events.jsonl", "{\"seq\":1,\"kind\":\"accepted\"}\n");
	home_put(state, "metrics.json", "{\"metrics\":{}}");
	home_put(state, "job-0.out", "hello\n");
	add(state, "lab");
	setenv("REGATTA_MASTER", "lab", 1);
	for (size_t i = 0; i < COUNT(commands); i++) {
		struct ran r = drive(state, commands[i]);
		if (r.code != 0)
			fail_msg("%s: %.*s", commands[i][0], STR_ARG(buf_str(&r.err)));
		ran_release(&r);
	}
	struct ran r = DRIVE(state, "status", "job");
	assert_has(&r.out, "files   /there/job-abcd on the machine of master 'lab'\n");
	assert_has_not(&r.out, "logs    ");
	ran_release(&r);
	r = DRIVE(state, "cleanup", "job");
	assert_string_equal(r.out.p, "removed /runs/gone on the machine of master 'lab'\n");
	ran_release(&r);
	no_master_was_started(state);
}

static void a_run_sends_its_source_and_nothing_that_is_of_this_machine(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n" SUCCEEDED "\n");
	home_put(state, "file.txt", "x");
	add(state, "lab");
	setenv("REGATTA_MASTER", "lab", 1);
	setenv("LANG", "C.UTF-8", 1);
	char *source = xasprintf("source=%s", unit_path(state, "file.txt"));
	struct ran r = DRIVE(state, "run", "--set", source, "--", "true");
	free(source);
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd succeeded");
	assert_has(&r.out, "files   /there/job-abcd on the machine of master 'lab'\n");
	assert_has_not(&r.err, "no source");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "PUT /api/v1/blobs/"), 1);
	assert_int_equal(home_count(state, "requests.log", "\"LANG\":\"C.UTF-8\""), 1);
	assert_int_equal(home_count(state, "requests.log", "\"PATH\":"), 0);
	assert_int_equal(home_count(state, "requests.log", "\"HOME\":"), 0);
	EXPECT(state, 0, "no source: the job runs in '", "run", "--", "true");
	unsetenv("LANG");
	no_master_was_started(state);
}

static void an_interrupt_cancels_the_run_of_the_other_master(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	add(state, "lab");
	struct driven d = DRIVE_BEGIN(state, "run", "--master", "lab", "--", "true");
	drive_await(d, "job-abcd: running");
	kill(d.pid, SIGINT);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 7);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/cancel {\"hurry\":false}"), 1);
}

static void a_master_that_comes_back_is_dialled_again(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n" SUCCEEDED "\n");
	home_put(state, "job-0.out", "0123456789\n");
	add(state, "lab");
	home_put(state, "fault-die-watch", "x");
	struct driven d = DRIVE_BEGIN(state, "run", "--master", "lab", "--", "true");
	drive_await(d, "the connection to the master is lost: dialling again; the run goes on");
	no_master_was_started(state);
	start_other(state);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd succeeded");
	ran_release(&r);

	home_put(state, "fault-die-log", "x");
	d = DRIVE_BEGIN(state, "logs", "job", "-f", "--master", "lab");
	home_await(state, "requests.log", "&follow=1", 1);
	start_other(state);
	r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "0123456789\n");
	ran_release(&r);
	no_master_was_started(state);
}

static pid_t pid_of_other(void **state)
{
	char *text = home_get(state, "lock");
	pid_t pid = (pid_t)strtol(text, NULL, 10);

	free(text);
	assert_true(pid > 1);
	return pid;
}

static void a_stopped_master_is_told_after_three_seconds(void **state)
{
	add(state, "lab");
	pid_t pid = pid_of_other(state);
	kill(pid, SIGSTOP);
	struct driven far = DRIVE_BEGIN(state, "ps", "--master", "lab");
	as_other();
	struct driven own = DRIVE_BEGIN(state, "ps");
	drive_await(far,
		    "master 'lab' has not answered for 3 s: it is stopped, very busy or cut off");
	drive_await(own, "the master has not answered for 3 s: it is stopped");
	kill(pid, SIGCONT);
	struct ran r = drive_end(far);
	assert_int_equal(r.code, 0);
	ran_release(&r);
	r = drive_end(own);
	assert_int_equal(r.code, 0);
	ran_release(&r);
}

static void say_where_it_runs(void)
{
	CLEANUP(freep) char *text = xasprintf("%s %s " TOKEN, url, pin);

	setenv("TEST_MASTER", text, 1);
}

static void masters_on_machines_of_a_provider_become_contexts(void **state)
{
	struct stat st;

	say_where_it_runs();
	struct ran r = DRIVE(state, "context", "aws");

	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd");
	assert_has(&r.out, url);
	assert_has(&r.out, "it has not said where it is");
	assert_has_not(&r.out, TOKEN);
	ran_release(&r);
	assert_int_equal(stat(unit_path(state, "mine/contexts/job-abcd.json"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(unit_path(state, "mine/contexts/job-efgh.json"), &st), -1);
	EXPECT(state, 0, "", "ps", "--master", "job-abcd");
	r = DRIVE(state, "context", "aws", "--region", "there", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "\"run\":\"job-abcd\"");
	assert_has(&r.out, "\"region\":\"there\"");
	assert_has_not(&r.out, TOKEN);
	ran_release(&r);
	setenv("TEST_MASTER", "", 1);
	/* One that cannot be read is left alone. */
	home_put(state, "mine/contexts/open.json", "{}");
	assert_int_equal(chmod(unit_path(state, "mine/contexts/open.json"), 0644), 0);
	EXPECT(state, 0, "no master runs on a machine there", "context", "aws");
	assert_int_equal(stat(unit_path(state, "mine/contexts/job-abcd.json"), &st), 0);
	EXPECT(state, 0, "no master runs on a machine there", "context", "aws", "--region",
	       "there");
	assert_int_equal(stat(unit_path(state, "mine/contexts/job-abcd.json"), &st), -1);
	unsetenv("TEST_MASTER");
	EXPECT(state, 4, "nobody may look there", "context", "aws");
	EXPECT(state, 2, "context list: --region goes with aws", "context", "list", "--region",
	       "x");
	EXPECT(state, 2, "context aws: --namespace goes with kubernetes", "context", "aws",
	       "--namespace", "x");
	EXPECT(state, 2, "context kubernetes: --region goes with aws", "context", "kubernetes",
	       "--region", "x");
	no_master_was_started(state);
}

static void a_namespace_is_where_masters_in_a_cluster_are_looked_for(void **state)
{
	say_where_it_runs();
	struct ran r =
		DRIVE(state, "context", "kubernetes", "--namespace", "team", "--output", "json");

	unsetenv("TEST_MASTER");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "\"run\":\"job-abcd\"");
	assert_has(&r.out, "\"region\":\"team\"");
	ran_release(&r);
}

/* As the search for masters writes it. */
static void put_found_context(void **state, const char *run, const char *key)
{
	CLEANUP(freep) char *name = xasprintf("mine/contexts/%s.json", run);
	CLEANUP(freep)
	char *text =
		xasprintf("{\"url\":\"%s\",\"pin\":\"%s\",\"token\":\"" TOKEN "\",\"run\":\"%s\"}",
			  url, key, run);

	assert_int_equal(file_mkdir_p(unit_path(state, "mine/contexts"), 0700, NULL), 0);
	assert_int_equal(
		file_write_atomic(unit_path(state, name), str_from(text), 0600, false, NULL), 0);
}

static void a_run_that_another_machine_started_is_ended_from_here(void **state)
{
	home_put(state, "imported",
		 "yes"); /* the other master has it, the own one does not know it */
	put_found_context(state, "afar-abcd", pin);
	struct ran r = DRIVE(state, "kill", "afar-abcd", "--now");

	assert_int_equal(r.code, 0);
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/afar-abcd/cancel {\"hurry\":true}"),
			 1);
	EXPECT(state, 3, "", "kill", "afar-abcd", "--master", "local");
	EXPECT(state, 3, "", "kill", "afar-efgh");
	/* By the beginning of its name, if no other run has the same. */
	EXPECT(state, 0, "", "kill", "afar");
	assert_int_equal(home_count(state, "requests.log", "/afar/cancel"), 1);
	put_found_context(state, "afar-efgh", pin);
	EXPECT(state, 3, "no run of that name", "kill", "afar");
	EXPECT(state, 0, "", "kill", "afar-e");
}

static void the_beginning_of_a_name_shows_a_run_that_another_machine_started(void **state)
{
	home_put(state, "imported", "yes");
	put_found_context(state, "afar-abcd", pin);
	EXPECT(state, 0, "", "events", "afar-a");
	assert_int_equal(home_count(state, "requests.log", "/afar-a/events"), 1);
	/* A context that somebody has called so is no run. */
	home_put(state, "mine/contexts/afar.json",
		 "{\"url\":\"https://127.0.0.1:1\",\"token\":\"" TOKEN "\"}");
	assert_int_equal(chmod(unit_path(state, "mine/contexts/afar.json"), 0600), 0);
	EXPECT(state, 0, "", "events", "afar");
	assert_int_equal(home_count(state, "requests.log", "/afar/events"), 1);
}

static void why_the_master_of_a_found_run_cannot_be_asked_is_said(void **state)
{
	put_found_context(state, "gone", OTHER_PIN);
	EXPECT(state, 4, "another server answers there", "kill", "gone");
	EXPECT(state, 3, "another server answers there", "status", "gone");
	assert_int_equal(chmod(unit_path(state, "mine/contexts/gone.json"), 0644), 0);
	EXPECT(state, 4, "is open to others", "kill", "gone");
}

static void the_old_client_finds_its_master_by_address_and_port(void **state)
{
	const char *port = strrchr(url, ':') + 1;

	EXPECT(state, 4, "look for the master https://127.0.0.1:", "paddle", "--action", "status",
	       "--master_server_public_ip", "127.0.0.1", "--master_server_port", port);
	say_where_it_runs();
	EXPECT(state, 3, "no master runs at https://127.0.0.2:5436; one ends with its run",
	       "paddle", "--action", "cleanup", "--master_server_public_ip", "127.0.0.2");
	struct ran r = DRIVE(state, "paddle", "--action", "status", "--master_server_public_ip",
			     "127.0.0.1", "--master_server_port", port);

	unsetenv("TEST_MASTER");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "all is well\n");
	ran_release(&r);
	/* It is known now. */
	EXPECT(state, 0, "", "paddle", "--action", "status", "--master_server_public_ip",
	       "127.0.0.1", "--master_server_port", port);
}

#define PHASES ",\"phases\":{\"accepted\":1,\"running\":2,\"collecting\":3,\"cleaning\":4}"
#define HANDED(rest) RUN("running", PHASES ",\"master_url\":\"https://127.0.0.1:1\"" rest)

/* The own master hears last of what became of a run that it has handed over.  Of both masters who watches gets one
 * object, and the next one after a cancel. */
static void a_state_that_the_other_master_has_left_is_not_said_again(void **state)
{
	add(state, "job-abcd");
	home_put(state, "watch.jsonl", RUN("cleaning", PHASES) "\n");
	home_put(state, "cancelled.json", SUCCEEDED "\n");
	home_put(state, "mine/watch.jsonl", HANDED("") "\n");
	home_put(state, "mine/cancelled.json", SUCCEEDED "\n");
	struct driven d = DRIVE_BEGIN(state, "run", "--", "true");
	drive_await(d, "job-abcd: cleaning\n");
	home_put(state, "mine/watch.jsonl", HANDED(",\"waiting\":[{\"why\":\"the end\"}]") "\n");
	EXPECT(state, 0, "", "kill", "job", "--master", "job-abcd");
	drive_await(d, "job-abcd: waiting: the end\n");
	EXPECT(state, 0, "", "kill", "job", "--master", "local");
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_string_equal(r.err.p, "regatta: job-abcd: running\n"
				     "regatta: job-abcd: cleaning\n"
				     "regatta: job-abcd: waiting: the end\n");
	ran_release(&r);
	EXPECT(state, 0, "", "master", "--stop", "--cancel");
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(adding_asks_the_master_and_says_what_the_token_may_do),
		T(a_master_that_is_not_right_is_not_added),
		T(bad_words_are_refused_before_anything_is_dialled),
		T(names_are_listed_chosen_shown_and_removed),
		T(a_token_that_others_can_read_is_refused),
		T(the_flag_comes_before_the_environment_and_that_before_the_current_one),
		T(a_url_takes_its_token_from_the_environment),
		T(every_command_talks_to_the_named_master),
		T(a_run_sends_its_source_and_nothing_that_is_of_this_machine),
		T(an_interrupt_cancels_the_run_of_the_other_master),
		T(a_master_that_comes_back_is_dialled_again),
		T(a_stopped_master_is_told_after_three_seconds),
		T(masters_on_machines_of_a_provider_become_contexts),
		T(a_namespace_is_where_masters_in_a_cluster_are_looked_for),
		T(a_run_that_another_machine_started_is_ended_from_here),
		T(the_beginning_of_a_name_shows_a_run_that_another_machine_started),
		T(why_the_master_of_a_found_run_cannot_be_asked_is_said),
		T(the_old_client_finds_its_master_by_address_and_port),
		T(a_state_that_the_other_master_has_left_is_not_said_again),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("contexts", tests, NULL, NULL);
}
