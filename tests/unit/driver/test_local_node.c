/* local.node: a node is created once, and its removal is proven. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/path.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "own_mounts.h"
#include "sys/cgroup.h"
#include "sys/forkserver.h"
#include "sys/proctree.h"
#include "sys/title.h"

#define WAIT_MS 10000

struct bench {
	char *dir, *node;
	char spec[512];
	struct driver_row row;
};

static int setup(void **state)
{
	struct bench *b = xcalloc(1, sizeof(*b));
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	b->dir = dir;
	b->node = path_join(dir, "trainer-0.node");
	snprintf(b->spec, sizeof(b->spec), "{\"run_dir\":\"%s\",\"home\":\"%s\"}", b->dir, b->dir);
	b->row = (struct driver_row){.kind = "local.node",
				     .name = "trainer-0",
				     .install = "i",
				     .run = "run-abcd",
				     .role = "trainer",
				     .attempt = 1,
				     .spec = b->spec,
				     .token = "0123"};
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *dir = b->dir;

	local_node_driver.destroy(&b->row);
	free(b->node);
	free(b);
	return unit_remove_dir(&dir);
}

static pid_t id_of(const struct bench *b)
{
	int64_t pid = 0;

	assert_true(str_to_i64(str_from(b->row.id), &pid));
	return (pid_t)pid;
}

static bool alive(pid_t pid)
{
	struct proc_info p;

	return proc_read(pid, &p) && p.state != 'Z';
}

/* A text of agent.json; owned by the arena. */
static const char *config_value(struct bench *b, struct arena *a, const char *key)
{
	char *path = path_join(b->node, "agent.json");
	struct doc *d;
	struct buf text;

	buf_init(&text, 10000);
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_int_equal(json_parse(buf_str(&text), a, &d, NULL), 0);
	const char *v = arena_strdup(a, doc_str(d, key, STR("")).p);

	buf_release(&text);
	free(path);
	return v;
}

static void wait_gone(pid_t pid)
{
	for (int64_t until = clock_boot_ms() + WAIT_MS; alive(pid) && clock_boot_ms() < until;)
		poll(NULL, 0, 1);
}

static void the_table_knows_its_drivers(void **state)
{
	(void)state;
	assert_ptr_equal(driver_for("local.node"), &local_node_driver);
	assert_string_equal(local_node_driver.pool, "local");
	assert_null(driver_for("moon.base"));
}

static void a_node_is_created_once(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct bench *b = *state;
	struct stat st;

	assert_int_equal(local_node_driver.find(&b->row), OUTCOME_ABSENT);
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_ABSENT);
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = id_of(b);

	assert_true(alive(pid));
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_int_equal(id_of(b), pid);
	assert_int_equal(local_node_driver.find(&b->row), OUTCOME_DONE);
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_DONE);
	assert_int_equal(stat(b->node, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_string_equal(config_value(b, a, "run"), "run-abcd");
	assert_string_equal(config_value(b, a, "node"), "trainer-0");
	assert_string_equal(config_value(b, a, "token"), "0123");
	assert_string_equal(config_value(b, a, "link_name"), "link.sock");
	assert_int_equal(strlen(config_value(b, a, "mark")), 24);
}

static void only_its_owner_reads_the_token_of_a_node(void **state)
{
	struct bench *b = *state;
	CLEANUP(freep) char *config = path_join(b->node, "agent.json");
	struct stat sb;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_int_equal(stat(config, &sb), 0);
	assert_int_equal(sb.st_mode & 0777, 0600);
}

static void a_node_whose_directory_was_lost_is_not_of_this_boot(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *config = NULL;
	struct bench *b = *state;
	char boot[PROC_BOOT_ID];

	proc_boot_id(boot);
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_string_equal(config_value(b, a, "boot"), boot);
	config = path_join(b->node, "agent.json");
	pid_t pid = id_of(b);

	kill(pid, SIGKILL);
	wait_gone(pid);
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_string_equal(config_value(b, a, "boot"), boot);
	pid = id_of(b);
	kill(pid, SIGKILL);
	wait_gone(pid);
	assert_int_equal(unlink(config), 0); /* as a crash of the machine may do */
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_string_equal(config_value(b, a, "boot"), "lost");
}

static void an_agent_sees_only_what_it_may(void **state)
{
	struct bench *b = *state;
	char path[64];
	struct buf text;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)id_of(b));
	buf_init(&text, 1 << 20);
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_null(memmem(text.p, text.n, "canary", 6));
	assert_non_null(memmem(text.p, text.n, "LC_TIME=C", 9));
	assert_non_null(memmem(text.p, text.n, "PATH=", 5));
	assert_non_null(memmem(text.p, text.n, PROC_MARK "=", sizeof(PROC_MARK)));
	buf_release(&text);
}

