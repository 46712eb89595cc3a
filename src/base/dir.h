#pragma once
/* dir - CLEANUP(closedirp) for directories; apart from cleanup.h because <dirent.h> brings many names. */
#include <dirent.h>

static inline void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}
