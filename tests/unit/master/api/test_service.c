/* The routes over real sockets, client and master on one loop: what reaches the disk, and limits. */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/vec.h"
#include "link/layout.h"
#include "master/api/api.h"
#include "master/api/auth.h"
#include "master/api/slices.h"
#include "master/api/sse.h"
#include "master/api/watch.h"
#include "master/internal.h"
#include "net/digest.h"
#include "net/http_server.h"
#include "sys/loop.h"
#include "sys/pools.h"

#define WAIT_ROUNDS 2000 /* of 10 ms */

static VEC(char *) synced; /* paths of directories and files */

/* Instead of libc's; workers call it, one at a time here. */
int fsync(int fd)
{
	char link[64], path[512];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	*vec_push(&synced) = xstrdup(path);
	return (int)syscall(SYS_fsync, fd);
}

static bool was_synced(const char *path)
{
	for (size_t i = 0; i < synced.n; i++)
		if (!strcmp(synced.v[i], path))
			return true;
	return false;
}

static void forget_syncs(void)
{
	for (size_t i = 0; i < synced.n; i++)
		free(synced.v[i]);
	vec_release(&synced);
}

struct rig {
	char *home;
	struct master m;
	int port;
	char token[80];
};

static int make(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct master *m = &r->m;
	struct err err = {0};
	struct buf text;

	if (unit_make_dir((void **)&r->home) < 0)
		return -1;
	m->home = r->home;
	m->runs = map_new();
	list_init(&m->rounds);
	if (store_open(r->home, &m->store, &err) < 0)
		return -1;
	m->loop = loop_new();
	m->pools = pools_new(m->loop);
	pools_get(m->pools, "disk", 1); /* see fsync above */
	m->http = http_server_new(m->loop, &(struct http_limits){0}, &api_handler, m);
	m->slices = slices_new(m->loop);
	m->sse = sse_new(m);
	m->watch = watch_new(m->loop);
	m->auth = auth_new(m, &err);
	if (!m->auth || http_server_listen_unix(m->http, r->home, LAYOUT_API_SOCKET, &err) < 0 ||
	    http_server_listen_tcp(m->http, "127.0.0.1", 0, &r->port, &err) < 0)
		return -1;
	buf_init(&text, sizeof(r->token) - 1);
	if (file_read(unit_path((void **)&r->home, "token"), &text, &err) < 0)
		return -1;
	snprintf(r->token, sizeof(r->token), "%.*s", (int)text.n, text.p);
	buf_release(&text);
	forget_syncs();
	*state = r;
	return 0;
}

static int drop(void **state)
{
	struct rig *r = *state;
	struct master *m = &r->m;

	pools_free(m->pools);
	auth_free(m->auth);
	sse_free(m->sse);
	watch_free(m->watch);
	slices_free(m->slices);
	http_server_free(m->http);
	map_free(m->runs);
	loop_free(m->loop);
	store_close(m->store);
	int rc = unit_remove_dir((void **)&r->home);
	free(r);
	forget_syncs();
	return rc;
}

static int dial_unix(const struct rig *r)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/" LAYOUT_API_SOCKET, r->home);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static int dial_tcp(const struct rig *r)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)r->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Sends a request and runs the loop until its answer's headers are there. */
static const char *ask(struct rig *r, int fd, const char *method, const char *path,
		       const char *body)
{
	static char answer[16384];
	char request[4096];
	size_t n = 0;

	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n", method,
		 path, r->port, r->token);
	size_t at = strlen(request);
	if (body)
		snprintf(request + at, sizeof(request) - at, "Content-Length: %zu\r\n\r\n%s",
			 strlen(body), body);
	else
		snprintf(request + at, sizeof(request) - at, "\r\n");
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	for (int i = 0; i < WAIT_ROUNDS; i++) {
		loop_round(r->m.loop, 10);
		ssize_t got = recv(fd, answer + n, sizeof(answer) - 1 - n, MSG_DONTWAIT);
		n += got > 0 ? (size_t)got : 0;
		answer[n] = '\0';
		if (strstr(answer, "\r\n\r\n"))
			return answer;
	}
	fail_msg("no answer to %s %s", method, path);
	return NULL;
}

static bool has_status(const char *answer, const char *status)
{
	return strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, status, 3) == 0;
}

/* Rule: whoever is told that an archive is stored finds it after a power cut: bytes and name. */
static void an_archive_is_answered_when_its_name_is_on_disk(void **state)
{
	struct rig *r = *state;
	char *blobs = path_join(r->home, "blobs");
	uint8_t digest[SHA256_BYTES];
	char hex[65], path[128];
	int fd = dial_unix(r);

	sha256_of("archive", 7, digest);
	hex_encode(digest, sizeof(digest), hex);
	snprintf(path, sizeof(path), "/api/v1/blobs/%s", hex);
	assert_true(has_status(ask(r, fd, "PUT", path, "archive"), "201"));
	assert_true(was_synced(blobs));
	close(fd);
	free(blobs);
}

/* Rule: one token cannot have all the streams; the user's own commands are not counted. */
static void a_token_has_a_bounded_number_of_streams(void **state)
{
	struct rig *r = *state;
	int fds[API_MAX_STREAMS], one_more = dial_tcp(r), local = dial_unix(r);

	for (int i = 0; i < API_MAX_STREAMS; i++) {
		fds[i] = dial_tcp(r);
		assert_true(has_status(ask(r, fds[i], "GET", "/api/v1/events", NULL), "200"));
	}
	const char *answer = ask(r, one_more, "GET", "/api/v1/events", NULL);
	assert_true(has_status(answer, "429"));
	assert_non_null(strstr(answer, "Retry-After: "));
	assert_non_null(strstr(answer, "streams open"));
	assert_true(has_status(ask(r, local, "GET", "/api/v1/events", NULL), "200"));
	/* One that is closed makes room. */
	close(fds[0]);
	for (int i = 0; i < WAIT_ROUNDS && sse_viewers(r->m.sse) > API_MAX_STREAMS; i++)
		loop_round(r->m.loop, 10);
	assert_true(has_status(ask(r, one_more, "GET", "/api/v1/events", NULL), "200"));
	for (int i = 1; i < API_MAX_STREAMS; i++)
		close(fds[i]);
	close(one_more);
	close(local);
}

/* Rule: the program is there for everybody who knows its sum, and no other file is. */
static void the_program_is_given_to_who_knows_its_sum(void **state)
{
	struct rig *r = *state;
	char sum[SHA256_TEXT], path[128];
	uint64_t size;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = dial_tcp(r);

	assert_int_equal(sha256_fd_hex(self, sum, &size, NULL), 0);
	close(self);
	r->token[0] = '\0';
	snprintf(path, sizeof(path), "/bin/%s", sum);
	assert_true(has_status(ask(r, fd, "HEAD", path, NULL), "200"));
	sum[0] = sum[0] == '0' ? '1' : '0';
	snprintf(path, sizeof(path), "/bin/%s", sum);
	assert_true(has_status(ask(r, fd, "GET", path, NULL), "404"));
	close(fd);
}

int main(void)
{
#define test(t) cmocka_unit_test_setup_teardown(t, make, drop)
	const struct CMUnitTest tests[] = {
		test(an_archive_is_answered_when_its_name_is_on_disk),
		test(a_token_has_a_bounded_number_of_streams),
		test(the_program_is_given_to_who_knows_its_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
