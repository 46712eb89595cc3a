#pragma once
/* kube_log - the log of a container by the API, for the drivers whose pods have no agent (driver.h). */
#include "driver/driver.h"

/* log: "POD/CONTAINER". */
struct driver_log *kube_log_open(const struct driver_row *row, const char *log, const char *at);
int kube_log_read(struct driver_log *l, int wait_ms, const struct deadline *d, struct buf *out,
		  struct err *err);
void kube_log_at(const struct driver_log *l, char at[static DRIVER_LOG_AT]);
bool kube_log_gap(struct driver_log *l);
struct driver_log *kube_log_free(struct driver_log *l);
