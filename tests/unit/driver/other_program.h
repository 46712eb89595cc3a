#pragma once
/* A directory with files that pass for the programs of both architectures, named in REGATTA_BINARIES. */
#include "unit.h"

#include <elf.h>
#include <string.h>

#include "driver/own_program.h"

static inline const char *other_machine(void)
{
	return strcmp(own_program_machine(), "arm64") == 0 ? "x86_64" : "arm64";
}

static inline void other_program_write(const char *dir, const char *machine, bool right, char fill)
{
	bool arm = strcmp(machine, "arm64") == 0;
	Elf64_Ehdr head = {.e_ident = ELFMAG, .e_machine = arm == right ? EM_AARCH64 : EM_X86_64};
	char path[512], rest[100];

	memset(rest, fill, sizeof(rest));
	snprintf(path, sizeof(path), "%s/regatta-%s", dir, machine);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(&head, sizeof(head), 1, f), 1);
	assert_int_equal(fwrite(rest, sizeof(rest), 1, f), 1);
	assert_int_equal(fclose(f), 0);
}

/* For the whole of a test program. */
static inline int other_programs_make(void **state)
{
	if (unit_make_dir(state) < 0)
		return -1;
	other_program_write(*state, "x86_64", true, 'x');
	other_program_write(*state, "arm64", true, 'a');
	setenv("REGATTA_BINARIES", *state, 1);
	return 0;
}

static inline int other_programs_remove(void **state)
{
	unsetenv("REGATTA_BINARIES");
	return unit_remove_dir(state);
}