static void a_node_whose_agent_was_killed_is_broken_and_can_be_mended(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct bench *b = *state;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	const char *mark = config_value(b, a, "mark");
	pid_t pid = id_of(b);

	kill(pid, SIGKILL);
	wait_gone(pid);
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_BROKEN);
	assert_int_equal(local_node_driver.find(&b->row), OUTCOME_ABSENT);
	b->row.token = "4567"; /* a new secret is taken over, the mark stays */
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_int_not_equal(id_of(b), pid);
	assert_string_equal(config_value(b, a, "token"), "4567");
	assert_string_equal(config_value(b, a, "mark"), mark);
}

static void destroying_ends_agent_and_directory(void **state)
{
	struct bench *b = *state;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = id_of(b);

	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(alive(pid));
	assert_false(file_exists(b->node));
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE); /* gone is gone */
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_ABSENT);
}

/* A master that leaves: whoever comes next asks again. */
static void a_destroy_that_was_stopped_is_held(void **state)
{
	struct bench *b = *state;
	const volatile int stop = 1;
	const struct deadline stopped = deadline_in(-1, &stop), over = deadline_in(0, NULL);

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = id_of(b);

	b->row.deadline = &stopped;
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_HELD);
	b->row.deadline = &over;
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_HELD);
	assert_true(alive(pid));
	b->row.deadline = NULL;
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(alive(pid));
}

/* Something that the job left: it carries the mark, or sits in the cgroup, or is on record. */
static pid_t leftover(const char *mark, const char *unified)
{
	char *entry = xasprintf("%s=%s.1", PROC_MARK, mark);
	pid_t pid = fork();

	if (pid == 0) {
		char *const argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "600", NULL};
		char *const env[] = {mark ? entry : NULL, NULL};

		setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
		if (unified) {
			struct cgroup cg = {0};

			snprintf(cg.unified, sizeof(cg.unified), "%s", unified);
			cgroup_make(&cg, false);
			cgroup_enter_unified(&cg);
		}
		execve("/bin/sleep", argv, env);
		_exit(127);
	}
	free(entry);
	for (int64_t until = clock_boot_ms() + WAIT_MS; clock_boot_ms() < until; poll(NULL, 0, 1)) {
		char path[64], name[64] = "";
		struct buf b;

		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		buf_init(&b, 64);
		if (file_read(path, &b, NULL) == 0)
			snprintf(name, sizeof(name), "%s", b.p);
		buf_release(&b);
		if (strcmp(name, "sleep\n") == 0)
			return pid;
	}
	fail_msg("the leftover does not start");
	return -1;
}

static void destroying_finds_what_carries_the_mark(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct bench *b = *state;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = leftover(config_value(b, a, "mark"), NULL);

	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(alive(pid));
	waitpid(pid, NULL, 0);
}

static void destroying_empties_and_removes_the_cgroup(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct bench *b = *state;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	const char *unified = config_value(b, a, "cgroup");

	if (!unified[0]) {
		print_message("# skipped: no cgroup can be made here\n");
		arena_free(a); /* skip() does not come back */
		skip();
	}
	pid_t pid = leftover("unknown", unified);

	assert_true(file_exists(unified));
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(alive(pid));
	assert_false(file_exists(unified));
	waitpid(pid, NULL, 0);
}

