#pragma once
/*
 * previous - the outputs that earlier attempts of a node have uploaded, for its next attempt on
 * another machine (REGATTA_PREVIOUS).
 *
 * uploads/<label>.list of the run has one JSON line per file that is stored whole; a file may be
 * in it more than once.  The label is the node's name, with the number of an attempt above 1.
 */
#include <stdint.h>
#include <sys/types.h>
#include "base/str.h"

struct api_call;
struct err;
struct live_run;

struct previous_file {
	const char *path; /* below the directory of the attempt */
	uint64_t size;
	const char *sha256;
	mode_t mode;
};

/* Adds a file to the list.  Not synced: a list that a crash has cut offers fewer files.  May be called on any
 * thread. */
void previous_add(const char *uploads, const char *label, const struct previous_file *f);
/* The last attempt of the node that has uploaded something; 0: none. */
int previous_attempt(const struct live_run *lr, int rank);
/* GET: the list of an attempt or, with `path`, one of its files. */
int api_node_previous(struct api_call *c, struct err *err);
