#pragma once
/*
 * upload - bring what a job left to the master.
 *
 * Every regular file below a directory goes to the same name in the outputs of this node and attempt, in pieces,
 * from where an earlier try left off; one that is there already is not sent again.  The master says that a file is
 * stored only when it is on its disk.  A link goes as the file that it leads to if that is below the directory too,
 * and is named in the note otherwise.
 */
struct agent_config;
struct collected;
struct err;

/* Blocks (transfer.h).  *ret counts what is stored; with an error, how far it came. */
int upload_files(const struct agent_config *cfg, const char *dir, int attempt,
		 struct collected *ret, struct err *err);
