/* Samples of the machine, from files of /proc and /sys of real machines. */
#include "unit.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/host.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fmt/doc.h"
#include "sys/loop.h"

static void cpu_time_is_busy_or_not(void **state)
{
	uint64_t busy, all;

	(void)state;
	assert_true(
		host_read_cpu(STR("cpu  10 1 20 100 5 2 3 4 0 0\ncpu0 1 1 1 1\n"), &busy, &all));
	assert_int_equal(all, 145);
	assert_int_equal(busy, 40);
	assert_false(host_read_cpu(STR(""), &busy, &all));
	assert_false(host_read_cpu(STR("intr 1\n"), &busy, &all));
}

static void traffic_is_summed_without_the_loopback(void **state)
{
	uint64_t rx, tx;

	(void)state;
	assert_true(host_read_net(
		STR("Inter-|   Receive                |  Transmit\n"
		    " face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
		    "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
		    "  eth0: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n"
		    "  eth1:5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"),
		&rx, &tx));
	assert_int_equal(rx, 105);
	assert_int_equal(tx, 207);
	assert_false(host_read_net(STR("    lo: 999 1 0 0 0 0 0 0 999 1\n"), &rx, &tx));
}

static bool only_sda(struct str name)
{
	return str_is(name, "sda");
}

static void disks_are_counted_once(void **state)
{
	uint64_t rd, wr;

	(void)state;
	assert_true(host_read_disk(
		STR("   8       0 sda 10 0 100 5 20 0 200 6 0 7 8\n   8       1 sda1 10 0 "
		    "100 5 20 0 200 6 0 7 8\n"),
		only_sda, &rd, &wr));
	assert_int_equal(rd, 100 * 512);
	assert_int_equal(wr, 200 * 512);
	assert_false(host_read_disk(STR("nonsense\n"), only_sda, &rd, &wr));
}

static void memory_in_use_is_what_is_not_available(void **state)
{
	uint64_t used;

	(void)state;
	assert_true(host_read_memory(
		STR("MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n"), &used));
	assert_int_equal(used, 600 * 1024);
	assert_false(host_read_memory(STR("MemFree: 1 kB\n"), &used));
	assert_false(host_read_memory(STR("MemTotal: 1 kB\nMemAvailable: 2 kB\n"), &used));
}

static void the_second_sample_has_rates(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct loop *l = loop_new();
	struct cgroup cg = {0};
	struct host h;
	struct doc *d;
	struct buf b;

	(void)state;
	buf_init(&b, 10000);
	host_init(&h, l);
	host_sample(&h, 42, &cg, getpid(), false, &b);
	assert_int_equal(json_parse(buf_str(&b), a, &d, NULL), 0);
	assert_int_equal(doc_int(d, "time_ms", 0), 42);
	assert_true(doc_num(doc_table(d, "values"), "host.memory", -1) > 0);
	assert_true(doc_num(doc_table(d, "values"), "job.memory", -1) > 0);
	assert_null(doc_get(doc_table(d, "values"), "host.cpu"));
	/* The kernel counts cpu time in hundredths of a second. */
	for (int64_t until = clock_boot_ms() + 5000; clock_boot_ms() < until;) {
		buf_reset(&b);
		host_sample(&h, 43, &cg, getpid(), false, &b);
		assert_int_equal(json_parse(buf_str(&b), a, &d, NULL), 0);
		if (doc_get(doc_table(d, "values"), "host.cpu"))
			break;
	}
	double cpu = doc_num(doc_table(d, "values"), "host.cpu", -1);

	assert_true(cpu >= 0 && cpu <= 100);
	assert_true(doc_num(doc_table(d, "values"), "job.cpu", -1) >= 0);
	host_release(&h);
	buf_release(&b);
	loop_free(l);
}

static void without_a_job_there_are_no_figures_of_one(void **state)
{
	struct loop *l = loop_new();
	struct cgroup cg = {0};
	struct host h;
	struct buf b;

	(void)state;
	buf_init(&b, 10000);
	host_init(&h, l);
	host_sample(&h, 1, &cg, 0, false, &b);
	assert_null(strstr(b.p, "job."));
	host_release(&h);
	buf_release(&b);
	loop_free(l);
}

static void gpu_lines_are_read_and_others_skipped(void **state)
{
	struct gpu_value v[GPU_MAX];

	(void)state;
	assert_int_equal(gpu_parse(STR("0, 35, 1024\n1, [N/A], 5\nnonsense\n2, 100, 2\n"), v), 2);
	assert_true(v[0].util == 35 && v[0].memory_bytes == 1024.0 * 1048576);
	assert_true(v[1].util == 100);
	assert_int_equal(gpu_parse(STR(""), v), 0);
}

/* A nvidia-smi of our own, first in PATH. */
static void with_smi(void **state, const char *script)
{
	char path[600];

	file_write_atomic(unit_path(state, "nvidia-smi"), str_from(script), 0700, false, NULL);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", (char *)*state);
	setenv("PATH", path, 1);
}

static void nvidia_smi_is_asked_beside_everything_else(void **state)
{
	struct loop *l = loop_new();
	struct gpu_value v[GPU_MAX];
	int64_t until = clock_boot_ms() + 10000;

	with_smi(state, "#!/bin/sh\necho '0, 12, 34'\n");
	struct gpu *g = gpu_new(l);

	assert_non_null(g);
	assert_int_equal(gpu_sample(g, v), 0); /* asked, not waited for */
	while (gpu_sample(g, v) == 0 && clock_boot_ms() < until)
		loop_round(l, 10);
	assert_int_equal(gpu_sample(g, v), 1);
	assert_true(v[0].util == 12);
	gpu_free(g);
	loop_free(l);
}

static void a_nvidia_smi_that_hangs_is_not_waited_for(void **state)
{
	struct loop *l = loop_new();
	struct gpu_value v[GPU_MAX];
	int64_t before = clock_boot_ms();

	with_smi(state, "#!/bin/sh\nexec sleep 600\n");
	struct gpu *g = gpu_new(l);

	for (int i = 0; i < 5; i++) {
		assert_int_equal(gpu_sample(g, v), 0);
		loop_round(l, 1);
	}
	assert_null(gpu_free(g)); /* kills it */
	assert_true(clock_boot_ms() - before < 5000);
	loop_free(l);
}

static void without_nvidia_smi_there_is_no_gpu(void **state)
{
	struct loop *l = loop_new();

	setenv("PATH", *state, 1);
	assert_null(gpu_new(l));
	assert_null(gpu_free(NULL));
	assert_false(gpu_is(NULL, 1));
	loop_free(l);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(cpu_time_is_busy_or_not),
		CASE(traffic_is_summed_without_the_loopback),
		CASE(disks_are_counted_once),
		CASE(memory_in_use_is_what_is_not_available),
		CASE(the_second_sample_has_rates),
		CASE(without_a_job_there_are_no_figures_of_one),
		CASE(gpu_lines_are_read_and_others_skipped),
		CASE(nvidia_smi_is_asked_beside_everything_else),
		CASE(a_nvidia_smi_that_hangs_is_not_waited_for),
		CASE(without_nvidia_smi_there_is_no_gpu),
	};

	return cmocka_run_group_tests_name("agent: host", tests, NULL, NULL);
}
