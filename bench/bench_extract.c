/*
 * Metric extraction on one core: ten patterns over the log of a training job.
 *
 * Prints lines/s and MB/s for logs with a matching line in 10 and in 100, the same
 * without the prefilter, and the same work in Python's re where python3 is
 * installed.  All in processor time, so that other work on the machine does not
 * count; each figure takes about a second of it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/rand.h"
#include "metrics/extract.h"

#define LOG_LINES 200000
#define PYTHON_LINES 40000
#define BLOCK_BYTES (64 * 1024)
#define SPAN_US 1000000
/* Harmless for these patterns, and unknown to the prefilter: every line is tried. */
#define UNFILTERED "(*NO_DOTSTAR_ANCHOR)"

extern char **environ;

static const struct metric_pattern patterns[] = {
	{"loss", "\\bloss=(?<value>[-+.0-9eE]+)"},
	{"accuracy", "acc=(?<value>[.0-9]+)"},
	{"step_time", "step=(?<step>\\d+) .*step_time=(?<value>[.0-9]+)"},
	{"throughput", "images/sec: (?<value>[.0-9]+)"},
	{"learning_rate", "\\blr (?<value>[-+.0-9eE]+)"},
	{"grad_norm", "grad[_ ]norm[:=] ?(?<value>[-+.0-9eE]+)"},
	{"val_loss", "val(?:idation)?_loss: (?<value>[-+.0-9eE]+)"},
	{"epoch", "^Epoch \\[(?<value>\\d+)/\\d+\\]"},
	{"gpu_memory", "(?i)gpu mem(?:ory)?: (?<value>[.0-9]+) ?GB"},
	{"perplexity", "(?:ppl|perplexity)[ =](?<value>[.0-9]+)"},
};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static void plain_line(struct buf *b, struct rng *r)
{
	unsigned n = (unsigned)rng_below(r, 1000000);

	buf_printf(b, "2026-03-14 09:%02u:%02u,%03u ", n % 60, n % 59, n % 997);
	switch (rng_below(r, 8)) {
	case 0:
		buf_printf(b, "INFO dataloader: worker %u fetched shard-%05u.tar in %u ms\n", n % 8,
			   n, n % 300);
		break;
	case 1:
		buf_printf(
			b,
			"DEBUG trainer.py:214 moved batch %u to cuda:%u, pinned=True non_blocking=True\n",
			n, n % 8);
		break;
	case 2:
		buf_printf(
			b,
			"ip-10-0-3-%u NCCL INFO Channel %02u/0 : %u[%u] -> %u[%u] via NET/Socket/0\n",
			n % 255, n % 16, n % 8, n % 8, n % 7, n % 7);
		break;
	case 3:
		buf_printf(b,
			   "WARNING optimizer: gradient overflow, skipping update, scale now %u\n",
			   n);
		break;
	case 4:
		buf_printf(b, "INFO checkpoint: wrote /mnt/out/model-%06u.pt (%u MB) to disk\n", n,
			   n % 4096);
		break;
	case 5:
		buf_printf(
			b,
			"INFO allreduce bucket %u of 24, %u bytes, ring algorithm, %u us elapsed\n",
			n % 24, n * 4, n % 9000);
		break;
	case 6:
		buf_printf(
			b,
			"INFO heartbeat rank %u alive, queue depth %u, prefetch %u, host cpu %u%%\n",
			n % 64, n % 32, n % 16, n % 100);
		break;
	default:
		buf_printf(
			b,
			"INFO sampler: resumed at index %u, seed %u, shuffle on, drop_last off\n",
			n, n * 7);
		break;
	}
}

static void metric_line(struct buf *b, struct rng *r)
{
	unsigned n = (unsigned)rng_below(r, 100000);
	double v = (double)rng_below(r, 3000000) / 1e6;

	switch (rng_below(r, 6)) {
	case 0:
	case 1:
		buf_printf(
			b,
			"2026-03-14 09:26:53,589 INFO step=%u loss=%.5f acc=%.4f step_time=%.4f lr %.3e\n",
			n, v, v / 3, v / 10, v * 1e-4);
		break;
	case 2:
		buf_printf(
			b,
			"2026-03-14 09:26:53,589 INFO trainer-%u images/sec: %.2f GPU mem: %.1f GB\n",
			n % 8, v * 900, v * 10);
		break;
	case 3:
		buf_printf(
			b,
			"Epoch [%u/90] done, val_loss: %.5f perplexity %.3f, saving checkpoint\n",
			n % 90, v, v * 20);
		break;
	case 4:
		buf_printf(
			b,
			"2026-03-14 09:26:53,589 INFO optimizer: grad_norm=%.4f after clipping at 1.0\n",
			v);
		break;
	default:
		buf_printf(
			b,
			"2026-03-14 09:26:53,589 INFO [step %u] | loss=%.5f | tokens seen so far %u000\n",
			n, v, n);
		break;
	}
}

