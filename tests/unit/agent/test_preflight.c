/* Before the start an agent tells what its machine has, and tries to reach its peers. */
#include "unit.h"

#include "fake_master.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/preflight.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#define INPUTS "{\"argv0\":\"/bin/sh\",\"address\":\"127.0.0.1\",\"port\":0,\"preflight\":true}"

static struct sockaddr_in at(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A socket that is bound to a port of its own; *ret_port. */
static int bound(int *ret_port)
{
	struct sockaddr_in sa = at(0);
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	getsockname(fd, (struct sockaddr *)&sa, &len);
	*ret_port = ntohs(sa.sin_port);
	return fd;
}

static const struct doc *made_ready(struct fake *f)
{
	fake_agent(f);
	f->inputs = INPUTS;
	fake_meet(f);
	return doc_get(fake_wait(f, FRAME_READY), "preflight");
}

static const struct doc *ask(struct fake *f, int port, int other, int limit_ms)
{
	CLEANUP(freep)
	char *m = xasprintf(
		"{\"round\":7,\"peers\":[{\"rank\":1,\"address\":\"127.0.0.1\",\"port\":%d},"
		"{\"rank\":2,\"address\":\"127.0.0.1\",\"port\":%d}],\"limit_ms\":%d}",
		port, other, limit_ms);

	fake_send(f, FRAME_PREFLIGHT, m);
	return fake_wait(f, FRAME_PREFLIGHT_DONE);
}

static void ready_tells_what_the_machine_has(void **state)
{
	struct fake *f = *state;
	const struct doc *facts = made_ready(f);
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	assert_int_equal(fake_int(facts, "files"), files.rlim_cur);
	assert_true(fake_int(facts, "mtu") >= 1500); /* of the loopback interface */
	assert_in_range(fake_int(facts, "port"), 1024, 65535);
	assert_in_range(fake_int(facts, "time_ms"), clock_wall_ms() - 20000, clock_wall_ms());
	assert_true(fake_int(facts, "shm") >= -1);
}

static void what_is_taken_of_dev_shm_does_not_count(void **state)
{
	static const off_t mine = 4 << 20;
	char name[] = "/dev/shm/regatta-test-XXXXXX";
	struct fake *f = *state;
	struct statvfs shm;
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) < 0 || posix_fallocate(fd, 0, mine) != 0)
		skip();
	assert_int_equal(statvfs("/dev/shm", &shm), 0);
	assert_in_range(fake_int(made_ready(f), "shm"), 0,
			(int64_t)(shm.f_blocks * shm.f_frsize) - mine);
	close(fd);
}

static void a_peer_that_listens_is_reached(void **state)
{
	struct fake *f = *state;
	int port = (int)fake_int(made_ready(f), "port");
	const struct doc *done = ask(f, port, port, 20000); /* its own listener, twice */

	assert_int_equal(fake_int(done, "round"), 7);
	assert_int_equal(fake_int(done, "failed"), 0);
}

static void a_peer_that_is_not_there_is_named(void **state)
{
	struct fake *f = *state;
	int own = (int)fake_int(made_ready(f), "port"), port;
	CLEANUP(close_fdp) int fd = bound(&port); /* and does not listen */
	const struct doc *done = ask(f, own, port, 300);

	assert_true(fd >= 0);
	assert_int_equal(fake_int(done, "failed"), 1);
	assert_int_equal(fake_int(done, "rank"), 2);
	assert_null(doc_get(done, "reached"));
	assert_string_equal(fake_str(done, "reason"), "Connection refused");
}

/* As a peer does it. */
static void take_all(int fd)
{
	char bytes[4096];
	size_t got = 0;

	while (got < PREFLIGHT_BYTES) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		assert_true(n > 0);
		got += (size_t)n;
	}
	assert_int_equal(write(fd, "k", 1), 1);
}

static void a_peer_whose_agent_is_late_is_reached(void **state)
{
	struct fake *f = *state;
	int own = (int)fake_int(made_ready(f), "port"), port;
	CLEANUP(close_fdp) int fd = bound(&port);
	CLEANUP(freep)
	char *m = xasprintf(
		"{\"round\":1,\"peers\":[{\"rank\":1,\"address\":\"127.0.0.1\",\"port\":%d},"
		"{\"rank\":2,\"address\":\"127.0.0.1\",\"port\":%d}],\"limit_ms\":20000}",
		own, port);

	fake_send(f, FRAME_PREFLIGHT, m);
	for (int i = 0; i < 3; i++) { /* rounds of its loop, in the first of which it is refused */
		fake_send(f, FRAME_PING, "{}");
		fake_wait(f, FRAME_PONG);
	}
	assert_int_equal(listen(fd, 5), 0);
	CLEANUP(close_fdp) int in = accept(fd, NULL, NULL);

	take_all(in);
	assert_int_equal(fake_int(fake_wait(f, FRAME_PREFLIGHT_DONE), "failed"), 0);
}

