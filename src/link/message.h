#pragma once
/*
 * message - the payloads of the link, one struct per frame, for both ends.
 *
 * message_X_put writes a payload, message_X_get reads it.  The tables of message.c list the keys of a
 * message; docs/protocol.md says what they mean.  Known keys are checked strictly (ERR_PROTOCOL,
 * naming frame and key), others are ignored, so an optional key can be added without a new protocol
 * version.  Everything read lives in the arena.  RELEASE, PING and PONG are MESSAGE_EMPTY.  DATA is
 * in link/frame.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "core/holds.h"
#include "core/outcome.h"
#include "fmt/schema.h"
#include "link/frame.h"

struct arena;
struct buf;

#define MESSAGE_EMPTY "{}"
#define MESSAGE_REASON 160 /* size of exit_report.reason, NUL included */
#define MESSAGE_MAX_GAPS 8
/* The longest HELLO or JOIN, and the longest frame that is accepted before one of them is. */
#define MESSAGE_HELLO_MAX 4096

/* A gap in a stream: bytes of the job that could not be stored. */
struct gap {
	enum stream stream;
	uint64_t offset, bytes; /* offset counts stored bytes only */
};

/* How one of several processes of a node ended.  Code -1 and signal 0: not by itself. */
struct process_end {
	int code, signal;
};

/* How an attempt ended: EXIT, HELLO.exit and the last record of the status file. */
struct exit_report {
	int attempt;
	int code;   /* -1: did not exit by itself */
	int signal; /* 0: none */
	bool oom;
	enum err_kind kind; /* ERR_NONE: the job ended by itself */
	char reason[MESSAGE_REASON];
	uint64_t streams[STREAMS_MAX]; /* final lengths */
	struct gap gaps[MESSAGE_MAX_GAPS];
	size_t ngaps;
	struct process_end processes[PROCESSES_MAX]; /* of a node with several */
	size_t nprocesses;
	const char *
		tail; /* the last bytes of a failed job's output, if START asked for it; NULL: none */
};
void message_exit_put(const struct exit_report *m, struct buf *out);
int message_exit_get(struct str json, struct arena *a, struct exit_report *ret, struct err *err);
/* Append "; " and text to e->reason, cut to its size. */
void exit_add_reason(struct exit_report *e, const char *text);

/* ---- from the agent ---- */

struct message_hello {
	int64_t proto; /* LINK_PROTO */
	const char *run, *node, *token, *boot_id;
	int64_t pid;
	const char *version;
	int attempt; /* 0: none */
	enum holds holds;
	uint64_t streams[STREAMS_MAX];	/* bytes spooled so far; only the first STREAMS are used */
	const struct exit_report *exit; /* NULL: has not ended */
	/* This agent understands MEMBERS, and templates in START. */
	bool templates;
	/* Numeric local address of the agent's connection, and the interface that has it.  NULL: not
	 * known, or not a network connection. */
	const char *address, *interface;
	int incarnation; /* of the node, from agent.json; 0: written by a version without it */
	bool exec;	 /* this agent understands EXEC */
	bool inspect;	 /* and INSPECT */
};
/* An interface name: letters, digits and "._:@-", at most 15. */
bool message_interface_ok(const char *name);
void message_hello_put(const struct message_hello *m, struct buf *out);
/* Another protocol version is ERR_UNAVAILABLE, whatever its other keys are. */
int message_hello_get(struct str json, struct arena *a, struct message_hello *ret, struct err *err);

/* What the machine of the node has, for the preflight. */
struct message_facts {
	int port;	 /* on which the agent listens until START */
	int64_t mtu;	 /* of the interface that has the node's address; 0: not known */
	int64_t shm;	 /* free bytes of /dev/shm; -1: there is none */
	int64_t files;	 /* that a process may open */
	int64_t time_ms; /* wall clock */
};
struct message_ready {
	bool ok;
	enum err_kind kind; /* if not ok */
	const char *reason;
	const struct message_facts *preflight; /* NULL: INPUTS did not ask for it */
};
void message_ready_put(const struct message_ready *m, struct buf *out);
int message_ready_get(struct str json, struct arena *a, struct message_ready *ret, struct err *err);

