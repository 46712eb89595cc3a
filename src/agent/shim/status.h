#pragma once
/*
 * status - the record of one attempt, on disk.
 *
 * One JSON object per line, appended by one process at a time (the shim; the agent when the shim is
 * dead), and by the main process of a job with several, whose records are single writes too:
 *
 *	{"rec":"started","attempt":1,"boot_id":"...","pid":12,"start":345,"time_ms":...,"processes":1}	the claim
 *	{"rec":"limits","grace_ms":10000,"deadline_ms":0}					for an agent that takes over
 *	{"rec":"terminal","pid":12,"start":346}							with pty: the reader of the terminal
 *	{"rec":"job","pid":13,"start":346}							before exec
 *	{"rec":"process","local":1,"code":0,"signal":0}						one of several has ended
 *	{"rec":"gap","stream":"out","offset":9,"bytes":10,"reason":"..."}			bytes not stored
 *	{"rec":"ended","code":0,"signal":0}							before the job is reaped
 *	{"rec":"cut"}										no process held the job's pipes for a while
 *	{"rec":"metrics_cut"}									no process held its metrics FIFO for a while
 *	{"rec":"exit","code":0,"signal":0,"oom":false,"kind":"none","reason":"","streams":[...]}	the last
 *
 * The file is written under another name and then linked.  link(2) fails if the name exists, so an
 * attempt is claimed at most once, and the file always has the claiming process in it.  A torn last
 * line (a killed writer, a full disk) counts as not written.  All records together are smaller than a
 * disk block, which the first one has allocated, so the end can be recorded on a full disk; for a job
 * with several processes status_reserve() allocates more.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/message.h"
#include "sys/proctree.h"

struct status {
	int attempt; /* 0: there is no status */
	char boot_id[PROC_BOOT_ID];
	int64_t claimed_ms;	       /* wall clock; before the job's start */
	struct proc_id shim, job;      /* pid 0: not known */
	struct proc_id terminal;       /* the reader of the job's terminal; pid 0: it has none */
	int64_t grace_ms, deadline_ms; /* deadline: boot time; 0 = none */
	int processes;		       /* of the node; 1 if it is not recorded */
	int failed;		       /* the first process that failed; -1: none of several has */
	int early;		       /* the first that had ended well before; -1: none */
	bool ended;		       /* the exit status of the job's main process is known */
	int code, signal;	       /* if ended */
	bool cut;		       /* bytes in a pipe may be lost */
	bool metrics_cut;	       /* the same in the metrics FIFO */
	bool has_exit;
	struct exit_report exit; /* its gaps and processes are valid even without has_exit */
};

/* Claim the attempt, of so many processes, for the calling process, with `sync` durably; *ret_fd is for further
 * records.  ERR_CONFLICT: it is claimed already. */
int status_claim(int dirfd, int attempt, int processes, const char *boot_id, bool sync, int *ret_fd,
		 struct err *err);
/* Open the file for further records, to take over.  Records are durable after fdatasync. */
int status_open(int dirfd, int *ret_fd, struct err *err);
/* Allocate the disk space for the records of a job with several processes, if there is any. */
void status_reserve(int fd);
int status_add_limits(int fd, int64_t grace_ms, int64_t deadline_ms, struct err *err);
int status_add_terminal(int fd, struct proc_id reader, struct err *err);
int status_add_job(int fd, struct proc_id job, struct err *err);
/* Without allocation, like status_add_job. */
int status_add_process(int fd, int local, int code, int signal, struct err *err);
int status_add_gap(int fd, const struct gap *g, const char *reason, struct err *err);
int status_add_ended(int fd, int code, int signal, struct err *err);
int status_add_cut(int fd, struct err *err);
int status_add_metrics_cut(int fd, struct err *err);
int status_add_exit(int fd, const struct exit_report *e, struct err *err);

/* ret->attempt is 0 when there is no file. */
int status_read(int dirfd, struct status *ret, struct err *err);
/* The same from text. */
void status_parse(struct str text, struct status *ret);
