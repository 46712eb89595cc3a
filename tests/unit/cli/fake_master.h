#pragma once
/*
 * fake_master - a master that answers from files, with faults on demand.
 *
 * The test program is also the program that the command line starts as
 * `regatta master --background`: master_main() here serves the files of its
 * home directory.
 *
 *	watch.jsonl	what a watcher of any run gets, line by line
 *	watch-N.jsonl	the same after the N-th submission
 *	run.json	one run (default: the first line of watch.jsonl)
 *	runs.json	the list of runs
 *	metrics.json, events.jsonl
 *	outputs.json	the list of outputs; the bytes of each are "abc"
 *	<node>.out, <node>.err	logs
 *	<node>.order	lengths of their pieces in the order of arrival, "o3e2o1"
 *	<node>.both	what is answered for both logs instead
 *	cancelled.json	a watcher gets one line, waits for a cancel, and then gets this
 *	fault-NAME	the fault strikes once for each byte in the file
 *	listen		a port of 127.0.0.1, 0 for any: it listens there with TLS too, and those who
 *			come that way need the token in `token`
 *	http		is written then: port and pin
 *	old-api		it knows no /api/v1/me
 *	requests.log	every request: "METHOD path body"
 *
 * Faults: start (fails with a line in the log), die-submit, die-watch, end-watch (a clean end
 * before the run has
 * ended), die-log (after half of the log), busy (503), watched (409 on cleanup), no-blob
 * (forgets an upload),
 * noid (an answer without a run id), import (a copy cannot be taken in).
 *
 * It knows no runs "nothing", "gone" and "refused", and those called "afar..." after an import only.
 */
#include <stdbool.h>

/* Is this program started as a role of regatta?  Then run it. */
bool fake_role(int argc, char **argv, int *ret_code);
