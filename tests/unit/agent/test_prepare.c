/* Preparing a node for its job, and the reason when that fails. */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/config.h"
#include "agent/places.h"
#include "agent/ports.h"
#include "agent/prepare.h"
#include "agent/probe.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "fake_master.h"
#include "fmt/tar.h"
#include "link/layout.h"
#include "net/digest.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"

static void put(void **state, const char *name, const char *text, mode_t mode)
{
	assert_int_equal(
		file_write_atomic(unit_path(state, name), str_from(text), mode, false, NULL), 0);
}

/* A source archive with run.sh and lib/x; its digest as text. */
static void make_source(void **state, char sha[static 65])
{
	uint8_t digest[SHA256_BYTES];
	uint64_t size;
	struct err err = {0};

	assert_int_equal(file_mkdir_p(unit_path(state, "src/lib"), 0755, NULL), 0);
	put(state, "src/run.sh", "#!/bin/sh\ncat lib/x data/part/* one.csv\n", 0755);
	put(state, "src/lib/x", "from source\n", 0644);
	assert_int_equal(file_mkdir_p(unit_path(state, "blobs"), 0755, NULL), 0);
	int fd = open(unit_path(state, "blobs/new"), O_RDWR | O_CREAT, 0600);

	assert_int_equal(tar_pack(unit_path(state, "src"), fd, &err), 0);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(sha256_fd(fd, digest, &size, &err), 0);
	hex_encode(digest, sizeof(digest), sha);
	close(fd);
	CLEANUP(freep) char *from = xstrdup(unit_path(state, "blobs/new"));
	CLEANUP(freep) char *to = xasprintf("%s/blobs/%s", (char *)*state, sha);

	assert_int_equal(rename(from, to), 0);
}

static void make_data(void **state)
{
	assert_int_equal(file_mkdir_p(unit_path(state, "data/part"), 0755, NULL), 0);
	put(state, "data/part/a", "a\n", 0644);
	put(state, "data/part/b", "b\n", 0644);
	put(state, "data/part/c", "c\n", 0644);
	put(state, "one.csv", "1\n", 0644);
}

/* The machine of the master, whose archives are in blobs/; the job file is in the test's directory. */
struct place {
	char node[512], blobs[512], output[512];
	struct agent_config cfg;
};

static struct place *place(void **state, struct place *p)
{
	snprintf(p->node, sizeof(p->node), "%s", unit_path(state, "node"));
	snprintf(p->blobs, sizeof(p->blobs), "%s", unit_path(state, "blobs"));
	snprintf(p->output, sizeof(p->output), "%s", unit_path(state, "outputs/n-0"));
	p->cfg = (struct agent_config){
		.base_dir = *state, .blobs = p->blobs, .output_dir = p->output};
	assert_int_equal(mkdir(p->node, 0700), 0);
	return p;
}

