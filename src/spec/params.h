#pragma once
/*
 * params - the parameters of a job: values under names, for people and for comparisons.
 *
 * "${params.lr}" in command, env, data and output of the job, and in command and env of its roles,
 * stands for the value of lr.  "$${params.lr}" is the text "${params.lr}"; every other '$' stands for
 * itself, so that "${HOME}" and "$$" are the shell's.  The document that is stored keeps the texts as they
 * were written.
 */
#include "fmt/schema.h"

struct arena;
struct buf;
struct doc;
struct job;

#define PARAMS_MAX 256	     /* of one job */
#define PARAMS_MAX_NAME 64   /* bytes */
#define PARAMS_MAX_TEXT 4096 /* bytes of a value */

/* Names, types and sizes of [params]. */
void params_check(const struct job *job, const struct doc *params, struct arena *a,
		  struct problems *ps);
/* The job's document with the values in their places: a copy, or the document itself where nothing is to be
 * done.  An unknown name is a problem at the place of its text, which stays as it is. */
const struct doc *params_expand(const struct doc *job, struct arena *a, struct problems *ps);
/* One text of a document whose problems are known; params may be NULL. */
const struct doc *params_expand_value(const struct doc *params, const struct doc *value,
				      struct arena *a);
/* Do inputs or the place of outputs depend on parameters? */
bool params_in_inputs(const struct doc *job);
/* The value as a command gets it. */
struct str params_text(const struct doc *value, struct arena *a);
