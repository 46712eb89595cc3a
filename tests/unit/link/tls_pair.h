#pragma once
/* Two ends of TLS on a socket pair, after the handshake. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "net/tls.h"
#include "net/tls_client.h"
#include "net/tls_transport.h"
#include "net/transport.h"

/* One key for all tests of a program. */
static inline struct tls_server *pair_server(void)
{
	static struct tls_server *server;
	struct err err = {0};
	void *dir = NULL;

	if (server)
		return server;
	assert_int_equal(unit_make_dir(&dir), 0);
	if (tls_server_open(dir, &server, &err) < 0)
		fail_msg("%s", err.msg);
	unit_remove_dir(&dir);
	return server;
}

/* ret[0] is the server's end; hands are not shaken yet. */
static inline void pair_begin(const int fd[static 2], struct transport ret[static 2])
{
	static char pin[TLS_PIN_SIZE];
	struct tls_trust trust = {.mode = TLS_PIN, .pin = pin};
	struct err err = {0};

	tls_server_pin(pair_server(), pin);
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	tls_accept(pair_server(), &ret[0], fd[0]);
	if (tls_client_begin(&ret[1], fd[1], &trust, "localhost", NULL, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void pair_finish(struct transport t[static 2])
{
	char pin[TLS_PIN_SIZE];
	struct tls_trust trust = {.mode = TLS_PIN, .pin = pin};
	struct err err = {0};
	short wait;

	for (int done = 0; done != 3;)
		for (int i = 0; i < 2; i++) {
			if (done & 1 << i)
				continue;
			int rc = tls_shake(&t[i], &wait, &err);

			if (rc < 0)
				fail_msg("%s", err.msg);
			done |= rc << i;
		}
	tls_server_pin(pair_server(), pin);
	assert_int_equal(tls_client_check(&t[1], &trust, NULL, &err), 0);
	tls_expect_goodbye(&t[0]);
}

static inline void pair_new(struct transport ret[static 2])
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	pair_begin(fd, ret);
	pair_finish(ret);
}
