#pragma once
/* cost - what the machines of a run cost, and the limit max_cost. */
#include "core/internal.h"

/* Call before the resource gets this state. */
void cost_changes(struct step *s, int index, enum res_state to);
/* Ends a run that has cost max_cost. */
void cost_tick(struct step *s);
