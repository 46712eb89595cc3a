#include "driver/aws/user_data.h"

#include <inttypes.h>

#include "base/buf.h"
#include "driver/driver.h"

/* The first line arms the timer that switches the machine off, so that its costs end even if the rest
 * of the script fails. */
static void add_timer(const struct driver_row *row, struct buf *out)
{
	buf_printf(out,
		   "#!/bin/sh\n"
		   "left=$(( (%" PRId64 " - $(date +%%s)) / 60 ))\n"
		   "shutdown -h +$(( left > 1 ? left : 1 ))\n",
		   row->expires_ms / 1000);
}

void user_data_node(const struct driver_row *rows, size_t n, struct buf *out)
{
	(void)n;
	add_timer(&rows[0], out);
}

void user_data_master(const struct driver_row *row, struct buf *out)
{
	add_timer(row, out);
}
