#include "fake_http.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define MAX_HEAD 65536

struct conn {
	struct fake_http *f;
	int fd;
};

static bool readable(const struct fake_http *f, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (!f->quit)
		if (poll(&p, 1, 20) > 0)
			return true;
	return false;
}

/* The head with its empty line; bytes of the body that came with it are left in the socket. */
static char *take_head(const struct fake_http *f, int fd)
{
	char *head = xcalloc(1, MAX_HEAD);
	size_t n = 0;

	while (n < MAX_HEAD - 1 && readable(f, fd)) {
		ssize_t got = recv(fd, head + n, MAX_HEAD - 1 - n, MSG_PEEK);

		if (got <= 0)
			break;
		size_t before = n;
		char *end;

		head[n + (size_t)got] = '\0';
		end = strstr(head, "\r\n\r\n");
		n = end ? (size_t)(end + 4 - head) : n + (size_t)got;
		if (recv(fd, head + before, n - before, MSG_WAITALL) <= 0)
			break;
		head[n] = '\0';
		if (end)
			return head;
	}
	free(head);
	return NULL;
}

const char *fake_header(const struct fake_asked *a, const char *name)
{
	static __thread char value[MAX_HEAD];
	size_t n = strlen(name);

	for (const char *p = a->head; (p = strstr(p, "\r\n")); p += 2) {
		if (strncasecmp(p + 2, name, n) != 0 || p[2 + n] != ':')
			continue;
		const char *v = p + 2 + n + 1;

		while (*v == ' ')
			v++;
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(v, "\r"), v);
		return value;
	}
	return NULL;
}

bool fake_is(const struct fake_asked *a, const char *begin)
{
	return strncmp(a->head, begin, strlen(begin)) == 0;
}

void fake_raw(int fd, const char *text)
{
	ssize_t ignored = send(fd, text, strlen(text), MSG_NOSIGNAL);

	(void)ignored;
}

void fake_say_bytes(int fd, int status, const char *headers, const void *body, size_t n)
{
	char head[4096];
	const char *p = body;

	snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\n%s%sContent-Length: %zu\r\n\r\n", status,
		 headers, strstr(headers, "equest") ? "" : "x-amz-request-id: R0\r\n", n);
	fake_raw(fd, head);
	while (n > 0) {
		ssize_t put = send(fd, p, n, MSG_NOSIGNAL);

		if (put <= 0)
			return;
		p += put;
		n -= (size_t)put;
	}
}

void fake_say(int fd, int status, const char *headers, const char *body)
{
	fake_say_bytes(fd, status, headers, body, strlen(body));
}

static bool serve_one(struct fake_http *f, int fd)
{
	struct fake_asked a = {.head = take_head(f, fd)};
	const char *length;

	if (!a.head)
		return false;
	if (fake_header(&a, "Expect"))
		fake_raw(fd, "HTTP/1.1 100 Continue\r\n\r\n");
	length = fake_header(&a, "Content-Length");
	a.body_n = length ? strtoul(length, NULL, 10) : 0;
	a.body = xcalloc(1, a.body_n + 1);
	for (size_t n = 0; n < a.body_n && readable(f, fd);) {
		ssize_t got = recv(fd, a.body + n, a.body_n - n, 0);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	pthread_mutex_lock(&f->lock);
	int nth = f->n;

	if (nth < FAKE_MAX_ASKED)
		f->asked[nth] = a;
	f->n++;
	pthread_mutex_unlock(&f->lock);
	return f->answer(f, fd, nth, &a);
}

static void *serve_conn(void *ctx)
{
	struct conn *c = ctx;

	while (serve_one(c->f, c->fd))
		;
	close(c->fd);
	free(c);
	return NULL;
}

static void *serve(void *ctx)
{
	struct fake_http *f = ctx;

	while (f->nconns < FAKE_MAX_ASKED && readable(f, f->fd)) {
		struct conn *c = xcalloc(1, sizeof(*c));

		*c = (struct conn){f, accept(f->fd, NULL, NULL)};
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		pthread_create(&f->conns[f->nconns++], NULL, serve_conn, c);
	}
	return NULL;
}

void fake_start(struct fake_http *f)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t n = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (f->fd < 0 || bind(f->fd, (struct sockaddr *)&at, n) < 0 || listen(f->fd, 64) < 0 ||
	    getsockname(f->fd, (struct sockaddr *)&at, &n) < 0)
		abort();
	f->port = ntohs(at.sin_port);
	f->n = f->nconns = f->quit = 0;
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", f->port);
	pthread_mutex_init(&f->lock, NULL);
	pthread_create(&f->thread, NULL, serve, f);
}

void fake_stop(struct fake_http *f)
{
	f->quit = 1;
	pthread_join(f->thread, NULL);
	for (int i = 0; i < f->nconns; i++)
		pthread_join(f->conns[i], NULL);
	close(f->fd);
	for (int i = 0; i < f->n && i < FAKE_MAX_ASKED; i++) {
		free(f->asked[i].head);
		free(f->asked[i].body);
	}
	pthread_mutex_destroy(&f->lock);
}
