#pragma once
/*
 * frame - the unit of the link: u32 length, u8 type, u8 flags, u16 channel, payload.
 *
 * Little endian; length counts the payload only and is at most FRAME_MAX_PAYLOAD.
 * Control payloads are JSON, data payloads are a u64 offset followed by raw bytes.
 * docs/protocol.md is the contract.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

#define FRAME_HEADER 8
#define FRAME_MAX_PAYLOAD (1024 * 1024)

enum frame_type {
	FRAME_HELLO = 1, /* agent: who I am, what I hold */
	FRAME_WELCOME,	 /* master: lease, acknowledged offsets */
	FRAME_REFUSE,	 /* master: go away, and why */
	FRAME_INPUTS,	 /* master: prepare */
	FRAME_READY,	 /* agent: prepared, or why not */
	FRAME_START,	 /* master: run this */
	FRAME_STARTED,	 /* agent */
	FRAME_SERVING,	 /* agent: the port answers */
	FRAME_DATA,	 /* agent: bytes of a stream (channel) at an offset */
	FRAME_ACK,	 /* master: stream stored up to an offset */
	FRAME_METRICS,	 /* agent: samples found in a range of a stream */
	FRAME_SAMPLE,	 /* agent: host samples */
	FRAME_SIGNAL,	 /* master: stop the job */
	FRAME_EXIT,	 /* agent: how it ended, and how long each stream is */
	FRAME_COLLECTED, /* agent: kept files are in place */
	FRAME_RELEASE,	 /* master: clean up and leave */
	FRAME_PING,
	FRAME_PONG,
	FRAME_BYE,	   /* either: a wanted end, with a reason */
	FRAME_MEMBERS,	   /* master: a part of the table of members, before START */
	FRAME_JOIN,	   /* host: who I am, what I have */
	FRAME_JOINED,	   /* master */
	FRAME_HOST_NODES,  /* host: the nodes that are on it */
	FRAME_HOST_ASK,	   /* master: create, find, observe or destroy a node */
	FRAME_HOST_ANSWER, /* host */
};
#define FRAME_TYPE_MAX FRAME_HOST_ANSWER

struct frame {
	uint8_t type, flags;
	uint16_t channel;
	struct str payload;
};

/* Streams of a node: the channel of DATA, ACK and METRICS. */
enum stream { STREAM_OUT, STREAM_ERR, STREAM_METRICS };
#define STREAMS 3
extern const char *const stream_names[STREAMS + 1]; /* "out", "err", "metrics", NULL */
const char *stream_name(enum stream s);
/* The file below logs/: "<node>.log", "<node>.err.log", "<node>.metrics.log". */
const char *stream_suffix(enum stream s);

const char *frame_type_name(uint8_t type); /* NULL if unknown */
void frame_header(uint8_t out[static FRAME_HEADER], uint8_t type, uint8_t flags, uint16_t channel,
		  uint32_t length);
/* Bytes of the whole frame that a header announces (not judged). */
size_t frame_size(const uint8_t header[static FRAME_HEADER]);
/* 1: a frame was taken, *ret_used bytes are spent (payload points into the input).  0: more
 * bytes needed. -1: not a frame (too long, unknown type). */
int frame_decode(struct str in, struct frame *ret, size_t *ret_used);
/* DATA payloads. */
void data_offset_put(uint8_t out[static 8], uint64_t offset);
bool data_payload(struct str payload, uint64_t *ret_offset, struct str *ret_bytes);
