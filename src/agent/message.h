#pragma once
/*
 * message - the JSON payloads of the link, seen from the agent.
 *
 * Decoding is strict about what it needs and blind to what it does not know: an
 * unknown key is ignored, a missing or wrongly typed required key is
 * ERR_PROTOCOL with the key's name.  Everything decoded lives in the arena;
 * strings are NUL-terminated and hold no NUL of their own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "link/frame.h"

struct arena;
struct buf;

#define MESSAGE_REASON 160 /* of a reason, NUL included */
#define MESSAGE_MAX_GAPS 8

struct msg_welcome {
	int64_t lease_ms; /* 0: no lease */
	uint64_t acks[STREAMS], scanned[STREAMS];
};

struct msg_refuse {
	enum err_kind kind;
	const char *reason;
};

struct msg_data {
	const char *src, *path;
	int64_t shard_index, shard_count; /* count 1: everything */
};

struct msg_metric {
	const char *name, *pattern;
};

struct msg_inputs {
	const char *source, *source_sha256; /* NULL: none */
	struct msg_data *data;
	size_t ndata;
	const char *cwd; /* "": the work directory */
	const char *argv0, *path;
	const char *address;
	int port; /* 0: none */
	uint64_t memory;
	struct msg_metric *metrics;
	size_t nmetrics;
	const char *metric_prefix; /* NULL: the default */
	int64_t sample_ms;	   /* 0: none */
	const char **keep;
	size_t nkeep;
	const char *output_dir; /* "": nowhere */
};

struct msg_start {
	int attempt;
	const char **argv; /* NULL-terminated, at least one */
	const char **env;  /* "NAME=value", NULL-terminated */
	size_t nenv;
	const char *cwd;	 /* "": the work directory */
	const char *hostfile;	 /* text; "": none */
	const char *machinefile; /* the same for MPICH and Intel MPI */
	const char *address;
	int port;
	int64_t grace_ms;
	uint64_t memory;     /* 0: no limit */
	int64_t deadline_ms; /* left to run; 0: no limit */
};

/* A hole in a stream: bytes that could not be kept. */
struct gap {
	enum stream stream;
	uint64_t offset, bytes;
};

/* How an attempt ended: EXIT, HELLO.exit and the last record of the status file. */
struct exit_report {
	int attempt;
	int code;   /* -1: did not exit by itself */
	int signal; /* 0: none */
	bool oom;
	enum err_kind kind; /* ERR_NONE: the job's own doing */
	char reason[MESSAGE_REASON];
	uint64_t streams[STREAMS];
	struct gap gaps[MESSAGE_MAX_GAPS];
	size_t ngaps;
};

/* "; "-joined; what does not fit is cut. */
void exit_add_reason(struct exit_report *e, const char *text);

enum holds { HOLDS_NOTHING, HOLDS_STARTED, HOLDS_OTHER_BOOT };

struct msg_hello {
	const char *run, *node, *token, *boot_id;
	int64_t pid;
	int attempt;
	enum holds holds;
	uint64_t streams[STREAMS];
	const struct exit_report *exit; /* NULL: has not ended */
};

int msg_welcome(struct str json, struct arena *a, struct msg_welcome *ret, struct err *err);
int msg_refuse(struct str json, struct arena *a, struct msg_refuse *ret, struct err *err);
int msg_inputs(struct str json, struct arena *a, struct msg_inputs *ret, struct err *err);
int msg_start(struct str json, struct arena *a, struct msg_start *ret, struct err *err);
int msg_signal(struct str json, struct arena *a, bool *ret_hurry, struct err *err);
/* A BYE without a reason is a BYE all the same. */
const char *msg_bye(struct str json, struct arena *a);

void msg_put_hello(struct buf *out, const struct msg_hello *m);
void msg_put_ready(struct buf *out, const struct err *why); /* kind ERR_NONE: ok */
void msg_put_started(struct buf *out, int attempt, int64_t pid);
void msg_put_serving(struct buf *out, int attempt);
void msg_put_exit(struct buf *out, const struct exit_report *e);
void msg_put_collected(struct buf *out, uint64_t files, uint64_t bytes, const char *error);
void msg_put_bye(struct buf *out, const char *reason);
