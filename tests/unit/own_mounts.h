#pragma once
/* own_mounts - what a test mounts is seen by itself and its children only, and gone when they are killed. */
#include <sched.h>
#include <sys/mount.h>

/* Called first in main(), with further CLONE_NEW... or 0.  Without the right to it nothing happens, and what needs a
 * mount is skipped by the test. */
static inline void own_mounts(int further)
{
	if (unshare(CLONE_NEWNS | further) == 0)
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}
