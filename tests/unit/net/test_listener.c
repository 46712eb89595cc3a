/* Listeners and dials: unix sockets of any length, dead files, ports, full tables. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <arpa/inet.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/dial.h"
#include "net/listener.h"
#include "sys/loop.h"

struct accepted {
	int n, fd;
	struct listener **free_me;
};

static void on_accept(void *ctx, int fd)
{
	struct accepted *a = ctx;

	a->n++;
	if (a->fd >= 0)
		close(a->fd);
	a->fd = fd;
	if (a->free_me)
		*a->free_me = listener_free(*a->free_me);
}

struct place {
	struct loop *loop;
	char base[64], *dir;
};

static void run_until(struct place *p, const int *counter, int at_least)
{
	int64_t give_up = clock_boot_ms() + 5000;

	while (*counter < at_least && clock_boot_ms() < give_up)
		loop_round(p->loop, 50);
	assert_true(*counter >= at_least);
}

static void quiet(struct place *p)
{
	for (int i = 0; i < 10; i++)
		loop_round(p->loop, 0);
}

static int setup_place(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));
	struct err err;

	snprintf(p->base, sizeof(p->base), "/tmp/regatta-conn-XXXXXX");
	if (!mkdtemp(p->base))
		return -1;
	/* Longer than sun_path. */
	p->dir = xasprintf("%s/%0100d/%0100d", p->base, 1, 2);
	if (file_mkdir_p(p->dir, 0700, &err) < 0)
		return -1;
	p->loop = loop_new();
	*state = p;
	return 0;
}

static int teardown_place(void **state)
{
	struct place *p = *state;
	struct err err;

	loop_free(p->loop);
	if (file_remove_tree(p->base, &err) < 0)
		return -1;
	free(p->dir);
	free(p);
	return 0;
}

static void listen_and_dial(struct place *p, const char *dir)
{
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	struct stat st;
	char *path = xasprintf("%s/link.sock", dir);
	int fd = -1;

	assert_int_equal(listen_unix(p->loop, dir, "link.sock", on_accept, &a, &li, &err), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(dial_unix(dir, "link.sock", 1000, &fd, &err), 0);
	run_until(p, &a.n, 1);
	assert_int_equal(socket_peer_uid(a.fd), getuid());
	assert_int_equal(write(fd, "x", 1), 1);
	listener_free(li);
	assert_int_equal(lstat(path, &st), -1);
	close(fd);
	close(a.fd);
	free(path);
}

static void a_short_path_works(void **state)
{
	struct place *p = *state;

	listen_and_dial(p, p->base);
}

static void a_path_longer_than_sun_path_works(void **state)
{
	struct place *p = *state;

	listen_and_dial(p, p->dir);
}

static void a_second_listener_is_a_conflict(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL, *second = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};

	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &second, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_null(second);
	listener_free(li);
	if (a.fd >= 0)
		close(a.fd);
}

static void leave_dead_socket(struct place *p)
{
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	char *path = xasprintf("%s/s", p->dir), *aside = xasprintf("%s/aside", p->dir);

	/* As if its process had been killed: the file stays. */
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(rename(path, aside), 0);
	listener_free(li);
	assert_int_equal(rename(aside, path), 0);
	free(path);
	free(aside);
}

static void a_dead_socket_is_replaced_and_nobody_answers_there(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	int fd = -1;

	leave_dead_socket(p);
	assert_int_equal(dial_unix(p->dir, "s", 1000, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(dial_unix(p->dir, "s", 1000, &fd, &err), 0);
	run_until(p, &a.n, 1);
	listener_free(li);
	close(fd);
	close(a.fd);
}

static void somebody_elses_socket_is_left_alone_at_the_end(void **state)
{
	struct place *p = *state;
	struct listener *old = NULL, *new = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	char *path = xasprintf("%s/s", p->dir);

	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &old, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &new, &err), 0);
	listener_free(old);
	assert_true(file_exists(path));
	listener_free(new);
	assert_false(file_exists(path));
	free(path);
}

