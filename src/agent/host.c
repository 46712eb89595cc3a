#include "agent/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "link/message.h"
#include "sys/proctree.h"

#define PROC_MAX (256 * 1024)
#define SECTOR 512 /* unit of /proc/diskstats, independent of the disk's sector size */

/* The next word of a line; empty at its end. */
static struct str next_word(struct str *line)
{
	while (line->n > 0 && (line->p[0] == ' ' || line->p[0] == '\t')) {
		line->p++;
		line->n--;
	}
	struct str word = {line->p, 0};

	while (line->n > 0 && line->p[0] != ' ' && line->p[0] != '\t') {
		line->p++;
		line->n--;
		word.n++;
	}
	return word;
}

static uint64_t next_number(struct str *line)
{
	uint64_t v = 0;

	str_to_u64(next_word(line), &v);
	return v;
}

bool host_read_cpu(struct str text, uint64_t *ret_busy, uint64_t *ret_all)
{
	struct str line = str_cut(&text, '\n');
	uint64_t v[8] = {0}, all = 0;

	if (!str_is(next_word(&line), "cpu"))
		return false;
	for (int i = 0; i < 8; i++) { /* user nice system idle iowait irq softirq steal */
		v[i] = next_number(&line);
		all += v[i];
	}
	*ret_all = all;
	*ret_busy = all - v[3] - v[4];
	return all > 0;
}

bool host_read_net(struct str text, uint64_t *ret_rx, uint64_t *ret_tx)
{
	uint64_t rx = 0, tx = 0;
	bool any = false;

	while (text.p && text.n > 0) {
		struct str line = str_cut(&text, '\n');
		struct str name = str_trim(str_cut(&line, ':'));

		if (!line.p || str_is(name, "lo"))
			continue;
		rx += next_number(&line);
		for (int i = 0; i < 7; i++)
			next_number(&line);
		tx += next_number(&line);
		any = true;
	}
	*ret_rx = rx;
	*ret_tx = tx;
	return any;
}

bool host_read_disk(struct str text, bool (*is_disk)(struct str name), uint64_t *ret_read,
		    uint64_t *ret_write)
{
	uint64_t rd = 0, wr = 0;
	bool any = false;

	while (text.p && text.n > 0) {
		struct str line = str_cut(&text, '\n');

		next_word(&line);
		next_word(&line);
		struct str name = next_word(&line);

		if (name.n == 0 || !is_disk(name))
			continue;
		next_number(&line);
		next_number(&line);
		rd += next_number(&line) * SECTOR;
		next_number(&line);
		next_number(&line);
		next_number(&line);
		wr += next_number(&line) * SECTOR;
		any = true;
	}
	*ret_read = rd;
	*ret_write = wr;
	return any;
}

bool host_read_memory(struct str text, uint64_t *ret_used)
{
	uint64_t total = 0, available = 0;

	while (text.p && text.n > 0) {
		struct str line = str_cut(&text, '\n');
		struct str key = next_word(&line);

		if (str_is(key, "MemTotal:"))
			total = next_number(&line);
		else if (str_is(key, "MemAvailable:"))
			available = next_number(&line);
	}
	if (total == 0 || available > total)
		return false;
	*ret_used = (total - available) * 1024;
	return true;
}

/* Is it a whole disk?  Partitions and layers above a disk would count its bytes twice. */
static bool is_disk(struct str name)
{
	static const char *const layers[] = {"loop", "ram", "dm-", "md", "zram", "sr"};
	char path[64];

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
		if (str_starts(name, str_from(layers[i])))
			return false;
	if (snprintf(path, sizeof(path), "/sys/block/%.*s", STR_ARG(name)) >= (int)sizeof(path))
		return false;
	return access(path, F_OK) == 0;
}

static struct str load(const char *path, struct buf *b)
{
	buf_reset(b);
	if (file_read(path, b, NULL) < 0)
		return STR("");
	return buf_str(b);
}

