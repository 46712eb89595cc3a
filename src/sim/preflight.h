#pragma once
/* preflight - nodes that try out the network between them before the gang starts. */
#include "core/core.h"

struct world;

/* Some histories have it. */
void preflight_draw(struct world *w);
struct preflight_facts preflight_facts(int slot);
/* The machine is asked whether it reaches the others: it does, or not, or says nothing. */
void preflight_asked(struct world *w, int slot, int round);
/* The master takes this word of a node. */
void preflight_said(struct world *w, const struct event *ev);
/* I31: a gang starts only if each of its nodes has said, since it was ready, that it reaches the others. */
void preflight_check(struct world *w);
