/*
 * What it costs to look after the pods of a run without agents: kube.job's observe, which lists them, against
 * an API server of a process of its own that has all answers ready.
 *
 * Prints the processor time of an observation, the share of a core that it is when it is made every
 * five seconds (OBSERVE_AGENTLESS_MS), its requests, and the most memory of the process.  Pods are
 * as large as the API server of the tests shows them.  Loopback, without TLS.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/driver.h"

#define PAGE 100 /* of api/call.c */
#define POD_BYTES 10000
#define SPAN_MS 1500 /* of processor time, for each figure */
#define PERIOD_MS 5000.0
#define HEAD_MAX 8192
#define ANSWER_MAX (64u << 20)

#define LABELS                                                                                     \
	"\"labels\":{\"regatta/run\":\"r1\",\"regatta/install\":\"i1\",\"regatta/role\":\"w\"}"
#define JOB                                                                                        \
	"{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"r1-w\","           \
	"\"namespace\":\"n\"," LABELS "},\"spec\":{}}"

/* ---- the API server ---- */

/* The fields that nobody reads are most of a pod: who has set which (managedFields). */
static void add_pod(struct buf *b, int i)
{
	size_t begin = b->n;

	buf_printf(
		b,
		"{\"metadata\":{\"name\":\"r1-w-%d-abcde\",\"namespace\":\"n\",\"uid\":"
		"\"00000000-0000-4000-8000-%012d\",\"resourceVersion\":\"%d\"," LABELS
		",\"annotations\":{\"batch.kubernetes.io/job-completion-index\":\"%d\","
		"\"kubectl.kubernetes.io/default-container\":\"main\"}},"
		"\"spec\":{\"nodeName\":\"node1\",\"restartPolicy\":\"Never\",\"containers\":"
		"[{\"name\":\"main\",\"image\":\"bench.test/busybox:1\",\"command\":[\"true\"]}]},"
		"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\",\"conditions\":["
		"{\"type\":\"Ready\",\"status\":\"True\"},"
		"{\"type\":\"ContainersReady\",\"status\":\"True\"}],\"containerStatuses\":"
		"[{\"name\":\"main\",\"ready\":true,\"restartCount\":0,\"state\":{\"running\":"
		"{\"startedAt\":\"2026-01-01T00:00:00Z\"}}}]},\"managedFields\":{",
		i, i, i, i);
	for (int k = 0; b->n < begin + POD_BYTES; k++)
		buf_printf(b, "%s\"f:field-%d\":{\".\":{},\"f:of\":{\"f:somebody\":{}}}",
			   k ? "," : "", k);
	buf_addz(b, "}}");
}

static struct buf *make_pages(int pods)
{
	int n = (pods + PAGE - 1) / PAGE;
	struct buf *pages = xcalloc((size_t)n, sizeof(*pages));

	for (int p = 0; p < n; p++) {
		buf_init(&pages[p], ANSWER_MAX);
		buf_addz(&pages[p], "{\"kind\":\"PodList\",\"metadata\":{");
		if (p + 1 < n)
			buf_printf(&pages[p], "\"continue\":\"%d\"", p + 1);
		buf_addz(&pages[p], "},\"items\":[");
		for (int i = p * PAGE; i < pods && i < (p + 1) * PAGE; i++) {
			buf_addz(&pages[p], i % PAGE ? "," : "");
			add_pod(&pages[p], i);
		}
		buf_addz(&pages[p], "]}");
	}
	return pages;
}

static void say(int fd, struct str body)
{
	char head[128];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu"
			 "\r\n\r\n",
			 body.n);

	if (send(fd, head, (size_t)n, MSG_NOSIGNAL) < 0)
		return;
	for (ssize_t done = 0; body.n > 0; body.p += done, body.n -= (size_t)done)
		if ((done = send(fd, body.p, body.n, MSG_NOSIGNAL)) < 0)
			return;
}

static void answer_all(int fd, const struct buf *pages, struct str job)
{
	char head[HEAD_MAX] = "";
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, head + n, sizeof(head) - 1 - n)) > 0) {
		n += (size_t)got;
		head[n] = '\0';
		if (!strstr(head, "\r\n\r\n"))
			continue;
		const char *page = strstr(head, "&continue=");

		say(fd, strstr(head, "/pods?")
				? buf_str(&pages[page ? strtol(page + 10, NULL, 10) : 0])
				: job);
		n = 0;
	}
	close(fd);
}

/* Serves until it is killed. */
static pid_t serve(int pods, int *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t pid;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) < 0 || (pid = fork()) < 0) {
		perror("server");
		exit(1);
	}
	*ret_port = ntohs(at.sin_port);
	if (pid == 0) {
		struct buf *pages = make_pages(pods);
		char job[256];

		snprintf(job, sizeof(job),
			 "{\"metadata\":{\"uid\":\"u1\"," LABELS "},\"spec\":{\"completions\":%d}}",
			 pods);
		for (;;)
			answer_all(accept(fd, NULL, NULL), pages, str_from(job));
	}
	close(fd);
	return pid;
}

/* ---- the observations ---- */

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void observe(int pods, int port)
{
	struct deadline d = deadline_in(600000, NULL);
	char *credentials = xasprintf(
		"{\"server\":\"http://127.0.0.1:%d\",\"namespace\":\"n\",\"token\":\"t\"}", port);
	double began = cpu_ms(), spent;
	int n = 0;

	do {
		struct driver_row row = {.deadline = &d,
					 .kind = "kube.job",
					 .name = "w",
					 .install = "i1",
					 .run = "r1",
					 .role = "w",
					 .id = "u1",
					 .spec = JOB,
					 .credentials = credentials};

		if (kube_job_driver.observe(&row) != OUTCOME_DONE || row.nsights != (size_t)pods) {
			fprintf(stderr, "%zu of %d pods seen: %s\n", row.nsights, pods,
				row.err.msg);
			exit(1);
		}
		free(row.sights);
		n++;
		spent = cpu_ms() - began;
	} while (spent < SPAN_MS);
	free(credentials);
	struct rusage most;

	getrusage(RUSAGE_SELF, &most);
	printf("%5d pods: %6.1f ms of processor time, %4.1f %% of a core every 5 s, %d requests, "
	       "at most %ld MB\n",
	       pods, spent / n, spent / n / PERIOD_MS * 100, 1 + (pods + PAGE - 1) / PAGE,
	       most.ru_maxrss / 1024);
	fflush(stdout);
}

int main(void)
{
	static const int counts[] = {100, 1000, 5000};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int port;
		pid_t server = serve(counts[i], &port), client = fork();

		if (client == 0) {
			observe(counts[i], port);
			return 0;
		}
		int status = 1;

		waitpid(client, &status, 0);
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
		if (status != 0)
			return 1;
	}
	return 0;
}
