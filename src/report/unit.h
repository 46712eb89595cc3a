#pragma once
/* unit - the units of the machine's metrics.  The job's own metrics have none. */

struct buf;

enum unit { UNIT_NONE, UNIT_PERCENT, UNIT_BYTES, UNIT_BYTES_PER_S };

/* The unit of a metric that the agent samples: host.*, job.*, gpuN.*. */
enum unit unit_of_machine(const char *name);
/* A value with its unit, 5 significant digits: "12.5", "40 %", "1.5 GB", "20 MB/s". */
void unit_add(struct buf *out, enum unit unit, double v);
