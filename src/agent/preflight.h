#pragma once
/*
 * preflight - does this node reach the others, before the job starts?
 *
 * The agent listens on the node's address, in the network of the job, on a port that the kernel chooses,
 * and says it in READY together with what the machine has (message_facts).  When the master asks
 * (PREFLIGHT) it connects to the listeners of its peers and sends each of them a message that is longer
 * than any frame of a network; a peer answers with one byte when it has all of it.  So a peer that is not
 * reached can be told from one to which only small packets get through.  What is refused is tried
 * again until the time is over: a peer's agent may just be starting.
 *
 * Whoever else connects can make it read PREFLIGHT_BYTES and close, and nothing more.
 */
#include "link/message.h"

struct loop;
struct preflight;

#define PREFLIGHT_BYTES (32 * 1024)

/* Listen, and find the facts.  netns: path of the job's network namespace; NULL: the machine's.  NULL if
 * the address is none of this machine. */
struct preflight *preflight_open(struct loop *l, const char *netns, const char *address,
				 struct message_facts *ret);
/* Called once for each preflight_ask(), from the loop. */
typedef void (*preflight_fn)(void *ctx, const struct message_preflight_done *m);
/* Reach these peers; replaces an earlier question. */
void preflight_ask(struct preflight *p, const struct message_preflight *m, preflight_fn done,
		   void *ctx);
struct preflight *preflight_free(struct preflight *p);
