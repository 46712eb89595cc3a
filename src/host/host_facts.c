/* The capacity of this machine. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "host/internal.h"

#define NVIDIA_DIR "/proc/driver/nvidia/gpus"

int64_t host_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n;
}

uint64_t host_memory(void)
{
	struct sysinfo si;

	return sysinfo(&si) == 0 ? (uint64_t)si.totalram * si.mem_unit : 0;
}

/* Counted in /proc, because nvidia-smi takes seconds. */
int64_t host_gpus(void)
{
	DIR *d = opendir(NVIDIA_DIR);
	const struct dirent *e;
	int64_t n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}
