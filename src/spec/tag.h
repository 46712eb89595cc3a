#pragma once
/* tag - words that people put on runs, and the notes beside them. */
#include "base/str.h"

struct arena;
struct doc;
struct err;

#define TAG_MAX 64     /* bytes of a tag */
#define TAGS_MAX 64    /* of one run */
#define NOTE_MAX 4096  /* bytes of a note */
#define NOTES_MAX 1000 /* of one run */

/* Printable UTF-8 without blanks and commas, and no + or - in front, which adds and removes it.  ERR_INVALID. */
int tag_check(struct str tag, struct err *err);
/* Printable UTF-8; it may have line breaks.  ERR_INVALID. */
int note_check(struct str text, struct err *err);
/* A list of tags, of a request, as a JSON text of the arena: each once.  NULL: the key is missing. */
int tags_read(const struct doc *list, struct arena *a, const char **ret_json, struct err *err);
