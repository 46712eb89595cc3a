#pragma once
/* ranks - runs whose ranks follow the addresses of their machines, and what must hold of them. */
struct core_run;
struct event;
struct world;

/* Lets the strategy of some runs ask for it. */
void ranks_draw(struct world *w);
/* The machine says its address. */
void ranks_put_address(const struct world *w, int slot, struct event *hello);
/* Called when a commit replaces the rows that were shown. */
void check_ranks(struct world *w, const struct core_run *shown, const struct core_run *next);
/* Inputs are sent to the node. */
void check_rank_is_given(struct world *w, int rank);
