#pragma once
/*
 * objects - data of a job that other servers have: each node fetches its part of a list of objects
 * (fmt/object_list.h).
 *
 * The master tells the URLs of some objects at a time, and signs them where that is needed.  A URL that
 * is refused is asked for once more, because its time may be over.  All calls block (transfer.h).
 */
struct agent_config;
struct err;
struct message_data;

/* The file of a list with one object: a descriptor at offset 0.  More than one is ERR_INVALID. */
int objects_open_one(const struct agent_config *cfg, const char *node_dir,
		     const struct message_data *d, struct err *err);
/* Puts all objects that are this node's below dest, or at dest if the list is of one file. */
int objects_put(const struct agent_config *cfg, const char *node_dir, const struct message_data *d,
		const char *dest, struct err *err);
