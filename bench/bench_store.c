/*
 * What durable state costs: opening a home, the life of a run, one save, samples.
 *
 *	bench_store [directory]     (default: $TMPDIR or /tmp; should be a real disk)
 *
 * A life is a run of 2 nodes: 10 events and 15 saved rows in 8 transactions.
 * Runs that go on at the same time share their commits, as they do in the master.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "store/store.h"

#define STEPS 8
#define JOB_BYTES 1500

static struct err err;

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "bench_store: %s\n", err.msg);
		exit(1);
	}
}

static double seconds_since(int64_t start_us)
{
	return (double)(clock_boot_us() - start_us) / 1e6;
}

struct life {
	int64_t no;
	struct core_run run;
	struct core_node nodes[2];
	struct core_resource resources[2];
};

static int serial;

static void submit(struct store *st, struct life *l)
{
	char id[32], request[32], json[JOB_BYTES + 1];

	memset(json, 'j', JOB_BYTES);
	json[JOB_BYTES] = '\0';
	snprintf(id, sizeof(id), "bench-%08d", serial);
	snprintf(request, sizeof(request), "request-%08d", serial++);
	struct run_row row = {.id = id,
			      .name = "bench",
			      .request_id = request,
			      .job_json = json,
			      .base_dir = "/home/user/project",
			      .client_env = "{}",
			      .secret = "00112233445566778899aabbccddeeff",
			      .engine = "local",
			      .strategy = "roles",
			      .nodes = 2,
			      .created_ms = 1};
	memset(l, 0, sizeof(*l));
	must(store_run_add(st, &row, &err));
	l->no = row.no;
}

static void event(struct store *st, struct life *l, int node, const char *kind)
{
	must(store_event_add(st, l->no, 1700000000000, kind, node, "what happened, in a few words",
			     NULL, &err));
}

static void save_run(struct store *st, struct life *l, enum run_phase phase)
{
	static int64_t now_ms = 1700000000000;

	l->run.phase = phase;
	l->run.phase_at_ms[phase] = ++now_ms;
	must(store_run_save(st, l->no, &l->run, now_ms, &err));
}

static void save_node(struct store *st, struct life *l, int rank, enum node_state state)
{
	l->nodes[rank].state = state;
	l->nodes[rank].since_ms++;
	must(store_node_save(st, l->no, rank, &l->nodes[rank], &err));
}

static void save_resource(struct store *st, struct life *l, int i, enum res_state state)
{
	l->resources[i].state = state;
	must(store_resource_save(st, l->no, i,
				 &(struct plan_resource){.kind = "local.node",
							 .name = i ? "node-1" : "node-0",
							 .node = -1},
				 &l->resources[i], &err));
}

/* 10 events, 15 rows beside the run itself, over all steps. */
static void step(struct store *st, struct life *l, int i)
{
	switch (i) {
	case 0:
		submit(st, l);
		event(st, l, -1, "accepted");
		save_run(st, l, RUN_PROVISIONING);
		save_resource(st, l, 0, RES_SENT);
		save_resource(st, l, 1, RES_SENT);
		break;
	case 1:
	case 2:
		event(st, l, i - 1, "created");
		save_resource(st, l, i - 1, RES_LIVE);
		break;
	case 3:
		event(st, l, 0, "here");
		event(st, l, 1, "here");
		save_node(st, l, 0, NODE_HERE);
		break;
	case 4:
		event(st, l, -1, "running");
		save_node(st, l, 0, NODE_RUNNING);
		save_node(st, l, 1, NODE_RUNNING);
		save_run(st, l, RUN_RUNNING);
		break;
	case 5:
		event(st, l, 0, "exited");
		event(st, l, 1, "exited");
		save_node(st, l, 0, NODE_EXITED);
		save_node(st, l, 1, NODE_EXITED);
		break;
	case 6:
		event(st, l, -1, "cleaning");
		save_run(st, l, RUN_CLEANING);
		save_resource(st, l, 0, RES_DELETING);
		save_resource(st, l, 1, RES_DELETING);
		break;
	case 7:
		event(st, l, -1, "succeeded");
		save_run(st, l, RUN_SUCCEEDED);
		must(store_run_ended(st, l->no, 1700000000000, &err));
		break;
	}
}

static void bench_lives(struct store *st, int together, int rounds)
{
	struct life *lives = calloc((size_t)together, sizeof(*lives));
	int64_t start = clock_boot_us(), worst = 0;

	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < STEPS; i++) {
			int64_t from = clock_boot_us();
			store_begin(st);
			for (int k = 0; k < together; k++)
				step(st, &lives[k], i);
			must(store_commit(st, &err));
			int64_t took = clock_boot_us() - from;
			worst = took > worst ? took : worst;
		}
	double s = seconds_since(start);
	printf("lives, %2d together     %8.0f runs/s %8.0f commits/s   slowest round %.1f ms\n",
	       together, together * rounds / s, STEPS * rounds / s, (double)worst / 1e3);
	free(lives);
}