static void bad_places_are_refused(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	char *path = xasprintf("%s/file", p->dir), *nowhere = xasprintf("%s/nowhere", p->dir);
	char name[200];
	int fd = -1;

	assert_int_equal(file_write_atomic(path, STR("x"), 0600, false, &err), 0);
	assert_int_equal(listen_unix(p->loop, p->dir, "file", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_int_equal(listen_unix(p->loop, nowhere, "s", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(listen_unix(p->loop, p->dir, "a/b", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(listen_unix(p->loop, p->dir, name, on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(dial_unix(nowhere, "s", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(dial_unix(path, "s", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(dial_unix(p->dir, "none", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(dial_unix(p->dir, "", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(fd, -1);
	assert_null(li);
	free(path);
	free(nowhere);
}

static void the_accept_callback_may_free_the_listener(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1, .free_me = &li};
	struct err err = {0};
	int fd[2] = {-1, -1};

	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dial_unix(p->dir, "s", 1000, &fd[i], &err), 0);
	run_until(p, &a.n, 1);
	quiet(p);
	assert_int_equal(a.n, 1);
	assert_null(li);
	close(fd[0]);
	close(fd[1]);
	close(a.fd);
}

static void a_socket_of_another_kind_is_left_alone(void **state)
{
	struct place *p = *state;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	int datagram = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), fd = -1;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/d", p->base);
	assert_int_equal(bind(datagram, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(dial_unix(p->base, "d", 100, &fd, &err), -1);
	assert_int_equal(err.code, EPROTOTYPE);
	assert_int_equal(listen_unix(p->loop, p->base, "d", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.code, EPROTOTYPE);
	assert_true(file_exists(at.sun_path));
	/* And where no file can be made. */
	assert_int_equal(listen_unix(p->loop, "/proc/self", "d", on_accept, &a, &li, &err), -1);
	assert_null(li);
	close(datagram);
}

static void a_locked_directory_is_waited_for_but_not_for_ever(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	int lock = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	flock(lock, LOCK_UN);
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	/* Whoever holds the lock now is to decide about the file. */
	assert_int_equal(flock(lock, LOCK_EX), 0);
	listener_free(li);
	close(lock);
	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	listener_free(li);
}

static void a_full_table_of_descriptors_is_sat_out(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	struct rlimit old, tight;
	int fd = -1;

	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(dial_unix(p->dir, "s", 1000, &fd, &err), 0);
	int next = dup(fd);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = (struct rlimit){(rlim_t)next, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	int64_t began = clock_boot_ms();

	loop_round(p->loop, 1000);
	/* It pauses rather than spins: nothing wakes the loop before the pause is over. */
	loop_round(p->loop, 10);
	assert_true(clock_boot_ms() - began >= 9);
	assert_int_equal(a.n, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	run_until(p, &a.n, 1);
	listener_free(li);
	close(fd);
	close(a.fd);
}

/* Rule: who dials while nobody is let in waits, and is let in later. */
static void a_paused_listener_keeps_those_who_dial_waiting(void **state)
{
	struct place *p = *state;
	struct accepted got = {.fd = -1};
	struct listener *li = NULL;
	struct err err = {0};
	int fd = -1;

	assert_int_equal(listen_unix(p->loop, p->dir, "s", on_accept, &got, &li, &err), 0);
	listener_pause(li, true);
	assert_int_equal(dial_unix(p->dir, "s", 1000, &fd, &err), 0);
	quiet(p);
	assert_int_equal(got.n, 0);
	listener_pause(li, false);
	run_until(p, &got.n, 1);
	close(fd);
	close(got.fd);
	listener_free(li);
}

static void a_port_that_does_not_answer_times_out(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	struct err err = {0};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd[8], n = 0;

	(void)state;
	assert_int_equal(bind(server, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(server, 0), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&at, &len), 0);
	/* Nobody accepts: the backlog fills up, then a dial hangs. */
	while (n < 8 && dial_tcp("127.0.0.1", ntohs(at.sin_port), 20, &fd[n], &err) == 0)
		n++;
	assert_in_range(n, 1, 7);
	assert_int_equal(err.kind, ERR_TIMEOUT);
	assert_int_equal(socket_peer_uid(fd[0]), -1);
	assert_int_equal(socket_peer_uid(-1), -1);
	while (n > 0)
		close(fd[--n]);
	close(server);
	assert_int_equal(dial_tcp("127.0.0.1", ntohs(at.sin_port), -1, &fd[0], &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(dial_tcp("127.0.0.256", 80, 100, &fd[0], &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_null(listener_free(NULL));
}

#define PLACE(f) cmocka_unit_test_setup_teardown(f, setup_place, teardown_place)
int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE(a_short_path_works),
		PLACE(a_path_longer_than_sun_path_works),
		PLACE(a_second_listener_is_a_conflict),
		PLACE(a_dead_socket_is_replaced_and_nobody_answers_there),
		PLACE(somebody_elses_socket_is_left_alone_at_the_end),
		PLACE(bad_places_are_refused),
		PLACE(the_accept_callback_may_free_the_listener),
		PLACE(a_socket_of_another_kind_is_left_alone),
		PLACE(a_locked_directory_is_waited_for_but_not_for_ever),
		PLACE(a_full_table_of_descriptors_is_sat_out),
		PLACE(a_paused_listener_keeps_those_who_dial_waiting),
		cmocka_unit_test(a_port_that_does_not_answer_times_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
