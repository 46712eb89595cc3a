#pragma once
/* suggest - the known word nearest to a mistyped one, for "did you mean". */
#include <stddef.h>
#include "base/str.h"

/* The nearest of the words; NULL if none is near. */
const char *suggest_word(const char *const *words, size_t n, struct str given);
