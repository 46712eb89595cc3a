#pragma once
/*
 * claim - a thing of the machine that one node has at a time, by a name.
 *
 * An abstract socket is bound to the name: it is in no directory, belongs to the network namespace, and is
 * gone with the last process that has it.
 */
struct err;

/* A descriptor that keeps the name in the namespace at `netns` (NULL: this one); -1: ERR_CONFLICT with
 * errno's EADDRINUSE as the code if another process has it. */
int claim_name(const char *netns, const char *name, struct err *err);
