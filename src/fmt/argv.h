#pragma once
/* argv - one string as a list of words, the way sh splits it.  Internal to fmt/. */
#include "base/str.h"

struct arena;
struct strs;

/*
 * Words end at blanks and line ends; '...', "..." and \ quote as in sh; nothing is expanded and
 * nothing else is special.  False when a quote or a backslash at the end is left open; *ret_why
 * says which.
 */
bool argv_split(struct str text, struct arena *a, struct strs *ret_words, const char **ret_why);
/*
 * The first word that means something to a shell alone: "|", "&&", "x;", "2>log", "$HOME", `date`.
 * NULL: there is none that is not quoted.  ${params.x} is no shell's.
 */
const char *argv_shell_word(struct str text, struct arena *a);
