#pragma once
/*
 * own_machine - of a master that lives on a machine of a run (REGATTA_OWN_MACHINE is set): ends the
 * machine as the last thing that it does.
 *
 * When, and in which order, is decided by core/machine_end.h; the steps are made here, by the drivers of
 * the machine and of what was made for it.
 */
struct master;
struct own_machine;

/* NULL if the master has a machine of its own owner. */
struct own_machine *own_machine_new(struct master *m);
struct own_machine *own_machine_free(struct own_machine *o);
/* Why the machine has not ended although the runs have; NULL: it has a master of its own owner, or nothing keeps it. */
const char *own_machine_why(const struct own_machine *o);
/* Called about every second. */
void own_machine_check(struct own_machine *o);
