#pragma once
/* own_program - this program as a file that machines of a run get. */
struct arena;
struct doc;
struct err;

/* Sets the fact binary: {sha256, size}. */
int own_program_add(struct doc *facts, struct arena *a, struct err *err);