/* Its agent is started again, say. */
static void a_peer_that_hangs_up_is_tried_again(void **state)
{
	struct fake *f = *state;
	int own = (int)fake_int(made_ready(f), "port"), port;
	CLEANUP(close_fdp) int fd = bound(&port);
	CLEANUP(freep)
	char *m = xasprintf(
		"{\"round\":1,\"peers\":[{\"rank\":1,\"address\":\"127.0.0.1\",\"port\":%d},"
		"{\"rank\":2,\"address\":\"127.0.0.1\",\"port\":%d}],\"limit_ms\":20000}",
		own, port);

	assert_int_equal(listen(fd, 5), 0);
	fake_send(f, FRAME_PREFLIGHT, m);
	close(accept(fd, NULL, NULL));
	CLEANUP(close_fdp) int in = accept(fd, NULL, NULL);

	take_all(in);
	assert_int_equal(fake_int(fake_wait(f, FRAME_PREFLIGHT_DONE), "failed"), 0);
}

static int connected(int port)
{
	struct sockaddr_in sa = at(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void send_bytes(int fd, size_t n)
{
	static const char zeros[PREFLIGHT_BYTES];

	assert_int_equal(send(fd, zeros, n, MSG_NOSIGNAL), n);
}

/* More than it reads from at a time, and each in two pieces. */
static void all_guests_are_answered(void **state)
{
	enum { GUESTS = 300 };
	struct fake *f = *state;
	int port = (int)fake_int(made_ready(f), "port"), fd[GUESTS];
	const struct timeval limit = {.tv_sec = 20};
	char c;

	for (int i = 0; i < GUESTS; i++) {
		fd[i] = connected(port);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		send_bytes(fd[i], 1000);
	}
	fake_send(f, FRAME_PING, "{}");
	fake_wait(f, FRAME_PONG);
	assert_int_equal(recv(fd[0], &c, 1, MSG_DONTWAIT), -1); /* not yet */
	for (int i = 0; i < GUESTS; i++) {
		send_bytes(fd[i], PREFLIGHT_BYTES - 1000);
		assert_int_equal(recv(fd[i], &c, 1, 0), 1);
		close(fd[i]);
	}
}

static void a_peer_that_large_messages_do_not_reach_is_named(void **state)
{
	struct fake *f = *state;
	int own = (int)fake_int(made_ready(f), "port"), port;
	CLEANUP(close_fdp) int fd = bound(&port);

	assert_int_equal(listen(fd, 5), 0); /* the kernel connects, and nobody reads */
	const struct doc *done = ask(f, port, own, 300);

	assert_int_equal(fake_int(done, "failed"), 1);
	assert_int_equal(fake_int(done, "rank"), 1);
	assert_true(doc_get(done, "reached")->b);
	assert_non_null(strstr(fake_str(done, "reason"), "32 KiB does not get through"));
}

static void the_listener_is_gone_when_the_job_starts(void **state)
{
	struct fake *f = *state;
	struct sockaddr_in sa = at((int)fake_int(made_ready(f), "port"));
	CLEANUP(close_fdp) int before = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP(close_fdp) int after = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(before, (struct sockaddr *)&sa, sizeof(sa)), 0);
	fake_start(f, "true");
	fake_wait(f, FRAME_EXIT);
	assert_int_equal(connect(after, (struct sockaddr *)&sa, sizeof(sa)), -1);
}

static void nobody_listens_unless_asked(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	f->inputs = "{\"argv0\":\"/bin/sh\",\"address\":\"127.0.0.1\",\"port\":0}";
	fake_meet(f);
	assert_null(doc_get(fake_wait(f, FRAME_READY), "preflight"));
}

int main(int argc, char **argv)
{
	int role = fake_role(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ready_tells_what_the_machine_has, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(what_is_taken_of_dev_shm_does_not_count, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_listens_is_reached, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_is_not_there_is_named, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_peer_whose_agent_is_late_is_reached, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_large_messages_do_not_reach_is_named,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_hangs_up_is_tried_again, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(all_guests_are_answered, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(the_listener_is_gone_when_the_job_starts,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(nobody_listens_unless_asked, fake_setup,
						fake_teardown),
	};

	return role >= 0 ? role : cmocka_run_group_tests(tests, NULL, NULL);
}
