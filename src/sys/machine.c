#include "sys/machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "sys/child_run.h"

#define MACHINE_ID_FILE "/etc/machine-id"
#define MACHINE_ID_MAX 256
#define NVIDIA_DIR "/proc/driver/nvidia/gpus"
#define ANSWER_MAX (64 * 1024)
#define ANSWER_MS 5000 /* nvidia-smi may hang with the driver */

bool machine_id(char id[static MACHINE_ID_LEN + 1])
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MACHINE_ID_MAX);
	if (file_read(MACHINE_ID_FILE, &text, NULL) < 0 || text.n < MACHINE_ID_LEN)
		return false; /* "uninitialized" */
	snprintf(id, MACHINE_ID_LEN + 1, "%s", buf_str(&text).p);
	return true;
}

int64_t machine_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n;
}

uint64_t machine_memory(void)
{
	struct sysinfo si;

	return sysinfo(&si) == 0 ? (uint64_t)si.totalram * si.mem_unit : 0;
}

static int64_t count_listed(void)
{
	DIR *d = opendir(NVIDIA_DIR);
	const struct dirent *e;
	int64_t n = 0;

	if (!d)
		return -1;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* Each line is "GPU 0: NVIDIA A100 (UUID: GPU-...)". */
static int64_t count_asked(void)
{
	CLEANUP(freep) char *file = NULL;
	CLEANUP(buf_release) struct buf text = {0};
	struct deadline d = deadline_in(ANSWER_MS, NULL);
	const char *path = getenv("PATH");
	int code = 0;
	int64_t n = 0;

	if (!path || child_find_command("nvidia-smi", path, "/", &file, NULL) < 0)
		return 0;
	const char *const argv[] = {file, "-L", NULL};
	struct err err = {0};

	buf_init(&text, ANSWER_MAX);
	if (child_run_words(argv, &d, &text, &code, &err) < 0 || code != 0)
		return 0;
	for (struct str rest = buf_str(&text); rest.n > 0;)
		n += str_starts(str_cut(&rest, '\n'), STR("GPU "));
	return n;
}

int64_t machine_gpus(void)
{
	static int64_t asked = -1;
	int64_t listed = count_listed();

	if (listed >= 0)
		return listed;
	if (asked < 0)
		asked = count_asked();
	return asked;
}
