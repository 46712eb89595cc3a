#pragma once
/*
 * output_list - outputs.json of a run: the files kept of its nodes, with size, permissions and SHA-256.
 *
 *	{"files":[{"path":"trainer-0/model.pt","size":3,"mode":420,"sha256":"..."},
 *		  {"path":"trainer-0/latest","size":0,"link":"model.pt"}],"bytes":3}
 *
 * It is written once, when the run has ended; the files do not change after that.  If the master was
 * killed before, it is written when somebody asks for it.  A run that kept nothing gets no file.
 */
#include <stdbool.h>

struct buf;
struct deadline;
struct err;
struct live_run;

#define OUTPUT_LIST_MAX_FILES 200000
#define OUTPUT_LIST_MAX_BYTES (64u << 20)

/* Called when the run has ended: writes the list on a thread. */
void output_list_run_ended(struct live_run *lr);
/* The list of an ended run, from outputs.json, which is written if it is missing.  Blocks. */
int output_list_read(const char *run_dir, const struct deadline *d, struct buf *ret,
		     struct err *err);
/* The list of a run that goes on: without sums, for the files may change.  Blocks. */
int output_list_now(const char *run_dir, const struct deadline *d, struct buf *ret,
		    struct err *err);