static void bench_saves(struct store *st)
{
	enum { N = 200000 };
	struct life l;

	store_begin(st);
	submit(st, &l);
	save_node(st, &l, 0, NODE_HERE);
	int64_t start = clock_boot_us();
	for (int i = 0; i < N; i++)
		save_node(st, &l, 0, NODE_RUNNING);
	printf("save a node            %8.2f us\n", seconds_since(start) / N * 1e6);
	start = clock_boot_us();
	for (int i = 0; i < N; i++)
		save_run(st, &l, RUN_RUNNING);
	printf("save a run             %8.2f us\n", seconds_since(start) / N * 1e6);
	start = clock_boot_us();
	for (int i = 0; i < N; i++)
		event(st, &l, 0, "here");
	printf("add an event           %8.2f us\n", seconds_since(start) / N * 1e6);
	must(store_commit(st, &err));
}

static bool count_sample(void *ctx, int64_t wall_ms, int64_t at, double value)
{
	int64_t *n = ctx;

	(void)wall_ms, (void)at, (void)value;
	++*n;
	return true;
}

static void bench_samples(struct store *st, int series, int batch, int batches)
{
	struct series_row *rows = calloc((size_t)series, sizeof(*rows));
	struct life l;
	int64_t read = 0, total = (int64_t)batch * batches;

	store_begin(st);
	submit(st, &l);
	for (int i = 0; i < series; i++)
		must(store_series_open(st, l.no, i, "loss", &rows[i], &err));
	must(store_commit(st, &err));
	int64_t start = clock_boot_us();
	for (int b = 0; b < batches; b++) {
		store_begin(st);
		for (int i = 0; i < batch; i++)
			must(store_sample_add(st, rows[i % series].series, 1700000000000 + b, i,
					      0.693 / (i + 1), &err));
		must(store_commit(st, &err));
	}
	double add_s = seconds_since(start);
	start = clock_boot_us();
	for (int i = 0; i < series; i++)
		must(store_samples_each(st, rows[i].series, 0, count_sample, &read, &err));
	double read_s = seconds_since(start);
	start = clock_boot_us();
	store_begin(st);
	must(store_run_ended(st, l.no, 1700000000000, &err));
	must(store_run_remove(st, l.no, &err));
	must(store_commit(st, &err));
	double remove_s = seconds_since(start);
	printf("samples, %5d series  %9.0f added/s %9.0f read/s %9.0f removed/s  (%d a commit)\n",
	       series, (double)total / add_s, (double)read / read_s, (double)total / remove_s,
	       batch);
	free(rows);
}

static double open_ms(const char *home, struct store **ret)
{
	int64_t start = clock_boot_us();

	must(store_open(home, ret, &err));
	return seconds_since(start) * 1e3;
}

static void bench_open(const char *dir)
{
	enum { N = 21 };
	double fresh = 1e9, again = 1e9, fresh_sum = 0, again_sum = 0;

	for (int i = 0; i < N; i++) {
		CLEANUP(freep) char *home = path_join(dir, "fresh");
		struct store *st;
		double ms = open_ms(home, &st);
		fresh = ms < fresh ? ms : fresh;
		fresh_sum += ms;
		store_close(st);
		ms = open_ms(home, &st);
		again = ms < again ? ms : again;
		again_sum += ms;
		store_close(st);
		must(file_remove_tree(home, &err));
	}
	printf("open a fresh home      %8.2f ms   (best %.2f)\n", fresh_sum / N, fresh);
	printf("open an existing home  %8.2f ms   (best %.2f)\n", again_sum / N, again);
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP(freep)
	char *dir = path_join(argc > 1 ? argv[1] : tmp ? tmp : "/tmp", "bench-store-XXXXXX");
	struct store *st;

	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	bench_open(dir);
	CLEANUP(freep) char *home = path_join(dir, "home");
	must(store_open(home, &st, &err));
	bench_lives(st, 1, 300);
	bench_lives(st, 16, 60);
	bench_lives(st, 64, 30);
	bench_saves(st);
	bench_samples(st, 10, 1000, 200);
	bench_samples(st, 1000, 10000, 20);
	bench_samples(st, 10, 100000, 10);
	store_close(st);
	must(file_remove_tree(dir, &err));
	return 0;
}
