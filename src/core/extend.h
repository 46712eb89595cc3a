#pragma once
/*
 * extend - the time at which what a run has made ends by itself, moved on while the master lives.
 *
 * Only for a run without max_runtime: otherwise that time is known when a resource is created.
 */
#include "core/internal.h"

/* To be called when the run is accepted, and after a restart: then nobody knows when the previous
 * master extended it last, so it is done at once. */
void extend_start(struct step *s, bool now);
/* Extends the next resources if it is time. */
void extend_tick(struct step *s);
