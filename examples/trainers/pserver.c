/*
 * A parameter server: holds its part of the weights, gives them out, takes
 * gradients in whatever order they come.  Configured by the environment alone:
 * PSERVERS and SERVER_ENDPOINT.  Runs until it is told to stop.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "endpoint.h"
#include "wire.h"

#define MAX_CLIENTS 256

static float weights[FEATURES];
static long pushes, pulls;
static volatile sig_atomic_t stop;

static void on_signal(int signo)
{
	(void)signo;
	stop = 1;
}

static int my_index(const char *list, const char *me)
{
	char at[64];

	for (int i = 0; endpoint_at(list, i, at, sizeof(at)); i++)
		if (!strcmp(at, me))
			return i;
	return -1;
}

static int listen_at(const char *endpoint)
{
	struct sockaddr_in sa;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || endpoint_parse(endpoint, &sa) < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 64) < 0) {
		fprintf(stderr, "listen at %s: %s\n", endpoint, strerror(errno));
		return -1;
	}
	return fd;
}

static int serve(int fd, int count)
{
	struct request rq;
	float gradient[FEATURES];

	if (read_all(fd, &rq, sizeof(rq)) < 0 || rq.count != (uint32_t)count)
		return -1;
	if (rq.op == OP_PUSH) {
		if (read_all(fd, gradient, sizeof(float) * (size_t)count) < 0)
			return -1;
		for (int i = 0; i < count; i++)
			weights[i] -= gradient[i];
		pushes++;
	} else if (rq.op == OP_PULL) {
		pulls++;
	} else {
		return -1;
	}
	return write_all(fd, weights, sizeof(float) * (size_t)count);
}

int main(void)
{
	const char *list = need_env("PSERVERS"), *me = need_env("SERVER_ENDPOINT");
	struct pollfd fds[MAX_CLIENTS + 1] = {0};
	char at[64];
	int servers = 0, index = my_index(list, me), from, count, n = 1;

	while (endpoint_at(list, servers, at, sizeof(at)))
		servers++;
	if (index < 0) {
		fprintf(stderr, "SERVER_ENDPOINT %s is not one of PSERVERS %s\n", me, list);
		return 2;
	}
	shard(index, servers, &from, &count);
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	fds[0] = (struct pollfd){.fd = listen_at(me), .events = POLLIN};
	if (fds[0].fd < 0)
		return 1;
	printf("%s: weights %d to %d of %d, serving at %s\n", need_env("TASK_NAME"), from,
	       from + count - 1, FEATURES, me);
	fflush(stdout);
	while (!stop) {
		if (poll(fds, (nfds_t)n, 200) <= 0)
			continue;
		for (int i = n - 1; i > 0; i--) {
			if (!fds[i].revents || serve(fds[i].fd, count) == 0)
				continue;
			close(fds[i].fd);
			fds[i] = fds[--n];
		}
		if ((fds[0].revents & POLLIN) && n <= MAX_CLIENTS) {
			int fd = accept(fds[0].fd, NULL, NULL);
			if (fd >= 0)
				fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
		}
	}
	printf("told to stop: %ld pulls, %ld pushes\n", pulls, pushes);
	return 0;
}
