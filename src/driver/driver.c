#include "driver/driver.h"

#include <stddef.h>
#include <string.h>

static const struct driver *const drivers[] = {
	&local_node_driver,
};

const struct driver *driver_for(const char *kind)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcmp(drivers[i]->kind, kind) == 0)
			return drivers[i];
	return NULL;
}
