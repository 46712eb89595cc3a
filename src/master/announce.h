#pragma once
/* announce - what a master says on its standard output when it is ready: where it is, and how others
 * get in. */
struct master;

enum announce {
	ANNOUNCE_NOTHING,
	ANNOUNCE_JSON,	/* one line: url, pin, token, join; null where there is none */
	ANNOUNCE_LINES, /* for a person: the command for a host, and the one for a client */
};
void announce_ready(struct master *m, enum announce how);
