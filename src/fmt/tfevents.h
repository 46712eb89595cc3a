#pragma once
/*
 * tfevents - event files of TensorBoard: records of TensorFlow (length and content, each with a masked
 * CRC-32C), whose contents are Event messages in the wire format of protocol buffers.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct buf;

uint32_t crc32c(const void *p, size_t n);
/* The first record of a file. */
void tfevents_begin(struct buf *out, double wall_s);
/* A scalar. */
void tfevents_scalar(struct buf *out, double wall_s, int64_t step, struct str tag, double value);
