#pragma once
/* user_data - the script that an instance runs at its first boot. */
#include <stddef.h>

struct buf;
struct driver_row;

#define USER_DATA_MAX 16384 /* what EC2 takes */
#define USER_DATA_HOME "/var/lib/regatta"
/* When the machine is to switch itself off, if that was moved on (sys/off_timer.h). */
#define USER_DATA_EXPIRES USER_DATA_HOME "/expires"

/* The script for the nodes of one create call, made from the rows alone, without waiting. */
void user_data_node(const struct driver_row *rows, size_t n, struct buf *out);
/* The script for the instance of a master. */
void user_data_master(const struct driver_row *row, struct buf *out);
