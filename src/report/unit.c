#include "report/unit.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "report/text.h"

/* By the part of the name behind the dot. */
static const struct {
	const char *last;
	enum unit unit;
} units[] = {
	{"cpu", UNIT_PERCENT},
	{"util", UNIT_PERCENT},
	{"memory", UNIT_BYTES},
	{"net_rx", UNIT_BYTES_PER_S},
	{"net_tx", UNIT_BYTES_PER_S},
	{"disk_read", UNIT_BYTES_PER_S},
	{"disk_write", UNIT_BYTES_PER_S},
};

enum unit unit_of_machine(const char *name)
{
	const char *dot = strchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(dot + 1, units[i].last) == 0)
			return units[i].unit;
	return UNIT_NONE;
}

static void add_bytes(struct buf *out, double v)
{
	static const char *const names[] = {"B", "KB", "MB", "GB", "TB", "PB"};
	size_t i = 0;

	for (; fabs(v) >= 1000 && i + 1 < sizeof(names) / sizeof(names[0]); i++)
		v /= 1000;
	buf_printf(out, "%.5g %s", v, names[i]);
}

void unit_add(struct buf *out, enum unit unit, double v)
{
	if (!isfinite(v))
		unit = UNIT_NONE;
	switch (unit) {
	case UNIT_NONE:
		number_short(out, v);
		break;
	case UNIT_PERCENT:
		buf_printf(out, "%.5g %%", v);
		break;
	case UNIT_BYTES:
		add_bytes(out, v);
		break;
	case UNIT_BYTES_PER_S:
		add_bytes(out, v);
		buf_addz(out, "/s");
		break;
	}
}