/* `attempt`: its directory in the node's. */
static void assert_record_is_found(struct bench *b, const char *attempt)
{
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = leftover("unknown", NULL), shim = leftover("its shim", NULL);
	char *dir = path_join(b->node, attempt);
	char *status = path_join(dir, "status");
	char text[240];

	assert_int_equal(file_mkdir_p(dir, 0700, NULL), 0);

	snprintf(text, sizeof(text),
		 "torn{\n{\"rec\":\"started\",\"pid\":%d,\"start\":%llu}\n"
		 "{\"rec\":\"job\",\"pid\":%d,\"start\":%llu}\n",
		 (int)shim, (unsigned long long)proc_id_of(shim).start, (int)pid,
		 (unsigned long long)proc_id_of(pid).start);
	assert_int_equal(file_write_atomic(status, str_from(text), 0600, false, NULL), 0);
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(alive(pid));
	assert_false(alive(shim));
	waitpid(shim, NULL, 0);
	waitpid(pid, NULL, 0);
	free(status);
	free(dir);
}

static void destroying_finds_what_is_on_record(void **state)
{
	assert_record_is_found(*state, ".");
	assert_record_is_found(*state, "a2");
}

/* Rule: a node that was replaced begins with a later attempt on its new machine, which has no earlier ones. */
static void destroying_finds_the_record_of_the_only_attempt(void **state)
{
	assert_record_is_found(*state, "a3");
}

static void another_nodes_processes_are_left_alone(void **state)
{
	struct bench *b = *state;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = leftover("ffffffffffffffffffffffff", NULL);

	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_true(alive(pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Waits until the agent holds its lock. */
static void wait_for_lock(const char *path)
{
	int64_t until = clock_boot_ms() + WAIT_MS;

	for (;;) {
		struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && fcntl(fd, F_GETLK, &held) == 0 && held.l_type == F_WRLCK)
			return;
		assert_true(clock_boot_ms() < until);
		poll(NULL, 0, 1);
	}
}

static void an_agent_that_has_cleaned_up_is_waited_for_not_searched(void **state)
{
	struct bench *b = *state;
	char *file = path_join(b->node, "agent.json");

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = id_of(b);

	/* It is on its way out. */
	wait_for_lock(file);
	CLEANUP(close_fdp) int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(file_write_all(fd, "clean\n", 6, NULL), 0);
	kill(pid, SIGTERM);
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	wait_gone(pid); /* it has let go of the node, and ends in its own time */
	assert_false(alive(pid));
	assert_false(file_exists(b->node));
	free(file);
}

static void a_forkserver_that_was_killed_is_made_anew(void **state)
{
	struct bench *b = *state;
	struct proc_info p;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_true(proc_read(id_of(b), &p));
	pid_t forkserver = p.ppid;
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_int_equal(kill(forkserver, SIGKILL), 0);
	b->row.id[0] = '\0';
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_true(proc_read(id_of(b), &p));
	assert_int_not_equal(p.ppid, forkserver);
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_DONE);
}

static void two_agents_of_a_node_are_one(void **state)
{
	struct bench *b = *state;
	char *file = path_join(b->node, "agent.json");

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t first = id_of(b);

	/* The answer of the first was lost. */
	b->row.id[0] = '\0';
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	wait_for_lock(file);
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_DONE);
	pid_t owner = id_of(b);
	int64_t until = clock_boot_ms() + WAIT_MS;

	/* Whoever came second sees the lock and leaves. */
	while (owner != first && alive(first) && clock_boot_ms() < until)
		poll(NULL, 0, 1);
	assert_true(alive(owner));
	assert_true(owner == first || !alive(first));
	free(file);
}

static void a_node_that_cannot_be_made_is_refused_with_the_reason(void **state)
{
	struct bench *b = *state;

	b->row.spec = "{\"run_dir\":\"/proc/no/such\",\"home\":\"/tmp\"}";
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_REFUSED);
	assert_non_null(strstr(b->row.err.msg, "node 'trainer-0'"));
	b->row.spec = b->spec;
	b->row.err = (struct err){0};
}

/* As many descriptors as are open now, and `more`. */
static void limit_descriptors(struct rlimit *before, rlim_t more)
{
	int next = dup(0);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	struct rlimit tight = {.rlim_cur = (rlim_t)next + more, .rlim_max = before->rlim_max};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
}

