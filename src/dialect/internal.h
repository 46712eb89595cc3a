#pragma once
/* What the files of dialect/ share. */
#include "base/str.h"
#include "dialect/dialect.h"
#include "fmt/doc.h"

extern const struct dialect dialect_anubis, dialect_kube;

/* The entry with this key; NULL if the table has none. */
const struct doc_entry *dialect_entry(const struct doc *table, const char *key);
/* Where the key of an entry that is there stands in the user's file. */
void dialect_place_key(struct doc *table, const char *key, struct doc_pos pos);

/* The name of a job from a text: "Train MNIST!" -> "train-mnist"; "" if nothing is left. */
const char *dialect_job_name(struct str text, struct arena *a);