struct message_started {
	int attempt;
	int64_t pid; /* 0: the job ended before its pid was known */
};
void message_started_put(const struct message_started *m, struct buf *out);
int message_started_get(struct str json, struct arena *a, struct message_started *ret,
			struct err *err);

struct message_serving {
	int attempt;
};
void message_serving_put(const struct message_serving *m, struct buf *out);
int message_serving_get(struct str json, struct arena *a, struct message_serving *ret,
			struct err *err);

/* The provider has announced that it will take the node's machine. */
struct message_preempt {
	int64_t time_ms; /* wall clock */
};
void message_preempt_put(const struct message_preempt *m, struct buf *out);
int message_preempt_get(struct str json, struct arena *a, struct message_preempt *ret,
			struct err *err);

/* What the processes of the job do. */
struct message_inspected {
	const char *line;   /* in a few words that can be compared */
	const char *report; /* many lines */
};
void message_inspected_put(const struct message_inspected *m, struct buf *out);
int message_inspected_get(struct str json, struct arena *a, struct message_inspected *ret,
			  struct err *err);

/* The answer to PREFLIGHT. */
struct message_preflight_done {
	int round;
	int failed; /* peers that it does not reach; of the first of them: */
	int rank;
	bool reached; /* but large messages are lost */
	const char *reason;
};
void message_preflight_done_put(const struct message_preflight_done *m, struct buf *out);
int message_preflight_done_get(struct str json, struct arena *a, struct message_preflight_done *ret,
			       struct err *err);

/* One value of METRICS.  The name is unchecked: the master checks it before it stores the value. */
struct message_point {
	struct str name;
	double value;	 /* NAN: not a finite number */
	int64_t step;	 /* -1: none */
	int64_t time_ms; /* wall clock */
	int64_t total;	 /* number of all steps; 0: not known */
};
/* Append one value to the text for message_metrics.encoded. */
void message_point_put(const struct message_point *p, struct buf *encoded);

struct message_metrics {
	uint64_t from, to; /* of the stream */
	uint64_t bad;	   /* values that could not be parsed */
	struct message_point *samples;
	size_t nsamples;
	/* Only for writing, instead of samples: text made by message_point_put. */
	struct str encoded;
};
void message_metrics_put(const struct message_metrics *m, struct buf *out);
int message_metrics_get(struct str json, struct arena *a, struct message_metrics *ret,
			struct err *err);

struct message_value {
	struct str name;
	double value; /* NAN: not a finite number */
};
struct message_sample {
	int64_t time_ms; /* wall clock */
	struct message_value *values;
	size_t nvalues;
};
void message_sample_put(const struct message_sample *m, struct buf *out);
int message_sample_get(struct str json, struct arena *a, struct message_sample *ret,
		       struct err *err);

struct message_collected {
	uint64_t files, bytes;
	const char *error; /* NULL: none */
	/* of an error by which files were lost; ERR_NONE: `error` is only a warning */
	enum err_kind kind;
};
void message_collected_put(const struct message_collected *m, struct buf *out);
int message_collected_get(struct str json, struct arena *a, struct message_collected *ret,
			  struct err *err);

/* ---- from the master ---- */

struct message_welcome {
	int64_t lease_ms; /* 0: no lease */
	/* The node may be replaced when its agent was silent for longer; the agent stops the job
	 * before.  0: it is never replaced. */
	int64_t lost_ms;
	uint64_t acks[STREAMS_MAX], scanned[STREAMS_MAX];
};
void message_welcome_put(const struct message_welcome *m, struct buf *out);
int message_welcome_get(struct str json, struct arena *a, struct message_welcome *ret,
			struct err *err);

struct message_refuse {
	enum err_kind kind; /* ERR_NONE: a kind that this version does not know */
	const char *reason;
};
void message_refuse_put(const struct message_refuse *m, struct buf *out);
int message_refuse_get(struct str json, struct arena *a, struct message_refuse *ret,
		       struct err *err);

