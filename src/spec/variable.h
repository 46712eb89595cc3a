#pragma once
/*
 * variable - names of environment variables, patterns of names, and files of variables.
 */
#include <stdbool.h>
#include "base/str.h"
#include "fmt/schema.h"

struct arena;
struct err;

#define VARIABLE_MAX 131071 /* longest argument or variable that Linux takes */

/* A name that POSIX and shells accept. */
bool variable_name_ok(struct str name);
/* Why a job cannot have this variable, as the rest of a sentence about it; NULL: it can. */
const char *variable_fault(struct str name, struct str value);
/* A name in which '*' stands for any characters and '?' for one.  Not a text without any character of a
 * name: "*" would send everything that the shell has. */
bool variable_pattern_ok(struct str pattern);
bool variable_matches(const struct strs *patterns, struct str name);

/*
 * Reads the text of an env file: NAME=VALUE lines, "export" before a name, comments, quotes.
 * Inside '...' everything stands for itself; inside "..." \n \r \t \" \\ \$ are what they are in a
 * shell; both may go over several lines.  Nothing is expanded.  Of two lines with one name the last
 * counts.  Errors start with "file:line: ".
 */
int variables_parse(const char *file, struct str text, struct arena *a, struct env_list *ret,
		    struct err *err);
/* Adds to the list, or replaces the value of this name. */
void variables_set(struct arena *a, struct env_list *list, const char *name, const char *value);
