#pragma once
/* effects - hands what the core asks for to drivers, agents and the files of an ended run. */
struct effects;
struct live_run;

/* All effects of a round: what a driver can do in one call is one call. */
void effects_do(struct live_run *lr, const struct effects *fx);
