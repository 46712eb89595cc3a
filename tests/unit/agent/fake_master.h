#pragma once
/*
 * fake_master - the other end of the link for the agent's tests: one node, one
 * connection at a time, everything that comes is kept.
 *
 * Every wait has a deadline (FAKE_WAIT_MS) and fails the test by name.  The test
 * program itself is the agent's binary: its main() calls fake_role() first.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "link/frame.h"

#define FAKE_WAIT_MS 20000
#define FAKE_STREAMS (STREAMS + 2 * 3) /* of up to four processes */

/* Parts of scripts: a daemon, one without an environment, and a wait until it has written its pid to "daemon". */
#define FAKE_DAEMON "setsid sh -c 'echo $$ > $DIR/daemon; exec sleep 600' >/dev/null 2>&1 & "
#define FAKE_NAMELESS                                                                              \
	"env -i DIR=$DIR setsid sh -c 'echo $$ > $DIR/daemon; exec sleep 600' >/dev/null 2>&1 & "
#define FAKE_UNTIL(name) "while ! [ -s $DIR/" name " ]; do sleep 0.01; done; "
#define FAKE_UNTIL_DAEMON FAKE_UNTIL("daemon")

struct fake {
	char *dir;		/* of the test: link.sock and node/ are below */
	char *node;		/* node directory */
	const char *config;	/* more members of agent.json, each with a leading comma */
	const char *raw_config; /* the whole of agent.json instead */
	const char *enrol; /* the agent enrols with this file (its text), and has no agent.json */
	const char *env;   /* more members of the job's env, each with a leading comma */
	const char *exe;   /* NULL: this program */
	const char *agent_env; /* one variable more of the agent itself, "NAME=value" */
	int listener, fd;
	pid_t agent;
	struct arena *arena;
	struct buf rx;
	struct buf out[FAKE_STREAMS];	/* what DATA brought */
	uint64_t scanned[FAKE_STREAMS]; /* how far METRICS went */
	struct buf exec_out, exec_err;	/* of commands beside the job */
	bool hold_exec;			/* do not say that their output was taken */
	struct buf asked_in;		/* the input of commands that the job runs elsewhere */
	bool asked_in_ended;
	struct buf samples; /* "name=value@step;" of each sample */
	uint64_t bad;
	bool hold_acks;	 /* do not acknowledge */
	bool hold_pongs; /* do not answer a PING */
	bool no_cgroup;
	int count[FRAME_TYPE_MAX + 1];
	struct doc *last[FRAME_TYPE_MAX + 1]; /* the last one of each JSON type */
	bool closed;
	const char *mark;
	const char *inputs; /* the last INPUTS; sent again after every WELCOME */
};

/* cmocka setup and teardown: *state is the struct fake. */
int fake_setup(void **state);
int fake_teardown(void **state);
/* -1: go on with the tests.  Otherwise main's return value. */
int fake_role(int argc, char **argv);

/* Write agent.json if it is not there and start an agent. */
void fake_agent(struct fake *f);
/* Accept, take HELLO, answer WELCOME with what is stored, and INPUTS.  Returns HELLO. */
const struct doc *fake_meet(struct fake *f);
const struct doc *fake_accept(struct fake *f); /* without the answer */
/* The same of an agent that enrols: returns ENROL. */
const struct doc *fake_accept_enrol(struct fake *f);
void fake_welcome(struct fake *f, int64_t lease_ms);
void fake_ack(struct fake *f, enum stream s); /* what is there */
void fake_send(struct fake *f, enum frame_type type, const char *json);
/* A frame of the command `channel`. */
void fake_send_on(struct fake *f, enum frame_type type, uint16_t channel, const char *payload);
/* Take frames until the command has written so many bytes, to standard output and standard error together. */
void fake_wait_exec(struct fake *f, size_t bytes);
/* Take frames until one of this type has come (since the last call for it). */
const struct doc *fake_wait(struct fake *f, enum frame_type type);
/* Take frames until `bytes` of a stream are there. */
void fake_wait_bytes(struct fake *f, enum stream s, size_t bytes);
/* Take frames until the samples hold this text. */
void fake_wait_samples(struct fake *f, const char *text);
/* Take frames until the peer has closed. */
void fake_wait_close(struct fake *f);
void fake_hang_up(struct fake *f);

/* agent, INPUTS without anything special, READY. */
void fake_ready(struct fake *f);
/* START attempt 1 of a shell script; waits for STARTED and returns the job's pid. */
pid_t fake_start(struct fake *f, const char *script);
/* The same with more members of START, each with a leading comma. */
pid_t fake_start_with(struct fake *f, const char *script, const char *more);
/* EXIT and COLLECTED; returns EXIT.  Every byte and every range has come by then. */
const struct doc *fake_end(struct fake *f);
/* RELEASE; the agent leaves with 0 and the job's files are gone. */
void fake_release(struct fake *f);
/* Wait until the agent process has ended; returns its wait status. */
int fake_agent_gone(struct fake *f);
/* The shim of attempt 1, from its record. */
pid_t fake_shim(struct fake *f);
/* Wait until no process carries this pid any more (as a living process). */
void fake_gone(pid_t pid);
/* The same after a SIGKILL. */
void fake_kill(pid_t pid);
/* Kills agent and shim at the same moment, so that neither can take over from the other. */
void fake_kill_both(struct fake *f);
/* A path in the test's directory, or in that of the node (in the arena). */
char *fake_below(struct fake *f, const char *name);
char *fake_in_node(struct fake *f, const char *name);
/* Make a small file. */
void fake_touch(const char *path);
/* Is the process running, and no zombie? */
bool fake_alive(pid_t pid);
/* Wait until the file exists; returns its text (in the arena). */
const char *fake_file(struct fake *f, const char *path);
/* The same for a number in the test's directory. */
pid_t fake_pid_in(struct fake *f, const char *name);
/* Standard output is, byte for byte, this file in the test's directory: the job's own copy of what it wrote. */
void fake_output_is_copy(struct fake *f, const char *name);
int64_t fake_int(const struct doc *d, const char *key);
const char *fake_str(const struct doc *d, const char *key);