static void source_and_data_are_put_in_place_once(void **state)
{
	char sha[65];
	struct err err = {0};
	struct message_data data[3] = {
		{.src = "data", .path = "data", .shard_index = 1, .shard_count = 2},
		{.src = "one.csv", .path = "one.csv", .shard_count = 1},
		{.path = "again", .shard_count = 1, .tar = true, .nblobs = 1}};
	struct message_blob source = {.sha256 = sha};
	struct message_inputs in = {.source = &source, .data = data, .ndata = 3};
	struct place p;

	place(state, &p);
	make_source(state, sha);
	make_data(state);
	data[2].blobs = &source;
	assert_true(prepare_is_long(&in));
	if (prepare_files(&in, &p.cfg, p.node, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(file_exists(unit_path(state, "node/" LAYOUT_WORK "/lib/x")));
	assert_true(file_exists(unit_path(state, "node/" LAYOUT_WORK "/one.csv")));
	assert_true(file_exists(unit_path(state, "node/" LAYOUT_WORK "/again/lib/x")));
	/* The second of two shards of three files: the middle one. */
	assert_false(file_exists(unit_path(state, "node/" LAYOUT_WORK "/data/part/a")));
	assert_true(file_exists(unit_path(state, "node/" LAYOUT_WORK "/data/part/b")));
	assert_false(file_exists(unit_path(state, "node/" LAYOUT_WORK "/data/part/c")));
	/* Again: nothing is touched. */
	put(state, "node/" LAYOUT_WORK "/mine", "x", 0644);
	assert_int_equal(prepare_files(&in, &p.cfg, p.node, &err), 0);
	assert_true(file_exists(unit_path(state, "node/" LAYOUT_WORK "/mine")));
	/* Other inputs: everything is new. */
	data[0].shard_count = 1;
	data[0].shard_index = 0;
	assert_int_equal(prepare_files(&in, &p.cfg, p.node, &err), 0);
	assert_false(file_exists(unit_path(state, "node/" LAYOUT_WORK "/mine")));
	assert_true(file_exists(unit_path(state, "node/" LAYOUT_WORK "/data/part/c")));
}

static void what_cannot_be_put_in_place_is_said(void **state)
{
	char sha[65], none[65], wrong[65], spoiled[80];
	struct place p;

	place(state, &p);
	make_source(state, sha);
	make_data(state);
	memset(none, 'a', 64);
	memset(wrong, 'b', 64);
	none[64] = wrong[64] = '\0';
	snprintf(spoiled, sizeof(spoiled), "blobs/%s", wrong);
	put(state, spoiled, "no tar", 0644);
	struct message_blob nowhere = {.sha256 = none}, other = {.sha256 = wrong};
	struct {
		struct message_inputs in;
		struct message_data data;
		enum err_kind kind;
		const char *says;
	} bad[] = {
		{{.source = &nowhere}, {0}, ERR_NOT_FOUND, "source: open"},
		{{.source = &other}, {0}, ERR_INVALID, "sha256"},
		{{.ndata = 1}, {.src = "no/data", .path = "d"}, ERR_NOT_FOUND, "no/data"},
		{{.ndata = 1}, {.src = "data", .path = "../out"}, ERR_INVALID, "leaves"},
		{{.ndata = 1},
		 {.src = "one.csv", .path = "d", .sha256 = none},
		 ERR_INVALID,
		 "wrong content"},
		{{.ndata = 1},
		 {.src = "one.csv", .path = "d", .md5 = "098f6bcd4621d373cade4e832627b4f6"},
		 ERR_INVALID,
		 "wrong content: its md5 is "},
		{{.ndata = 1},
		 {.src = "one.csv", .path = "d", .shard_count = 2},
		 ERR_INVALID,
		 "a single file"},
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = {0};

		bad[i].in.data = &bad[i].data;
		if (!bad[i].data.shard_count)
			bad[i].data.shard_count = 1;
		assert_int_equal(prepare_files(&bad[i].in, &p.cfg, p.node, &err), -1);
		if (err.kind != bad[i].kind || !strstr(err.msg, bad[i].says))
			fail_msg("%zu: %s", i, err.msg);
		assert_false(file_exists(unit_path(state, "node/" LAYOUT_WORK)));
	}
}

static void the_output_directory_is_there_before_the_job(void **state)
{
	struct err err = {0};
	struct message_inputs in = {.argv0 = "sh", .path = "/bin"};
	struct place p;

	place(state, &p);
	assert_int_equal(prepare_files(&in, &p.cfg, p.node, &err), 0);
	assert_true(file_exists(p.output));
	assert_false(file_exists(unit_path(state, "node/" LAYOUT_WORK))); /* nobody needs one */
	p.cfg.output_dir = "/proc/no/such";
	assert_int_equal(prepare_files(&in, &p.cfg, p.node, &err), -1);
	assert_non_null(strstr(err.msg, "output directory"));
}

/* On another machine there is no directory of the job file, and outputs wait in the node's own. */
static void places_depend_on_the_machine(void **state)
{
	struct message_inputs none = {0}, some = {.ndata = 1};
	struct agent_config here = {.base_dir = "/job", .output_dir = "/out/n"}, there = {0};
	struct {
		char *path;
		const char *want;
	} all[] = {
		{place_cwd(&here, "/n", &none), "/job"},
		{place_cwd(&here, "/n", &some), "/n/work"},
		{place_cwd(&there, "/n", &none), "/n/work"},
		{place_output(&here, "/n", 1), "/out/n"},
		{place_output(&here, "/n", 2), "/out/n.a2"},
		{place_output(&there, "/n", 1), "/n/output"},
		{place_output(&there, "/n", 3), "/n/output.a3"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		assert_string_equal(all[i].path, all[i].want);
		free(all[i].path);
	}
}

static void checks_name_the_command_and_the_directory(void **state)
{
	struct err err = {0};
	struct message_inputs in = {.argv0 = "sh", .path = "/bin"};

	assert_int_equal(prepare_check(&in, unit_path(state, "work"), &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(prepare_check(&in, *state, &err), 0);
	in.path = "";
	assert_int_equal(prepare_check(&in, *state, &err), 0); /* the usual places */
	in.argv0 = "pyhton3";
	assert_int_equal(prepare_check(&in, *state, &err), -1);
	assert_string_equal(err.msg, "command 'pyhton3' not found in PATH");
	assert_int_equal(prepare_check(&in, "/etc/passwd", &err), -1);
	assert_non_null(strstr(err.msg, "not a directory"));
}

/* Listens on a free port of the address; returns the descriptor. */
static int listen_at(const char *address, int *ret_port)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(probe_address(address, 0, &sa, &len));
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	*ret_port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void a_port_must_be_free(void **state)
{
	struct message_inputs in = {.address = "127.66.5.4"};
	const struct agent_config cfg = {.run = "a-bcde", .node = "worker-0"};
	struct port_claims claims = {0};
	struct err err = {0};
	struct sockaddr_storage sa;
	socklen_t len;
	char holder[64];
	int fd = listen_at("127.66.5.4", &in.port);

	(void)state;
	assert_int_equal(ports_claim(&claims, &in, &cfg, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "127.66.5.4 is taken by"));
	assert_non_null(strstr(err.msg, "choose another one with `port` of its role"));
	snprintf(holder, sizeof(holder), "process %d (", (int)getpid());
	assert_non_null(strstr(err.msg, holder));
	in.address = "127.66.5.5"; /* the other one does not listen there */
	assert_int_equal(ports_claim(&claims, &in, &cfg, &err), 0);
	close(fd);
	in.address = "127.66.5.4";
	assert_int_equal(ports_claim(&claims, &in, &cfg, &err), 0);
	in.address = "somewhere";
	assert_int_equal(ports_claim(&claims, &in, &cfg, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	in.address = "203.0.113.7"; /* not ours */
	assert_int_equal(ports_claim(&claims, &in, &cfg, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_true(probe_address("::1", 80, &sa, &len));
	assert_int_equal(sa.ss_family, AF_INET6);
	assert_false(probe_address("1.2.3", 80, &sa, &len));
}

/* A program that has just started does not listen yet. */
static void a_port_of_the_machine_is_kept_for_one_node(void **state)
{
	struct message_port port = {.count = 1, .any = true, .key = "env.MASTER_PORT"};
	const struct message_inputs in = {.address = "127.66.5.4", .ports = &port, .nports = 1};
	const struct agent_config one = {.run = "a-bcde", .node = "worker-0"};
	const struct agent_config two = {.run = "b-bcde", .node = "worker-0"};
	struct port_claims first = {0}, second = {0};
	struct err err = {0};
	int fd = listen_at("127.66.5.9", &port.first);

	(void)state;
	/* On any address. */
	assert_int_equal(ports_claim(&first, &in, &one, &err), -1);
	assert_non_null(strstr(err.msg, "on this machine is taken by process "));
	close(fd);
	assert_int_equal(ports_claim(&first, &in, &one, &err), 0);
	assert_int_equal(ports_claim(&first, &in, &one, &err), 0); /* again, after a reconnect */
	assert_int_equal(ports_claim(&second, &in, &two, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "is taken by worker-0 of run 'a-bcde': choose another one "
					"with env.MASTER_PORT"));
	ports_release(&first);
	assert_int_equal(ports_claim(&second, &in, &two, &err), 0);
	ports_release(&second);
}

/* Ports of several processes follow each other. */
static void every_port_of_a_range_is_checked(void **state)
{
	struct message_port port = {.count = 2, .key = "`port`"};
	const struct message_inputs in = {.address = "127.66.5.6", .ports = &port, .nports = 1};
	const struct agent_config cfg = {.run = "a-bcde", .node = "worker-0"};
	struct port_claims claims = {0};
	struct err err = {0};
	int taken, fd = listen_at("127.66.5.6", &taken);

	(void)state;
	port.first = taken - 1;
	assert_int_equal(ports_claim(&claims, &in, &cfg, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	close(fd);
}

/* ---- through the link ---- */

static void a_source_and_its_data_run(void **state)
{
	struct fake *f = *state;
	void *dir = f->dir;
	char sha[65];

	make_source(&dir, sha);
	make_data(&dir);
	f->config = arena_printf(f->arena, ",\"base_dir\":\"%s\",\"blobs\":\"%s/blobs\"", f->dir,
				 f->dir);
	fake_agent(f);
	fake_meet(f);
	const char *json = arena_printf(
		f->arena,
		"{\"source\":{\"sha256\":\"%s\"},\"data\":[{\"src\":\"data\",\"path\":\"data\"},{\"src\":\"%s/one.csv\",\"path\":\"one.csv\"}],\"argv0\":\"./run.sh\",\"path\":\"/bin\"}",
		sha, f->dir);

	fake_send(f, FRAME_INPUTS, json);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	fake_send(f, FRAME_INPUTS, json); /* again, as after a reconnect */
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	fake_send(
		f, FRAME_START,
		"{\"attempt\":1,\"argv\":[\"./run.sh\"],\"env\":{\"PATH\":\"/bin\"},\"cwd\":\"\",\"grace_ms\":100}");
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	assert_string_equal(f->out[STREAM_OUT].p, "from source\na\nb\nc\n1\n");
	fake_send(f, FRAME_INPUTS, json); /* nothing is unpacked over a job that ran */
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	fake_release(f);
}

/* The only process that the agent has; not the one of before. */
static pid_t preparer(struct fake *f, pid_t before)
{
	for (int i = 0; i < 5000; i++) {
		CLEANUP(proc_list_release) struct proc_list l = {0};

		proc_descendants(f->agent, &l);
		if (l.n == 1 && l.v[0].pid != before)
			return l.v[0].pid;
		poll(NULL, 0, 1);
	}
	fail_msg("the agent has no process that prepares");
	return 0;
}

static void prepare_from_pipe(struct fake *f, const char *sha)
{
	f->config = arena_printf(f->arena, ",\"base_dir\":\"%s\"", f->dir);
	fake_agent(f);
	fake_meet(f);
	assert_int_equal(mkfifo(fake_below(f, "pipe"), 0600), 0);
	fake_send(
		f, FRAME_INPUTS,
		arena_printf(
			f->arena,
			"{\"data\":[{\"src\":\"%s/pipe\",\"path\":\".\",\"unpack\":true,\"sha256\":\"%s\"}],\"argv0\":\"sh\",\"path\":\"/bin\"}",
			f->dir, sha));
}

static void work_that_was_killed_is_done_again(void **state)
{
	struct fake *f = *state;
	void *dir = f->dir;
	char sha[65];

	make_source(&dir, sha);
	prepare_from_pipe(f, sha);
	pid_t first = preparer(f, 0);

	fake_kill(first);
	pid_t second = preparer(f, first);

	assert_int_equal(rename(fake_below(f, arena_printf(f->arena, "blobs/%s", sha)),
				fake_below(f, "pipe")),
			 0);
	fake_kill(second);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	fake_release(f);
}

static void work_that_is_always_killed_is_given_up(void **state)
{
	struct fake *f = *state;
	pid_t last = 0;
	char sha[65];

	snprintf(sha, sizeof(sha), "%064d", 0);
	prepare_from_pipe(f, sha);
	for (int i = 0; i < 3; i++) {
		last = preparer(f, last);
		fake_kill(last);
	}
	const struct doc *ready = fake_wait(f, FRAME_READY);

	assert_false(doc_bool(ready, "ok", true));
	assert_string_equal(fake_str(ready, "reason"), "preparing was interrupted");
	fake_release(f);
}

static void an_unfit_node_says_why(void **state)
{
	static const struct {
		const char *json, *kind, *says;
	} bad[] = {
		{"{\"argv0\":\"pyhton3\",\"path\":\"/bin\"}", "not_found",
		 "command 'pyhton3' not found in PATH"},
		{"{\"argv0\":\"sh\",\"path\":\"/bin\",\"metrics\":[{\"name\":\"loss\",\"pattern\":\"(\"}]}",
		 "invalid", "loss"},
		{"{\"argv0\":\"sh\",\"path\":\"/bin\",\"data\":[{\"src\":\"no/data\",\"path\":\"d\"}]}",
		 "not_found", "no/data"},
	};
	struct fake *f = *state;

	f->config = arena_printf(f->arena, ",\"base_dir\":\"%s\"", f->dir);
	fake_agent(f);
	fake_meet(f);
	for (size_t i = 0; i < COUNT(bad); i++) {
		fake_send(f, FRAME_INPUTS, bad[i].json);
		const struct doc *r = fake_wait(f, FRAME_READY);

		assert_false(doc_bool(r, "ok", true));
		assert_string_equal(fake_str(r, "kind"), bad[i].kind);
		if (!strstr(fake_str(r, "reason"), bad[i].says))
			fail_msg("'%s' does not say '%s'", fake_str(r, "reason"), bad[i].says);
	}
	fake_release(f);
}

#define WHO "\"run\":\"r\",\"node\":\"n\",\"token\":\"t\""

static void a_configuration_that_cannot_be_used_ends_the_agent(void **state)
{
	static const char *const bad[] = {
		"", "{}", "{\"run\":\"r\"}", "[1]",
		"{\"run\":\"r\",\"node\":\"n\",\"token\":\"t\",\"link_dir\":\"d\",\"link_name\":\"l\",\"proto\":99}",
		/* another machine: a URL needs a pin, and is https without a path */
		"{" WHO ",\"master\":\"https://h:1\",\"proto\":1}",
		"{" WHO ",\"master\":\"http://h:1\",\"pin\":\"sha256//x\",\"proto\":1}",
		"{" WHO ",\"master\":\"https://h:1/x\",\"pin\":\"sha256//x\",\"proto\":1}",
		"{" WHO ",\"master\":\"h:1\",\"pin\":\"sha256//x\",\"proto\":1}"};
	struct fake *f = *state;

	fake_agent(f); /* a good one, to see that the same way works */
	fake_meet(f);
	fake_release(f);
	for (size_t i = 0; i < COUNT(bad); i++) {
		f->raw_config = bad[i];
		fake_agent(f);
		assert_int_not_equal(fake_agent_gone(f), 0);
	}
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
#define LINK_CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
	static const struct CMUnitTest tests[] = {
		CASE(source_and_data_are_put_in_place_once),
		CASE(what_cannot_be_put_in_place_is_said),
		CASE(the_output_directory_is_there_before_the_job),
		CASE(places_depend_on_the_machine),
		CASE(checks_name_the_command_and_the_directory),
		CASE(a_port_must_be_free),
		CASE(a_port_of_the_machine_is_kept_for_one_node),
		CASE(every_port_of_a_range_is_checked),
		LINK_CASE(a_source_and_its_data_run),
		LINK_CASE(work_that_was_killed_is_done_again),
		LINK_CASE(work_that_is_always_killed_is_given_up),
		LINK_CASE(an_unfit_node_says_why),
		LINK_CASE(a_configuration_that_cannot_be_used_ends_the_agent),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: prepare", tests, NULL, NULL);
}
