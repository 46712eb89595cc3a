#pragma once
/* lifetime - machines that end by themselves at a time that only a living master moves on. */
#include <stdint.h>

struct effect;
struct world;

/* Some histories last for days: a run without max_runtime, whose jobs run for so long. */
void lifetime_draw(struct world *w);
/* A resource was made. */
void lifetime_begins(struct world *w, int index, int64_t lifetime_ms);
/* The provider has the new time; of a group it also decides when its machines end. */
void lifetime_tagged(struct world *w, const struct effect *fx);
void lifetime_is_over(struct world *w, int slot);
/* The master will not come back: some machines have no agent that could notice. */
void lifetime_alone(struct world *w);
/* I20: what a living master holds does not look abandoned. */
void check_tags(struct world *w);
