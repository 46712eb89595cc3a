#pragma once
/*
 * host - usage of the machine and of the job: CPU, memory, network, disk, GPU.
 *
 * A rate is computed from two samples, so the first sample has none.  Values that the system does
 * not provide are left out; that is no error.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "sys/cgroup.h"

struct buf;
struct loop;
struct gpu;

struct host_counters {
	int64_t at_us; /* 0: none yet */
	uint64_t cpu_busy, cpu_all;
	uint64_t net_rx, net_tx, disk_read, disk_write;
	uint64_t job_cpu_us;
	bool has_cpu, has_net, has_disk, has_job_cpu;
};

struct host {
	struct host_counters last;
	struct gpu *gpu; /* NULL: no nvidia-smi */
};

void host_init(struct host *h, struct loop *l);
void host_release(struct host *h);
/* Write a SAMPLE payload.  job: pid of the main process, 0 if none runs; cg: its groups; own_net: the job
 * has a network namespace of its own. */
void host_sample(struct host *h, int64_t wall_ms, const struct cgroup *cg, int job, bool own_net,
		 struct buf *out);

/* Parse /proc/stat, /proc/net/dev, /proc/diskstats, /proc/meminfo; false if the value is not in the text. */
bool host_read_cpu(struct str text, uint64_t *ret_busy, uint64_t *ret_all);
bool host_read_net(struct str text, uint64_t *ret_rx, uint64_t *ret_tx);
bool host_read_disk(struct str text, bool (*is_disk)(struct str name), uint64_t *ret_read,
		    uint64_t *ret_write);
bool host_read_memory(struct str text, uint64_t *ret_used);

/* gpu - the output of nvidia-smi, which runs in the background. */
struct gpu_value {
	double util, memory_bytes;
};
#define GPU_MAX 16
struct gpu *gpu_new(struct loop *l); /* NULL if there is no nvidia-smi in PATH */
struct gpu *gpu_free(struct gpu *g);
/* The values of the last query and their number; starts the next query. */
size_t gpu_sample(struct gpu *g, struct gpu_value out[static GPU_MAX]);
/* Lines "index, utilisation, MiB". */
size_t gpu_parse(struct str text, struct gpu_value out[static GPU_MAX]);
bool gpu_is(const struct gpu *g, int pid);
void gpu_reaped(struct gpu *g, int pid);
