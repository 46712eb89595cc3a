/* Engine local: what this machine has for runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "driver/engine_tools.h"
#include "sys/cgroup.h"
#include "sys/container.h"

#define MEGABYTE ((uint64_t)1024 * 1024)
#define LEAST_MB 64 /* below it a master does not start a run */
#define ENOUGH_MB 1024

/* The directory that exists on the way to the home. */
static char *existing(const char *home)
{
	char *path = xstrdup(home);

	while (access(path, F_OK) < 0 && strrchr(path, '/') && strrchr(path, '/') != path)
		*strrchr(path, '/') = '\0';
	return path;
}

static void check_home(struct checkup *c)
{
	CLEANUP(freep) char *path = existing(c->home);
	struct statvfs fs;
	uint64_t mb;

	if (access(path, W_OK) < 0 || statvfs(path, &fs) < 0) {
		checkup_add(c, "home", CHECK_BAD,
			    arena_printf(c->a, "%s cannot be written: %s", path, strerror(errno)),
			    "set REGATTA_HOME to a directory of yours");
		return;
	}
	checkup_add(c, "home", CHECK_FINE, c->home, NULL);
	mb = (uint64_t)fs.f_bavail * fs.f_frsize / MEGABYTE;
	checkup_add(c, "disk",
		    mb < LEAST_MB    ? CHECK_BAD
		    : mb < ENOUGH_MB ? CHECK_WARNING
				     : CHECK_FINE,
		    arena_printf(c->a, "%llu MB are free", (unsigned long long)mb),
		    mb < ENOUGH_MB ? "make room, or set REGATTA_HOME to another file system"
				   : NULL);
}

static void check_cgroups(struct checkup *c)
{
	struct cgroup cg;

	cgroup_place("doctor", &cg);
	if (cg.unified[0] || cg.memory[0])
		checkup_add(c, "cgroups", CHECK_FINE, cg.unified[0] ? "v2" : "v1, memory only",
			    NULL);
	else
		checkup_add(
			c, "cgroups", CHECK_WARNING,
			"not writable: jobs are followed by their processes, and `memory` is not limited",
			"run as root, or in a session with delegated cgroups (systemd-run --user)");
}

static void check_containers(struct checkup *c)
{
	const char *path = getenv("PATH");
	struct container_tool t;
	struct err ignored;

	if (container_find(path ? path : "", false, &t, &ignored) < 0)
		checkup_add(c, "containers", CHECK_WARNING, "neither docker nor podman is here",
			    "install one of them for jobs with an `image`");
	else if (t.in_place_of)
		checkup_add(c, "containers", CHECK_FINE,
			    arena_printf(c->a, "%s; %s does not answer", t.program, t.in_place_of),
			    NULL);
	else
		checkup_add(c, "containers", CHECK_FINE, t.program, NULL);
}

static void check(struct checkup *c)
{
	check_home(c);
	check_cgroups(c);
	check_containers(c);
}

const struct engine_tools local_tools = {
	.engine = "local",
	.check = check,
};
