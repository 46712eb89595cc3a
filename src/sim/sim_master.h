#pragma once
/* sim_master - the master in the simulation: its memory, its disk, its deaths. */
#include <stdbool.h>

struct core_run;
struct event;
struct world;

void master_start(struct world *w);
void master_event(struct world *w, const struct event *ev);
void master_dies(struct world *w);
void master_comes_up(struct world *w);
void master_tick(struct world *w);
void rows_copy(struct core_run *to, const struct core_run *from);
void master_cancel(struct world *w, bool hurry);
void master_resize(struct world *w, int role, int want);
