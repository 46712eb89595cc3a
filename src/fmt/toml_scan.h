#pragma once
/* toml_scan - blanks, comments, keys, strings and plain values of TOML.  Internal to fmt/. */
#include "fmt/doc.h"
#include "fmt/reader.h"

struct toml_part {
	struct str key; /* in the arena */
	struct doc_pos pos;
};
/* A dotted key.  More parts than levels are refused while reading. */
struct toml_path {
	struct toml_part v[DOC_MAX_DEPTH];
	size_t n; /* at least 1 */
};

/* Spaces and tabs. */
void toml_skip_blank(struct reader *r);
/* Spaces, tabs, comments and line ends. */
int toml_skip_lines(struct reader *r);
/* What may follow a statement: blanks and a comment, then the line's or the text's end. */
int toml_end_line(struct reader *r);
/* a."b c".d, blanks around the dots allowed; the cursor stops behind the last part. */
int toml_read_path(struct reader *r, struct toml_path *ret_path);
/* Any of the four kinds of string; the cursor is at the opening quote. */
int toml_read_string(struct reader *r, struct doc **ret_doc);
/* A boolean, number, date or time. */
int toml_read_plain(struct reader *r, struct doc **ret_doc);