/* A file of the master, by its digest. */
struct message_blob {
	const char *sha256; /* 64 hex digits */
};
struct message_data {
	const char
		*path; /* below the work directory; absolute on a machine that is the node's own */
	/* A path on the machine that agent and master share, relative to the base_dir of agent.json.
	 * NULL: `blobs` or `list` is given instead. */
	const char *src;
	const char *sha256; /* of data that is one file; NULL: not checked */
	const char *md5;    /* of data that is one file; NULL: not checked */
	int64_t shard_index,
		shard_count; /* of a src or list with many files; count 1: everything */
	/* Instead of src: files to be fetched, in this order. */
	struct message_blob *blobs;
	size_t nblobs;
	/* each blob is an archive to be unpacked at path; otherwise one blob is the file at path */
	bool tar;
	/* Instead of src and blobs: the digest of a blob that is a list of objects (fmt/object_list.h), what
	 * they are below, and under which number the master tells their URLs. */
	const char *list, *from;
	int64_t input;
	/* the file is an archive (agent/unpack.h): path is the directory with what is in it */
	bool unpack;
};
struct message_metric {
	const char *name; /* NULL: a group of the pattern gives it */
	const char *pattern;
};
/* Ports on which the job will listen. */
struct message_port {
	int first, count;
	bool any;	 /* on all addresses of the machine, not only on that of the node */
	const char *key; /* of the job file that chooses another one */
};
struct message_inputs {
	const struct message_blob *source; /* a tar; NULL: none */
	struct message_data *data;
	size_t ndata;
	const char *argv0, *path;
	const char *address;
	int port; /* 0: none */
	struct message_port *ports;
	size_t nports;
	int gpus;	 /* of the machine, for this node alone */
	uint64_t memory; /* 0: no limit */
	struct message_metric *metrics;
	size_t nmetrics;
	const char *metric_prefix; /* NULL: the default */
	int64_t sample_ms;	   /* 0: none */
	const char **keep;
	size_t nkeep;
	int previous; /* the attempt whose outputs are to be fetched; 0: none */
	int attempt; /* the next one on this node: setup's output comes first in its streams; 0: 1 */
	/* Commands to be run before READY, each by /bin/sh -c, with this environment and time limit. */
	const char **setup;
	size_t nsetup;
	/* Packages to be installed before that, by the machine's own package manager. */
	const char **packages;
	size_t npackages;
	struct env_pair *setup_env;
	size_t nsetup_env;
	int64_t setup_ms;   /* 0: no limit */
	int preempt_signal; /* sent to the job when its machine will be taken; 0: none */
	const char *image;  /* the job runs in a container of it; NULL: on the machine itself */
	const char *
		image_source; /* path in the image that is copied to the work directory; NULL: none */
	const char *registry_user, *registry_password; /* for the pull; NULL: none */
	bool registry_login; /* they are asked for (POST .../nodes/NODE/registry) before the pull */
	bool new_machine;    /* made for this run: what is missing to run containers is installed */
	bool preflight;	     /* listen for the other nodes, and say in READY what the machine has */
};
void message_inputs_put(const struct message_inputs *m, struct buf *out);
int message_inputs_get(struct str json, struct arena *a, struct message_inputs *ret,
		       struct err *err);

/* A part of the table of the run's nodes: the addresses of ranks first, first + 1, ... */
#define MESSAGE_MAX_MEMBERS 100000
#define MESSAGE_NO_ADDRESS "-"
struct message_role {
	const char *name;
	int first, count; /* its ranks */
	int port;	  /* 0: none */
	int processes;	  /* on each of its nodes */
	bool counted;
};
struct message_members {
	int first, total;
	struct message_role *roles; /* all of the run, in the order of their ranks */
	size_t nroles;
	const char *addresses; /* separated by spaces; MESSAGE_NO_ADDRESS: not known */
	const char *names;     /* of the same members; NULL: "<role>-<index>" */
};
void message_members_put(const struct message_members *m, struct buf *out);
int message_members_get(struct str json, struct arena *a, struct message_members *ret,
			struct err *err);

/* Does the node reach these others?  Each listens as it has said in READY. */
struct message_peer {
	int rank;
	const char *address;
	int port;
};
struct message_preflight {
	int round;
	struct message_peer *peers;
	size_t npeers;
	int64_t limit_ms;
};
void message_preflight_put(const struct message_preflight *m, struct buf *out);
int message_preflight_get(struct str json, struct arena *a, struct message_preflight *ret,
			  struct err *err);

