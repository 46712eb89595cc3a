#pragma once
/*
 * own_program - this program as a file that machines of a run get, and the same for machines of another architecture.
 *
 * The program for another architecture is the file regatta-x86_64 or regatta-arm64 in the directory
 * $REGATTA_BINARIES, beside this program, or in ../lib/regatta from there, as "make dist" packs it.
 */
#include <stdint.h>

struct arena;
struct doc;
struct err;

/* The architecture of this program, in the words of EC2: "x86_64" or "arm64". */
const char *own_program_machine(void);
/* Sets the fact binary: {sha256, size}, the program for machines of that architecture; NULL: this program.
 * ERR_NOT_FOUND if there is none here. */
int own_program_add(struct doc *facts, const char *machine, struct arena *a, struct err *err);
/* The same, as binaries.NAME: {machine, sha256, size}. */
int own_program_add_named(struct doc *facts, const char *name, const char *machine, struct arena *a,
			  struct err *err);
/* Opens the one of them that has this sum.  ERR_NOT_FOUND: none has. */
int own_program_open(const char *sha256, int *ret_fd, uint64_t *ret_size, struct err *err);
