#pragma once
/* user_data - the script that an instance runs at its first boot. */
#include <stddef.h>

struct buf;
struct driver_row;

#define USER_DATA_MAX 16384 /* what EC2 takes */

/* Of the nodes of one create call.  Without waiting, from the rows alone. */
void user_data_node(const struct driver_row *rows, size_t n, struct buf *out);
/* Of the instance of a master. */
void user_data_master(const struct driver_row *row, struct buf *out);
