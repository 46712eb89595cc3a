#pragma once
/*
 * suite_carrier - a suite that is with a master on a machine made for it, and the run that carries it there.
 *
 * If all runs of a suite would be handed to a master on the same kind of machine, there is one such machine for the
 * whole suite.  It belongs to a run with the id of the suite, the carrier, which is handed over as any other
 * (handover.h), with the suite in its submission.  Here the suite is away meanwhile (core/suite.h); the other master has
 * it as a suite of its own, under the same id, and its runs are called <suite>-<entry>: so their tags tell whose they
 * are (driver.sweep).  When that suite has ended, its state is left in the carrier's directory (SUITE_STATE_FILE), with
 * whose copy it comes back; the copies of its runs are taken in then.
 *
 * A suite that is resumed gets a carrier again, <suite>-r2 and so on; there the suite has that id.  How its entries stand
 * goes with it, so that what has succeeded does not start there.
 */
#include <stdbool.h>

#include "base/str.h"

struct arena;
struct core_suite;
struct doc;
struct err;
struct live_run;
struct live_suite;
struct master;

#define SUITE_STATE_FILE "suite.json"

/* ---- where the suite was started ---- */

/* Can the suite be with a master of its own? */
bool carrier_is_possible(const struct live_suite *ls, struct arena *a);
/* The submission of its carrier; NULL: its job cannot be read. */
struct doc *carrier_submission(const struct live_suite *ls, struct arena *a);
/* The id of the run that carries it now, or did last. */
const char *carrier_id(const struct live_suite *ls, struct arena *a);
/* How the suite of this carrier stands, as the other master shows it. */
void carrier_seen(struct live_run *lr, const struct doc *suite);
/* The other master is reached by another address than before. */
void carrier_moved(struct live_run *lr);
/* The carrier has ended here, and its results are taken in, or never will be: its suite comes back.  Other runs are
 * ignored. */
void carrier_came_back(struct master *m, const char *run);

/* ---- where the suite is ---- */

/* The active run that carries this suite here; NULL: none. */
struct live_run *carrier_of(const struct master *m, const char *suite);
/* The run is there, its suite is to be. */
int carrier_take(struct live_run *lr, const struct doc *body, struct arena *a,
		 const char **ret_details, struct err *err);
/* How the entries of a suite stand that is carried here; NULL: they all wait. */
int carrier_take_entries(struct core_suite *s, const struct doc *list, struct err *err);
/* Is this the id of a run of a suite that is carried here? */
bool carrier_run_id_ok(const struct master *m, struct str id);
/* Turns the submission of an entry of a carried suite into one for this machine. */
void carrier_adapt(const struct live_suite *ls, int index, struct arena *a, struct doc *body);
/* FX_CANCEL_CARRIED */
void carrier_cancel_suite(struct live_run *lr, bool hurry);
/* The suite has ended and its files are written, or it cannot be gone on with: ends the carrier, if no run of the
 * suite is active. */
void carrier_suite_ended(struct master *m, const char *suite);

/* Any run has ended: it may be the last of a suite that cannot be gone on with. */
void carrier_run_ended(const struct live_run *lr);

/* When the master starts, after handover_check(): what ended while no master was there. */
void carriers_check(struct master *m);
