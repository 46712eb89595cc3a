#pragma once
/* effects - hands what the core asks for to drivers, agents and the files of an ended run. */
struct effect;
struct live_run;

void effect_do(struct live_run *lr, const struct effect *fx);
