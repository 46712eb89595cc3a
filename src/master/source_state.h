#pragma once
/*
 * source_state - the git commit that the source of a run was at, as the client told it with the
 * submission: source.json in the directory of the run, and source.diff with what was not committed.
 */
struct arena;
struct doc;
struct err;
struct jsonw;
struct live_run;

/* Refuses a "source" of a submission that is not what docs/api.md says; NULL is fine. */
int source_state_check(const struct doc *source, struct err *err);
/* Writes the files of a new run. */
int source_state_save(struct live_run *lr, const struct doc *source, struct err *err);
/* Reads what was saved; a run without it, or with a damaged one, has none. */
void source_state_load(struct live_run *lr);
/* "source" of the run object: {"revision","branch","dirty"}, or null. */
void source_state_to_json(const struct live_run *lr, struct jsonw *w);
/* For people: "1234abcd… on main, with changes that are not committed"; NULL if there is none. */
const char *source_state_text(const struct live_run *lr, struct arena *a);
/* The commit of a run in a few letters, with a "+" if something was not committed: "1234abcd+"; NULL if it is
 * not known. */
const char *source_state_short(const char *home, const char *run, struct arena *a);
/* The same with the difference, as in a submission. */
void source_state_to_record(const struct live_run *lr, struct jsonw *w);