struct message_start {
	int attempt;
	/* In the table that MEMBERS sent before; env, hostfile and machinefile are templates then
	 * (base/expand.h).  -1: they are final texts, and no MEMBERS was sent. */
	int rank;
	const char *interface; /* that has the node's address; NULL: not known */
	const char **argv;     /* NULL-terminated, at least one */
	size_t argc;
	struct env_pair *env;
	size_t nenv;
	const char *cwd;	 /* "": the work directory */
	const char *hostfile;	 /* "": none */
	const char *machinefile; /* hostfile in the format of MPICH and Intel MPI */
	const char *address;
	int port;
	int64_t grace_ms;
	uint64_t memory;     /* 0: no limit */
	int64_t deadline_ms; /* time left to run; 0: no limit */
	bool pty;	     /* the job gets a terminal */
	int processes;	     /* to be started on the node, each with its own environment */
	bool bind;	     /* without GPUs each of several processes has its share of the CPUs */
	bool tail;	     /* if the job fails EXIT has the last bytes of its output */
	bool rsh; /* the job may start commands on other nodes of its run: see EXEC_ASK */
	bool tee; /* what ranks print that a launcher elsewhere starts here is copied to this node's log */
};
void message_start_put(const struct message_start *m, struct buf *out);
int message_start_get(struct str json, struct arena *a, struct message_start *ret, struct err *err);

struct message_signal {
	bool hurry;
};
void message_signal_put(const struct message_signal *m, struct buf *out);
int message_signal_get(struct str json, struct arena *a, struct message_signal *ret,
		       struct err *err);

/* The run goes on: its machine is to switch itself off only then. */
struct message_extend {
	int64_t expires_ms; /* wall clock */
};
void message_extend_put(const struct message_extend *m, struct buf *out);
int message_extend_get(struct str json, struct arena *a, struct message_extend *ret,
		       struct err *err);

/* ACK is not JSON. */
#define MESSAGE_ACK_BYTES 16
struct message_ack {
	uint64_t stored, scanned; /* bytes on disk; bytes whose metrics are stored */
};
void message_ack_put(const struct message_ack *m, uint8_t out[static MESSAGE_ACK_BYTES]);
int message_ack_get(struct str payload, struct message_ack *ret, struct err *err);

/* ---- a command beside the job ---- */

/* Bytes in each direction that may be under way before the other side has taken them. */
#define MESSAGE_EXEC_WINDOW (256 * 1024)
#define MESSAGE_EXEC_PIECE (64 * 1024) /* most bytes of one EXEC_INPUT or EXEC_OUTPUT */

struct message_exec {
	const char **argv; /* NULL-terminated, at least one */
	size_t argc;
	const char *term;  /* with a terminal of this type; NULL: with pipes */
	int columns, rows; /* of the terminal; 0: not known */
	bool log;	   /* its output goes to the log of the node, too */
};
void message_exec_put(const struct message_exec *m, struct buf *out);
int message_exec_get(struct str json, struct arena *a, struct message_exec *ret, struct err *err);

/* A node of the run asks for a command on another one.  The channels that agents number are at least
 * MESSAGE_ASK_CHANNEL, those that the master numbers are lower. */
#define MESSAGE_ASK_CHANNEL 0x8000
struct message_exec_ask {
	const char *host;    /* name or address of the other node */
	const char *command; /* for /bin/sh -c */
};
void message_exec_ask_put(const struct message_exec_ask *m, struct buf *out);
int message_exec_ask_get(struct str json, struct arena *a, struct message_exec_ask *ret,
			 struct err *err);

/* What is 0 stays as it is. */
struct message_exec_control {
	uint64_t taken; /* of all bytes sent to the sender of this message */
	int signal;
	int columns, rows;
};
void message_exec_control_put(const struct message_exec_control *m, struct buf *out);
int message_exec_control_get(struct str json, struct arena *a, struct message_exec_control *ret,
			     struct err *err);

