#pragma once
/*
 * title - the command line that ps shows for a process that was forked without an exec.
 *
 * The arguments are overwritten in place, so a title is cut to their length.
 */

/* Remember where the arguments are; call once, first thing in main. */
void title_init(int argc, char **argv);
/* The second word becomes `role`, the others stay: "regatta node-agent DIR" -> "regatta shim DIR". */
void title_role(const char *role);
/* Replace all but the first word: "regatta forkserver ....." -> "regatta node-agent DIR". */
void title_words(const char *role, const char *arg);
