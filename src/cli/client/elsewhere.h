#pragma once
/*
 * elsewhere - a run that the own master does not know, but whose results are where the engines leave
 * them (results_find() of driver/results.h): the own master takes it in.
 */
struct api;
struct err;

/* word: an id, or the beginning of one.  err has the master's "no such run", and is told where else the run
 * was looked for. */
int run_take_in(struct api *api, const char *word, struct err *err);
