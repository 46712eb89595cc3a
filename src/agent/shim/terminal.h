#pragma once
/*
 * terminal - the terminal of a job that asked for one (`pty = true`).
 *
 * The job has the slave side of a pseudo terminal as its standard input, output and error.  The master
 * side belongs to a process of its own, the terminal's reader, which copies the job's output to the
 * FIFO of standard output.  The reader needs neither shim nor agent: when they are killed, the terminal
 * stays open and the bytes stay in the FIFO for the next supervisor.
 *
 * The terminal does not change the job's bytes ("\n" stays "\n").  Reading from it gives end of file.
 * The reader exits when no process has the slave side open and everything is copied.  If it is killed
 * the job gets SIGHUP, as when a terminal window is closed.
 */
#include "sys/proctree.h"

struct err;

/* Open a terminal of COLUMNS x LINES from env (default 80 x 24), and fork its reader, which keeps
 * out_fifo open.  The caller closes *ret_slave. */
int terminal_start(int out_fifo, const char *const *env, int *ret_slave, struct proc_id *ret_reader,
		   struct err *err);
/* In the job's process, a session leader: make `slave` its controlling terminal and standard descriptors.  -1: errno. */
int terminal_attach(int slave);