static void without_descriptors_nothing_is_left_and_nothing_is_said_to_be_gone(void **state)
{
	struct bench *b = *state;
	struct rlimit before;

	limit_descriptors(&before, 0);
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_REFUSED);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(b->row.err.code, EMFILE);
	assert_false(file_exists(b->node));
	b->row.err = (struct err){0};
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = id_of(b);

	limit_descriptors(&before, 0);
	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_UNSURE);
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_UNSURE);
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_HELD);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(alive(pid));
	assert_int_equal(local_node_driver.observe(&b->row), OUTCOME_DONE);
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(file_exists(b->node));
}

static void a_destroyed_node_goes_to_the_trash_whole(void **state)
{
	struct bench *b = *state;
	CLEANUP(freep) char *trash = path_join(b->dir, LAYOUT_TRASH);
	char **names;
	size_t n;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	assert_false(file_exists(b->node));
	assert_int_equal(file_list_tree(trash, 100, &names, &n, NULL), 0);
	assert_true(n > 0);
	assert_non_null(strstr(names[0], "run-abcd.trainer-0."));
	file_list_free(names, n);
}

static void a_directory_that_cannot_be_removed_is_held(void **state)
{
	struct bench *b = *state;
	char *busy = path_join(b->node, "busy");
	bool mounted = false;

	assert_int_equal(local_node_driver.create(&b->row), OUTCOME_DONE);
	pid_t pid = id_of(b);

	/* What a permission cannot do to root, a mount can. */
	if (geteuid() == 0 && mkdir(busy, 0700) == 0)
		mounted = mount("tmpfs", busy, "tmpfs", 0, "size=64k") == 0;
	if (geteuid() == 0 && !mounted) {
		print_message(
			"# skipped: root may remove everything, and nothing can be mounted\n");
		free(busy);
		skip();
	}
	CLEANUP(freep) char *trash = path_join(b->dir, LAYOUT_TRASH);
	assert_int_equal(file_write_atomic(trash, STR("in the way"), 0600, false, NULL), 0);
	chmod(b->dir, 0500);
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_HELD);
	assert_non_null(strstr(b->row.err.msg, "trainer-0"));
	assert_false(alive(pid)); /* but nobody is left */
	chmod(b->dir, 0700);
	if (mounted)
		umount(busy);
	b->row.err = (struct err){0};
	assert_int_equal(local_node_driver.destroy(&b->row), OUTCOME_DONE);
	free(busy);
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(the_table_knows_its_drivers),
		CASE(a_node_is_created_once),
		CASE(only_its_owner_reads_the_token_of_a_node),
		CASE(a_node_whose_directory_was_lost_is_not_of_this_boot),
		CASE(an_agent_sees_only_what_it_may),
		CASE(a_node_whose_agent_was_killed_is_broken_and_can_be_mended),
		CASE(destroying_ends_agent_and_directory),
		CASE(a_destroy_that_was_stopped_is_held),
		CASE(destroying_finds_what_carries_the_mark),
		CASE(destroying_empties_and_removes_the_cgroup),
		CASE(destroying_finds_what_is_on_record),
		CASE(destroying_finds_the_record_of_the_only_attempt),
		CASE(another_nodes_processes_are_left_alone),
		CASE(an_agent_that_has_cleaned_up_is_waited_for_not_searched),
		CASE(a_forkserver_that_was_killed_is_made_anew),
		CASE(two_agents_of_a_node_are_one),
		CASE(a_node_that_cannot_be_made_is_refused_with_the_reason),
		CASE(without_descriptors_nothing_is_left_and_nothing_is_said_to_be_gone),
		CASE(a_destroyed_node_goes_to_the_trash_whole),
		CASE(a_directory_that_cannot_be_removed_is_held),
	};

	if (argc == 3 && strcmp(argv[1], "node-agent") == 0)
		return agent_main(argv[2]);
	if (argc == 4 && strcmp(argv[1], "forkserver") == 0) {
		static const struct forkserver_role role = {agent_main, agent_orphan_ended};

		title_init(4, argv);
		return forkserver_serve(&role, argv[2]);
	}
	if (argc == 3 && strcmp(argv[1], "master") == 0)
		return 0; /* what a lonely agent starts */
	own_mounts(0);
	/* For an_agent_sees_only_what_it_may; the environment is looked at once. */
	setenv("AWS_SECRET_ACCESS_KEY", "canary", 1);
	setenv("LC_TIME", "C", 1);
	return cmocka_run_group_tests_name("driver: local.node", tests, NULL, NULL);
}
