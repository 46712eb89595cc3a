#pragma once
/*
 * preflight - before a gang starts, its nodes try out the network between them.
 *
 * With its "ready" each agent tells what its machine has (struct preflight_facts), among others a port
 * on which it listens until the start.  When all nodes are ready the facts are judged, and then each
 * node is asked to reach its peers.  One that cannot ends the run, before anything has started; when
 * all can, the gang starts.  An agent of an earlier version tells no port, is not asked, and is nobody's
 * peer.
 *
 * Nothing of this is stored: after a restart of the master the nodes say hello and "ready" again, and
 * so a new round begins.
 */
#include "core/internal.h"

/* All nodes reach each other if there are at most this many; of more each reaches those whose ranks are
 * 1, 2, 4, 8 ... higher than its own (docs/adr/0017).  plan_preflight_peers() is the limit. */
#define PREFLIGHT_ALL_PAIRS 64

/* All nodes are ready.  False: nothing is to be tried out, the gang can start.  Otherwise run_go()
 * follows when everything was found to be well. */
bool preflight_holds(struct step *s);
/* A node is ready anew, so what was found out before counts no more. */
void preflight_void(struct step *s);
/* EV_NODE_PREFLIGHT */
void preflight_event(struct step *s, const struct event *ev);
void preflight_tick(struct step *s);
