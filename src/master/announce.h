#pragma once
/* announce - prints on standard output, when the master is ready, its URL and how hosts and
 * clients connect. */
struct master;

enum announce {
	ANNOUNCE_NOTHING,
	/* one line: url, pin, token, join; null for what the master does not have */
	ANNOUNCE_JSON,
	ANNOUNCE_LINES, /* for a person: the command for a host and the command for a client */
};
void announce_ready(struct master *m, enum announce how);
