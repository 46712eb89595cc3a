#pragma once
/* agentless - machines of groups that start the job by themselves, and have no agent to tell of it. */
#include <stdbool.h>
#include <stdint.h>

struct effect;
struct world;

/* One history in so many, unless the run is handed over. */
bool agentless_drawn(const struct world *w);
/* All nodes are on groups, without agents. */
void agentless_draw(struct world *w);
/* The machine has booted: its job begins, once for each node. */
void agentless_begins(struct world *w, int slot);
/* Its job has ended: whoever reads its log sees that. */
void agentless_log_ends(struct world *w, int slot);
/* The answer to an observation: the machines whose jobs have begun or ended. */
void agentless_tell_seen(struct world *w, int index, uint64_t master);
/* What an agent would be told. */
void agentless_effect(struct world *w, const struct effect *fx);
