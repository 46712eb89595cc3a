#include "sys/files_limit.h"

#include <sys/resource.h>

static rlim_t before; /* 0: never raised */

uint64_t files_limit_raise(uint64_t most)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 0;
	before = r.rlim_cur;
	r.rlim_cur = r.rlim_max < most ? r.rlim_max : most;
	if (r.rlim_cur <= before)
		return before;
	return setrlimit(RLIMIT_NOFILE, &r) < 0 ? before : r.rlim_cur;
}

void files_limit_restore(pid_t pid)
{
	struct rlimit r;

	if (!before || prlimit(pid, RLIMIT_NOFILE, NULL, &r) < 0 || r.rlim_cur == before)
		return;
	r.rlim_cur = before;
	(void)prlimit(pid, RLIMIT_NOFILE, &r, NULL); /* fails if the process has ended */
}
