#include "fmt/tfevents.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define POLYNOMIAL 0x82f63b78u /* of CRC-32C, reflected */
#define MASK_DELTA 0xa282ead8u
#define EVENT_MAX 4096
#define VERSION "brain.Event:2"

/* Fields of Event, Summary and Summary.Value, with their wire types. */
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum {
	EVENT_WALL_TIME = 1,
	EVENT_STEP = 2,
	EVENT_FILE_VERSION = 3,
	EVENT_SUMMARY = 5,
	SUMMARY_VALUE = 1,
	VALUE_TAG = 1,
	VALUE_SIMPLE = 2,
};

uint32_t crc32c(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint32_t crc = ~0u;

	while (n--) {
		crc ^= *c++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
	}
	return ~crc;
}

static void put_little(struct buf *out, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_addc(out, (char)(v >> (8 * i)));
}

static void put_crc(struct buf *out, const void *p, size_t n)
{
	uint32_t crc = crc32c(p, n);

	put_little(out, (crc >> 15 | crc << 17) + MASK_DELTA, 4);
}

static void put_varint(struct buf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_addc(out, (char)(v | 0x80));
	buf_addc(out, (char)v);
}

static void put_tag(struct buf *out, int field, enum wire type)
{
	put_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_bytes(struct buf *out, int field, struct str s)
{
	put_tag(out, field, WIRE_BYTES);
	put_varint(out, s.n);
	buf_addstr(out, s);
}

static void put_wall_time(struct buf *out, double wall_s)
{
	uint64_t bits;

	memcpy(&bits, &wall_s, sizeof(bits));
	put_tag(out, EVENT_WALL_TIME, WIRE_64);
	put_little(out, bits, 8);
}

static void put_record(struct buf *out, struct str event)
{
	size_t at = out->n;

	put_little(out, event.n, 8);
	if (out->n == at + 8)
		put_crc(out, out->p + at, 8);
	buf_addstr(out, event);
	put_crc(out, event.p, event.n);
}

void tfevents_begin(struct buf *out, double wall_s)
{
	CLEANUP(buf_release) struct buf event = {0};

	buf_init(&event, EVENT_MAX);
	put_wall_time(&event, wall_s);
	put_bytes(&event, EVENT_FILE_VERSION, STR(VERSION));
	put_record(out, buf_str(&event));
}

void tfevents_scalar(struct buf *out, double wall_s, int64_t step, struct str tag, double value)
{
	CLEANUP(buf_release) struct buf one = {0}, summary = {0}, event = {0};
	float f = (float)value;
	uint32_t bits;

	buf_init(&one, EVENT_MAX);
	buf_init(&summary, EVENT_MAX);
	buf_init(&event, EVENT_MAX);
	memcpy(&bits, &f, sizeof(bits));
	put_bytes(&one, VALUE_TAG, tag);
	put_tag(&one, VALUE_SIMPLE, WIRE_32);
	put_little(&one, bits, 4);
	put_bytes(&summary, SUMMARY_VALUE, buf_str(&one));
	put_wall_time(&event, wall_s);
	put_tag(&event, EVENT_STEP, WIRE_VARINT);
	put_varint(&event, (uint64_t)step);
	put_bytes(&event, EVENT_SUMMARY, buf_str(&summary));
	put_record(out, buf_str(&event));
}