static void write_log(struct buf *b, unsigned one_in, uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	buf_init(b, 256u << 20);
	for (size_t i = 0; i < LOG_LINES; i++) {
		if (rng_below(&r, one_in) == 0)
			metric_line(b, &r);
		else
			plain_line(b, &r);
	}
}

static void count_sample(void *ctx, const struct sample *s)
{
	(void)s;
	++*(uint64_t *)ctx;
}

/* One pass, in the blocks that an agent would read. */
static uint64_t pass(struct extract *ex, struct str log)
{
	uint64_t samples = 0;

	while (log.n > 0) {
		size_t n = log.n;

		if (n > BLOCK_BYTES) {
			const char *nl = memrchr(log.p, '\n', BLOCK_BYTES);
			n = (size_t)(nl - log.p) + 1;
		}
		extract_block(ex, (struct str){log.p, n}, count_sample, &samples);
		log.p += n;
		log.n -= n;
	}
	return samples;
}

static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static double measure(const char *label, bool filtered, struct str log)
{
	struct metric_pattern pats[PATTERNS];
	struct extract *ex;
	struct err err = {0};
	uint64_t samples = 0, passes = 0;

	for (size_t i = 0; i < PATTERNS; i++)
		pats[i] = (struct metric_pattern){
			.name = patterns[i].name,
			.pattern =
				xasprintf("%s%s", filtered ? "" : UNFILTERED, patterns[i].pattern)};
	if (extract_new(pats, PATTERNS, NULL, &ex, &err) < 0) {
		fprintf(stderr, "bench_extract: %s\n", err.msg);
		exit(1);
	}
	int64_t start = cpu_us(), took;
	do {
		samples = pass(ex, log);
		passes++;
		took = cpu_us() - start;
	} while (took < SPAN_US);
	double lines_s = (double)passes * LOG_LINES * 1e6 / (double)took;
	printf("%-34s %11.0f lines/s %8.1f MB/s  (%" PRIu64 " samples in %d lines)\n", label,
	       lines_s, (double)passes * (double)log.n / (double)took, samples, LOG_LINES);
	extract_free(ex);
	for (size_t i = 0; i < PATTERNS; i++)
		free((char *)(uintptr_t)pats[i].pattern);
	return lines_s;
}

/* The log on fd 3, patterns as arguments: prints lines per second and the samples found. */
static const char python_script[] =
	"import re, sys, time\n"
	"pats = [re.compile(p.replace('(?<', '(?P<').encode()) for p in sys.argv[1:]]\n"
	"lines = open(3, 'rb').read().split(b'\\n')[:-1]\n"
	"start, found = time.process_time(), 0\n"
	"for line in lines:\n"
	"    for p in pats:\n"
	"        for m in p.finditer(line):\n"
	"            float(m.group('value')); found += 1\n"
	"print(len(lines) / (time.process_time() - start), found)\n";

static int log_fd(struct str log, size_t lines)
{
	const char *p = log.p;
	int fd = memfd_create("log", 0);

	for (size_t i = 0; i < lines; i++)
		p = (const char *)memchr(p, '\n', log.n - (size_t)(p - log.p)) + 1;
	if (fd < 0 || file_write_all(fd, log.p, (size_t)(p - log.p), NULL) < 0)
		return -1;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* 0 if there is no python3. */
static double measure_python(struct str log)
{
	const char *argv[PATTERNS + 4] = {"python3", "-c", python_script};
	CLEANUP(close_fdp) int fd = log_fd(log, PYTHON_LINES);
	posix_spawn_file_actions_t acts;
	char answer[128] = "";
	int out[2];
	pid_t pid;

	for (size_t i = 0; i < PATTERNS; i++)
		argv[3 + i] = patterns[i].pattern;
	if (fd < 0 || pipe2(out, O_CLOEXEC) < 0)
		return 0;
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, out[1], 1);
	posix_spawn_file_actions_adddup2(&acts, fd, 3);
	int rc =
		posix_spawnp(&pid, "python3", &acts, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&acts);
	close(out[1]);
	if (rc == 0) {
		if (read(out[0], answer, sizeof(answer) - 1) < 0)
			answer[0] = '\0';
		waitpid(pid, NULL, 0);
	}
	close(out[0]);
	return strtod(answer, NULL);
}

int main(void)
{
	for (unsigned one_in = 10; one_in <= 100; one_in *= 10) {
		struct buf log;
		char label[64];

		write_log(&log, one_in, 42);
		struct str text = buf_str(&log);
		snprintf(label, sizeof(label), "10 patterns, 1 line in %u matches", one_in);
		double ours = measure(label, true, text);
		double plain = measure("  without the prefilter", false, text);
		double python = measure_python(text);
		printf("  %.0f bytes per line; prefilter %.1fx", (double)text.n / LOG_LINES,
		       ours / plain);
		if (python > 0)
			printf("; python3 re %.0f lines/s, ratio %.0fx\n", python, ours / python);
		else
			printf("; no python3 to compare with\n");
		buf_release(&log);
	}
	return 0;
}