struct message_exec_close {
	int code;	    /* -1: it was killed, or did not run */
	int signal;	    /* 0: none */
	enum err_kind kind; /* ERR_NONE: it ran */
	const char *reason; /* NULL: none */
};
void message_exec_close_put(const struct message_exec_close *m, struct buf *out);
int message_exec_close_get(struct str json, struct arena *a, struct message_exec_close *ret,
			   struct err *err);

/* ---- a machine that does not know which node it is ---- */

#define MESSAGE_IDENTITY_MAX 65 /* of the identity of a machine, NUL included */
/* What tells a machine from all others, as its provider names it: letters, digits, "._:/@-". */
bool message_identity_ok(const char *identity);

/* No longer than MESSAGE_HELLO_MAX. */
struct message_enrol {
	int64_t proto; /* LINK_PROTO */
	const char *run, *role;
	const char *token; /* of all machines that were asked for together */
	const char *identity;
	int place; /* of the machine among those: 0, 1, ...; -1: not known */
	const char *version;
};
void message_enrol_put(const struct message_enrol *m, struct buf *out);
/* Another protocol version is ERR_UNAVAILABLE, whatever its other keys are. */
int message_enrol_get(struct str json, struct arena *a, struct message_enrol *ret, struct err *err);

/* What a node's configuration says otherwise. */
struct message_enrolled {
	const char *node, *token;
	int incarnation;
	/* The machine was told so before: what it had then may be lost, with a job that has run. */
	bool again;
};
void message_enrolled_put(const struct message_enrolled *m, struct buf *out);
int message_enrolled_get(struct str json, struct arena *a, struct message_enrolled *ret,
			 struct err *err);

/* ---- hosts ---- */

#define MESSAGE_HOST_NAME_MAX 64
/* A host name: letters, digits and "._-", not beginning with a dot or dash. */
bool message_host_name_ok(const char *name);

/* No longer than MESSAGE_HELLO_MAX. */
struct message_join {
	int64_t proto; /* LINK_PROTO */
	/* random, of the host's directory: the same name with another id is another host */
	const char *id;
	const char *name, *token, *boot_id, *version;
	const char *machine; /* digest of its /etc/machine-id; NULL: it has none */
	const char *address; /* numeric, of the host's end of the connection; NULL: not known */
	int64_t time_ms;     /* its wall clock */
	int64_t cpus, gpus;
	uint64_t memory; /* bytes */
	struct env_pair *labels;
	size_t nlabels;
};
void message_join_put(const struct message_join *m, struct buf *out);
/* Another protocol version is ERR_UNAVAILABLE, whatever its other keys are. */
int message_join_get(struct str json, struct arena *a, struct message_join *ret, struct err *err);

struct message_host_node {
	const char *run, *node;
	int incarnation;
};
struct message_host_nodes {
	struct message_host_node *nodes;
	size_t nnodes;
};
void message_host_nodes_put(const struct message_host_nodes *m, struct buf *out);
int message_host_nodes_get(struct str json, struct arena *a, struct message_host_nodes *ret,
			   struct err *err);

struct message_host_ask {
	int64_t no; /* echoed in the answer */
	enum host_op op;
	const char *run, *node;
	int incarnation;
	const char *token; /* of the node; only for HOST_CREATE */
	const char *id;	   /* the node's id from the host's last answer; "": none */
	int64_t limit_ms;  /* time for the answer */
};
void message_host_ask_put(const struct message_host_ask *m, struct buf *out);
int message_host_ask_get(struct str json, struct arena *a, struct message_host_ask *ret,
			 struct err *err);

struct message_host_answer {
	int64_t no;
	enum outcome outcome;
	enum err_kind kind; /* ERR_NONE: no error */
	const char *text;   /* of the error; "": none */
	const char *id;	    /* the host's id for the node; "": none */
};
void message_host_answer_put(const struct message_host_answer *m, struct buf *out);
int message_host_answer_get(struct str json, struct arena *a, struct message_host_answer *ret,
			    struct err *err);

/* ---- from either ---- */

struct message_bye {
	const char *reason; /* "": none */
};
void message_bye_put(const struct message_bye *m, struct buf *out);
int message_bye_get(struct str json, struct arena *a, struct message_bye *ret, struct err *err);
