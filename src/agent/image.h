#pragma once
/*
 * image - get the container image of a job before any node starts: find the program that runs containers, install
 * it where the machine was made for the run, pull the image unless it is there.
 *
 * Runs in a forked task, may take minutes.
 */
struct agent_config;
struct err;
struct message_inputs;

/* Also writes the node's record (sys/container.h), by which its containers are removed, and copies this program for
 * use in them (inside.h). */
int image_prepare(const struct message_inputs *in, const struct agent_config *cfg,
		  const char *node_dir, struct err *err);
/* Copy in->image_source, a file of the image or what is in a directory of it, to the directory `to`. */
int image_copy_out(const struct message_inputs *in, const char *node_dir, const char *to,
		   struct err *err);
/* What a program that could not pull the image has printed, as an error. */
void image_explain(const char *image, const char *text, struct err *err);
