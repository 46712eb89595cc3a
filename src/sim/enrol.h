#pragma once
/* enrol - machines that do not know which node they are, and groups that make such machines. */
#include <stdbool.h>
#include <stdint.h>

struct effect;
struct world;

/* Puts the nodes of some roles on groups: one resource each, which carries many. */
void draw_groups(struct world *w);
/* The same, of all roles or of some. */
void groups_make(struct world *w, bool all);
/* The slot of the group's machine of that number. */
int group_slot(const struct world *w, int index, int member);
/* How many machines groups may have at once. */
int group_slots(const struct world *w);
/* The group looks in a while whether it has as many machines as it should, and makes them. */
void group_check(struct world *w, int index, int64_t usual_ms);
void group_renew(struct world *w, int index);
void groups_resized(struct world *w);
void group_end(struct world *w, int index);
/* The answer to an observation: machines that the master knows and that are gone. */
void group_tell_members(struct world *w, int index, uint64_t master);

/* A machine that has dialled asks which node it is. */
void machine_enrols(struct world *w, int slot);
/* The master's answer goes out, and arrives. */
void enrolment_answer(struct world *w, const struct effect *fx);
void machine_enrolled(struct world *w, int slot, const struct effect *fx);
