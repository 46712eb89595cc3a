#pragma once
/* leftovers - removes what engines find of this install that belongs to no active run. */
struct master;

/* To be called once, when a master starts, after runs_resume(). */
void leftovers_sweep(struct master *m);
