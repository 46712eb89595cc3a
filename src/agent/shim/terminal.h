#pragma once
/*
 * terminal - the terminal of a job that asked for one (`pty = true`).
 *
 * The job has the slave side of a pseudo terminal as its standard input, output and error.  The master side belongs to
 * a process of its own, the terminal's reader, which copies what the job writes into the FIFO of standard output; from
 * there on everything is as for a job without a terminal.  The reader needs neither shim nor agent: when they are
 * killed, the terminal stays open and the bytes stay in the FIFO for whoever supervises the job next.
 *
 * The terminal passes bytes on as the job writes them ("\n" stays "\n").  Nobody types: a read from it is an end of file.
 * The reader ends by itself when no process has the slave side open any more and everything is copied.  If it is killed
 * the job gets SIGHUP, as when the window of a terminal is closed.
 */
#include "sys/proctree.h"

struct err;

/* Open a terminal, as wide and as high as COLUMNS and LINES of env say (80 x 24), and fork its reader, which keeps out_fifo
 * open.  *ret_slave is the caller's. */
int terminal_start(int out_fifo, const char *const *env, int *ret_slave, struct proc_id *ret_reader,
		   struct err *err);
/* In the job's process, a session leader: make it the controlling terminal and the standard descriptors.  -1: errno. */
int terminal_attach(int slave);
