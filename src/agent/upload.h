#pragma once
/*
 * upload - send the files kept of a job to the master.
 *
 * Every regular file below a directory goes to the same name in the outputs of this node and attempt,
 * in pieces, continuing an earlier try; a file that the master has is not sent again.  The master
 * confirms a file only when it is on its disk.  A link is sent as the file that it points to if that
 * is below the directory too, and is named in the note otherwise.
 */
struct agent_config;
struct collected;
struct err;

/* Blocks (transfer.h).  *ret counts the files that the master has stored, also after an error. */
int upload_files(const struct agent_config *cfg, const char *dir, int attempt,
		 struct collected *ret, struct err *err);
