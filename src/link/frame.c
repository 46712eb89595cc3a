#include "link/frame.h"

static const char *const type_names[FRAME_TYPE_MAX + 1] = {
	[FRAME_HELLO] = "hello",
	[FRAME_WELCOME] = "welcome",
	[FRAME_REFUSE] = "refuse",
	[FRAME_INPUTS] = "inputs",
	[FRAME_READY] = "ready",
	[FRAME_START] = "start",
	[FRAME_STARTED] = "started",
	[FRAME_SERVING] = "serving",
	[FRAME_DATA] = "data",
	[FRAME_ACK] = "ack",
	[FRAME_METRICS] = "metrics",
	[FRAME_SAMPLE] = "sample",
	[FRAME_SIGNAL] = "signal",
	[FRAME_EXIT] = "exit",
	[FRAME_COLLECTED] = "collected",
	[FRAME_RELEASE] = "release",
	[FRAME_PING] = "ping",
	[FRAME_PONG] = "pong",
	[FRAME_BYE] = "bye",
	[FRAME_MEMBERS] = "members",
	[FRAME_JOIN] = "join",
	[FRAME_JOINED] = "joined",
	[FRAME_HOST_NODES] = "host_nodes",
	[FRAME_HOST_ASK] = "host_ask",
	[FRAME_HOST_ANSWER] = "host_answer",
	[FRAME_ENROL] = "enrol",
	[FRAME_ENROLLED] = "enrolled",
	[FRAME_PREEMPT] = "preempt",
	[FRAME_EXTEND] = "extend",
	[FRAME_EXEC] = "exec",
	[FRAME_EXEC_INPUT] = "exec_input",
	[FRAME_EXEC_OUTPUT] = "exec_output",
	[FRAME_EXEC_CONTROL] = "exec_control",
	[FRAME_EXEC_CLOSE] = "exec_close",
	[FRAME_INSPECT] = "inspect",
	[FRAME_INSPECTED] = "inspected",
	[FRAME_EXEC_ASK] = "exec_ask",
	[FRAME_PREFLIGHT] = "preflight",
	[FRAME_PREFLIGHT_DONE] = "preflight_done",
};

const char *const stream_names[STREAMS + 1] = {
	[STREAM_OUT] = "out",
	[STREAM_ERR] = "err",
	[STREAM_METRICS] = "metrics",
};

static const char *const stream_suffixes[STREAMS] = {
	[STREAM_OUT] = ".log",
	[STREAM_ERR] = ".err.log",
	[STREAM_METRICS] = ".metrics.log",
};

int streams_count(int processes)
{
	return STREAMS + 2 * (processes > 1 ? processes - 1 : 0);
}

enum stream stream_of(int process, enum stream s)
{
	return process > 0 && s != STREAM_METRICS
		       ? (enum stream)(STREAMS + 2 * (process - 1) + (int)s)
		       : s;
}

int stream_process(enum stream s)
{
	return (int)s < STREAMS ? 0 : 1 + ((int)s - STREAMS) / 2;
}

enum stream stream_kind(enum stream s)
{
	return (int)s < STREAMS ? s : (enum stream)(((int)s - STREAMS) % 2);
}

const char *stream_name(enum stream s)
{
	return stream_names[stream_kind(s)];
}

const char *stream_suffix(enum stream s)
{
	return stream_suffixes[stream_kind(s)];
}

const char *frame_type_name(uint8_t type)
{
	return type <= FRAME_TYPE_MAX ? type_names[type] : NULL;
}

static void put_le(uint8_t *out, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le(const void *p, size_t n)
{
	const uint8_t *in = p;
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)in[i] << (8 * i);
	return v;
}

void frame_header(uint8_t out[static FRAME_HEADER], uint8_t type, uint8_t flags, uint16_t channel,
		  uint32_t length)
{
	put_le(out, length, 4);
	out[4] = type;
	out[5] = flags;
	put_le(out + 6, channel, 2);
}

size_t frame_size(const uint8_t header[static FRAME_HEADER])
{
	return FRAME_HEADER + (size_t)get_le(header, 4);
}

int frame_decode(struct str in, struct frame *ret, size_t *ret_used)
{
	if (in.n < FRAME_HEADER)
		return 0;
	size_t length = (size_t)get_le(in.p, 4);
	uint8_t type = (uint8_t)in.p[4];

	/* Refuse a bad header before waiting for its payload or allocating memory for it. */
	if (length > FRAME_MAX_PAYLOAD || !frame_type_name(type) || in.p[5] != 0)
		return -1;
	if (in.n - FRAME_HEADER < length)
		return 0;
	*ret = (struct frame){
		.type = type,
		.flags = (uint8_t)in.p[5],
		.channel = (uint16_t)get_le(in.p + 6, 2),
		.payload = {in.p + FRAME_HEADER, length},
	};
	*ret_used = FRAME_HEADER + length;
	return 1;
}

void data_offset_put(uint8_t out[static 8], uint64_t offset)
{
	put_le(out, offset, 8);
}

bool data_payload(struct str payload, uint64_t *ret_offset, struct str *ret_bytes)
{
	if (payload.n < 8)
		return false;
	*ret_offset = get_le(payload.p, 8);
	*ret_bytes = (struct str){payload.p + 8, payload.n - 8};
	return true;
}
