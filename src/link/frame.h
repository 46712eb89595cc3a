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
	FRAME_HELLO = 1, /* agent: its identity and the state of its job */
	FRAME_WELCOME,	 /* master: lease, acknowledged offsets */
	FRAME_REFUSE,	 /* master: the hello or join is refused, and why */
	FRAME_INPUTS,	 /* master: files to fetch before the start */
	FRAME_READY,	 /* agent: the inputs are in place, or why not */
	FRAME_START,	 /* master: start the job's command */
	FRAME_STARTED,	 /* agent: its pid */
	FRAME_SERVING,	 /* agent: the job listens on its port */
	FRAME_DATA,	 /* agent: bytes of a stream (channel) at an offset */
	FRAME_ACK,	 /* master: stream stored up to an offset */
	FRAME_METRICS,	 /* agent: metrics found in a range of a stream */
	FRAME_SAMPLE,	 /* agent: CPU, memory and GPU usage */
	FRAME_SIGNAL,	 /* master: stop the job */
	FRAME_EXIT,	 /* agent: how the job ended, and the length of each stream */
	FRAME_COLLECTED, /* agent: kept files are in place */
	FRAME_RELEASE,	 /* master: clean up and exit */
	FRAME_PING,
	FRAME_PONG,
	FRAME_BYE,	   /* either: closing on purpose, with a reason */
	FRAME_MEMBERS,	   /* master: a part of the table of the run's nodes, before START */
	FRAME_JOIN,	   /* host: its identity and its capacity */
	FRAME_JOINED,	   /* master: the join is accepted */
	FRAME_HOST_NODES,  /* host: the nodes that exist on it */
	FRAME_HOST_ASK,	   /* master: create, find, observe or destroy a node */
	FRAME_HOST_ANSWER, /* host: the answer to a HOST_ASK */
	FRAME_ENROL,	   /* agent of a machine that has no node yet: which one is it? */
	FRAME_ENROLLED,	   /* master: the node that the machine carries, and its credential */
	FRAME_PREEMPT,	   /* agent: its machine will be taken */
	FRAME_EXTEND,	   /* master: when the machine switches itself off */
	/* A command beside the job; the channel is its number on the connection. */
	FRAME_EXEC,	    /* master: run it */
	FRAME_EXEC_INPUT,   /* master: bytes of its standard input; none: the end */
	FRAME_EXEC_OUTPUT,  /* agent: 'o' or 'e', then bytes of its standard output or error */
	FRAME_EXEC_CONTROL, /* either: bytes taken; master: a signal, the size of its terminal */
	FRAME_EXEC_CLOSE,   /* agent: how it ended; master: nobody waits for it, kill it */
	/* The hang watchdog. */
	FRAME_INSPECT,	 /* master: what do the processes of the job do? */
	FRAME_INSPECTED, /* agent: they do this */
	FRAME_EXEC_ASK, /* agent: run a command on another node of the run, for a process of this one */
	FRAME_PREFLIGHT,      /* master: does this node reach these others? */
	FRAME_PREFLIGHT_DONE, /* agent: it does, or whom it does not reach */
};
#define FRAME_TYPE_MAX FRAME_PREFLIGHT_DONE

struct frame {
	uint8_t type, flags;
	uint16_t channel;
	struct str payload;
};

/* Streams of a node: the channel of DATA, ACK and METRICS.  The first three are those of its first process and
 * its metrics FIFO; each further process has two more, numbered by stream_of(). */
enum stream { STREAM_OUT, STREAM_ERR, STREAM_METRICS };
#define STREAMS 3
#define PROCESSES_MAX 256 /* of a node */
#define STREAMS_MAX (STREAMS + 2 * (PROCESSES_MAX - 1))
/* The streams of a node with so many processes. */
int streams_count(int processes);
/* STREAM_OUT or STREAM_ERR of a process; all processes share STREAM_METRICS. */
enum stream stream_of(int process, enum stream s);
int stream_process(enum stream s);
/* STREAM_OUT, STREAM_ERR or STREAM_METRICS. */
enum stream stream_kind(enum stream s);
extern const char *const stream_names[STREAMS + 1]; /* "out", "err", "metrics", NULL */
/* Of its kind. */
const char *stream_name(enum stream s);
/* The file below logs/: "<node>.log", "<node>.err.log", "<node>.metrics.log"; of its kind. */
const char *stream_suffix(enum stream s);

const char *frame_type_name(uint8_t type); /* NULL if unknown */
void frame_header(uint8_t out[static FRAME_HEADER], uint8_t type, uint8_t flags, uint16_t channel,
		  uint32_t length);
/* Size of the whole frame, as its header announces it, unchecked. */
size_t frame_size(const uint8_t header[static FRAME_HEADER]);
/* 1: *ret is a frame of *ret_used bytes, its payload points into `in`.  0: more bytes are needed.
 * -1: not a frame (too long, unknown type, flags). */
int frame_decode(struct str in, struct frame *ret, size_t *ret_used);
/* A DATA payload: the offset, then the bytes. */
void data_offset_put(uint8_t out[static 8], uint64_t offset);
bool data_payload(struct str payload, uint64_t *ret_offset, struct str *ret_bytes);
