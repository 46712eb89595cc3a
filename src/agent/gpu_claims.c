#include "agent/gpu_claims.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/claim.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "link/layout.h"
#include "sys/machine.h"

static bool claim(struct gpu_claims *g, int gpu)
{
	char name[40];
	struct err err = {0};

	snprintf(name, sizeof(name), "regatta-gpu-%d", gpu);
	int fd = g->n < GPU_CLAIMS_MAX ? claim_name(NULL, name, &err) : -1;
	size_t at = g->n;

	if (fd < 0)
		return false;
	for (; at > 0 && g->fds[at - 1] > fd; at--)
		g->fds[at] = g->fds[at - 1];
	g->fds[at] = fd;
	g->n++;
	return true;
}

static void list_add(struct gpu_claims *g, int gpu)
{
	size_t used = strlen(g->list);

	snprintf(g->list + used, sizeof(g->list) - used, "%s%d", used ? "," : "", gpu);
}

int gpu_claims_take(struct gpu_claims *g, const char *node_dir, int64_t want, struct err *err)
{
	CLEANUP(freep) char *path = path_join(node_dir, LAYOUT_GPUS);

	if ((int64_t)g->n == want)
		return 0;
	gpu_claims_release(g);
	int64_t has = machine_gpus();

	for (int i = 0; i < has && (int64_t)g->n < want; i++)
		if (claim(g, i))
			list_add(g, i);
	if ((int64_t)g->n < want) {
		size_t free = g->n;

		gpu_claims_release(g);
		return err_set(
			err, ERR_CAPACITY,
			"resources.gpus = %lld: this machine has %lld, of which %zu are free",
			(long long)want, (long long)has, free);
	}
	return file_write_atomic(path, str_from(g->list), 0600, false, err);
}

void gpu_claims_resume(struct gpu_claims *g, const char *node_dir)
{
	CLEANUP(freep) char *path = path_join(node_dir, LAYOUT_GPUS);
	CLEANUP(buf_release) struct buf text = {0};
	int64_t gpu;

	buf_init(&text, sizeof(g->list));
	if (file_read(path, &text, NULL) < 0)
		return;
	g->list[0] = '\0';
	for (struct str rest = buf_str(&text); rest.n > 0;)
		if (str_to_i64(str_cut(&rest, ','), &gpu)) {
			claim(g, (int)gpu);
			list_add(g, (int)gpu);
		}
}

void gpu_claims_release(struct gpu_claims *g)
{
	while (g->n > 0)
		close(g->fds[--g->n]);
	g->list[0] = '\0';
}
