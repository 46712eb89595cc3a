/*
 * A trainer: logistic regression by asynchronous SGD.  It makes its own share of the
 * data (the same hidden truth for all, other samples for each), pulls the weights from
 * every parameter server, computes a gradient on a small batch and pushes it back,
 * without waiting for the other trainers.  Configured by the environment alone:
 * PSERVERS, TRAINERS, TRAINER_INDEX, TRAINING_ROLE.
 */
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>

#include "endpoint.h"
#include "wire.h"

#define SAMPLES 4096
#define BATCH 64
#define STEPS 8000
#define REPORT 100
#define RATE 0.05f

static float x[SAMPLES][FEATURES];
static float y[SAMPLES];
static float w[FEATURES];
static uint64_t state;

static float uniform(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (float)(state >> 40) / (float)(1 << 24) * 2 - 1;
}

/* The truth depends on a fixed seed, the samples on the trainer. */
static void make_data(int index)
{
	float truth[FEATURES];

	state = 42;
	for (int k = 0; k < FEATURES; k++)
		truth[k] = uniform();
	state = 1000 + (uint64_t)index;
	for (int i = 0; i < SAMPLES; i++) {
		float dot = 0;
		do { /* samples too near to the border teach nothing */
			dot = 0;
			for (int k = 0; k < FEATURES; k++) {
				x[i][k] = uniform();
				dot += x[i][k] * truth[k];
			}
		} while (fabsf(dot) < 3);
		y[i] = dot > 0 ? 1 : 0;
	}
}

static float predict(int i)
{
	float dot = 0;

	for (int k = 0; k < FEATURES; k++)
		dot += x[i][k] * w[k];
	return 1 / (1 + expf(-dot));
}

/* The gradient of one batch into g; returns its mean loss. */
static float gradient(int first, float g[FEATURES])
{
	float loss = 0;

	memset(g, 0, sizeof(float) * FEATURES);
	for (int b = 0; b < BATCH; b++) {
		int i = (first + b) % SAMPLES;
		float p = predict(i), d = (p - y[i]) / BATCH;
		for (int k = 0; k < FEATURES; k++)
			g[k] += RATE * d * x[i][k];
		float right = y[i] > 0 ? p : 1 - p;
		loss -= logf(right > 1e-7f ? right : 1e-7f) / BATCH;
	}
	return loss;
}

static int dial(const char *endpoint)
{
	struct sockaddr_in sa;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || endpoint_parse(endpoint, &sa) < 0 ||
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		fprintf(stderr, "connect to %s: %s\n", endpoint, strerror(errno));
		exit(1);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void exchange(const int *fds, int servers, uint32_t op, const float *g)
{
	for (int s = 0; s < servers; s++) {
		int from, count;
		shard(s, servers, &from, &count);
		struct request rq = {op, (uint32_t)count};
		if (write_all(fds[s], &rq, sizeof(rq)) < 0 ||
		    (op == OP_PUSH &&
		     write_all(fds[s], g + from, sizeof(float) * (size_t)count) < 0) ||
		    read_all(fds[s], w + from, sizeof(float) * (size_t)count) < 0) {
			fprintf(stderr, "parameter server %d went away\n", s);
			exit(1);
		}
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(void)
{
	const char *list = need_env("PSERVERS");
	int index = (int)strtol(need_env("TRAINER_INDEX"), NULL, 10), servers = 0, fds[MAX_SERVERS];
	int trainers = (int)strtol(need_env("TRAINERS"), NULL, 10);
	char at[64];
	float g[FEATURES], sum = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (servers < MAX_SERVERS && endpoint_at(list, servers, at, sizeof(at)))
		fds[servers++] = dial(at);
	printf("%s: %s %d of %d, %d parameter servers\n", need_env("TASK_NAME"),
	       need_env("TRAINING_ROLE"), index, trainers, servers);
	make_data(index);
	double start = now();
	for (int step = 1; step <= STEPS; step++) {
		exchange(fds, servers, OP_PULL, NULL);
		sum += gradient(step * BATCH, g);
		exchange(fds, servers, OP_PUSH, g);
		if (step == 1 || step % REPORT == 0) {
			printf("step %d/%d loss=%.6f\n", step, STEPS,
			       (double)(sum / (step == 1 ? 1 : REPORT)));
			if (step > 1)
				sum = 0;
		}
	}
	printf("**metrics_data: samples_per_s=%.0f,steps=%d\n", STEPS * BATCH / (now() - start),
	       STEPS);
	return 0;
}
