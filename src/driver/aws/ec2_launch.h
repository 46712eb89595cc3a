#pragma once
/* ec2_launch - the request that launches the instances of a create call.  Pure. */
#include <stddef.h>

struct buf;
struct driver_row;

#define EC2_TOKEN 49
/* The client token of the row's create call: of install, run and batch. */
void ec2_token(const struct driver_row *row, char out[static EC2_TOKEN]);
/* The bytes of one RunInstances for all rows; nothing if the specs cannot be read. */
void ec2_render(const struct driver_row *rows, size_t n, struct buf *out);
