#pragma once
/* leftovers - what engines find of this install that belongs to no active run. */
struct master;

/* Once, when a master starts and knows its runs. */
void leftovers_sweep(struct master *m);