/* CPU and memory of the job, from its cgroup or from the process tree below its main process. */
static bool job_use(const struct cgroup *cg, int job, uint64_t *ret_cpu_us, uint64_t *ret_memory)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};
	uint64_t ticks = 0, memory = 0, tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct proc_info p;

	if (job <= 0)
		return false;
	bool has_cpu = cgroup_cpu_us(cg, ret_cpu_us),
	     has_memory = cgroup_memory_bytes(cg, ret_memory);

	if (has_cpu && has_memory)
		return true;
	cgroup_procs(cg, &l);
	if (l.n == 0) {
		proc_descendants(job, &l);
		if (proc_read(job, &p)) {
			ticks += p.cpu_ticks;
			memory += p.memory_bytes;
		}
	}
	for (size_t i = 0; i < l.n; i++) {
		ticks += l.v[i].cpu_ticks;
		memory += l.v[i].memory_bytes;
	}
	if (!has_cpu)
		*ret_cpu_us = ticks * tick_us;
	if (!has_memory)
		*ret_memory = memory;
	return memory > 0;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

#define VALUES_MAX (8 + 2 * GPU_MAX)
#define VALUE_NAME 24

/* A sample being built, with space for the names of GPU values. */
struct making {
	struct message_value v[VALUES_MAX];
	size_t n;
	char gpu_names[2 * GPU_MAX][VALUE_NAME];
};

static void add(struct making *mk, const char *name, double value)
{
	mk->v[mk->n++] = (struct message_value){str_from(name), value};
}

static void add_rates(struct making *mk, const struct host_counters *n,
		      const struct host_counters *b)
{
	double s = (double)(n->at_us - b->at_us) / 1e6;

	if (b->at_us == 0 || s <= 0)
		return;
	if (n->has_cpu && b->has_cpu && n->cpu_all > b->cpu_all)
		add(mk, "host.cpu",
		    100.0 * rate(n->cpu_busy, b->cpu_busy, 1) / (double)(n->cpu_all - b->cpu_all));
	if (n->has_net && b->has_net) {
		add(mk, "host.net_rx", rate(n->net_rx, b->net_rx, s));
		add(mk, "host.net_tx", rate(n->net_tx, b->net_tx, s));
	}
	if (n->has_disk && b->has_disk) {
		add(mk, "host.disk_read", rate(n->disk_read, b->disk_read, s));
		add(mk, "host.disk_write", rate(n->disk_write, b->disk_write, s));
	}
	if (n->has_job_cpu && b->has_job_cpu)
		add(mk, "job.cpu", rate(n->job_cpu_us, b->job_cpu_us, s) / 1e4);
}

static void add_gpus(struct making *mk, struct gpu *g)
{
	struct gpu_value v[GPU_MAX];
	size_t n = g ? gpu_sample(g, v) : 0;

	for (size_t i = 0; i < n; i++) {
		char *util = mk->gpu_names[2 * i], *memory = mk->gpu_names[2 * i + 1];

		snprintf(util, VALUE_NAME, "gpu%zu.util", i);
		snprintf(memory, VALUE_NAME, "gpu%zu.memory", i);
		add(mk, util, v[i].util);
		add(mk, memory, v[i].memory_bytes);
	}
}

void host_init(struct host *h, struct loop *l)
{
	*h = (struct host){.gpu = gpu_new(l)};
}

void host_release(struct host *h)
{
	h->gpu = gpu_free(h->gpu);
}

void host_sample(struct host *h, int64_t wall_ms, const struct cgroup *cg, int job, bool own_net,
		 struct buf *out)
{
	struct host_counters n = {.at_us = clock_boot_us()};
	char net_path[32] = "/proc/net/dev";
	uint64_t used = 0, job_memory = 0;
	struct making mk = {0};
	struct buf b;

	if (own_net)
		snprintf(net_path, sizeof(net_path), "/proc/%d/net/dev", job);
	buf_init(&b, PROC_MAX);
	n.has_cpu = host_read_cpu(load("/proc/stat", &b), &n.cpu_busy, &n.cpu_all);
	n.has_net = host_read_net(load(net_path, &b), &n.net_rx, &n.net_tx);
	n.has_disk =
		host_read_disk(load("/proc/diskstats", &b), is_disk, &n.disk_read, &n.disk_write);
	bool has_memory = host_read_memory(load("/proc/meminfo", &b), &used);

	buf_release(&b);
	n.has_job_cpu = job_use(cg, job, &n.job_cpu_us, &job_memory);
	if (has_memory)
		add(&mk, "host.memory", (double)used);
	if (n.has_job_cpu)
		add(&mk, "job.memory", (double)job_memory);
	add_rates(&mk, &n, &h->last);
	add_gpus(&mk, h->gpu);
	message_sample_put(&(struct message_sample){wall_ms, mk.v, mk.n}, out);
	h->last = n;
}
