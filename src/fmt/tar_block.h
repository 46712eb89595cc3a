#pragma once
/* tar_block - the 512-byte block of a tar archive.  Internal to fmt/. */
#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK 512
#define TAR_MAX_PATH 4095	    /* bytes of a name inside an archive */
#define TAR_MAX_LEVELS 128	    /* directories within each other */
#define TAR_COPY_BYTES (128 * 1024) /* read or written at once */

struct tar_block {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[8]; /* and version: "ustar\0" "00", or GNU's "ustar  " */
	char user[32];
	char group[32];
	char dev_major[8];
	char dev_minor[8];
	char prefix[155];
	char pad[12];
};
_Static_assert(sizeof(struct tar_block) == TAR_BLOCK, "a tar header is one block");

/* The sum of the block's bytes, with the checksum field taken as blanks. */
uint32_t tar_checksum(const struct tar_block *b);
bool tar_is_zero(const struct tar_block *b);
/* A number: octal between blanks, or GNU's base 256.  False if neither, or above 2^63-1. */
bool tar_read_number(const char *field, size_t n, uint64_t *ret_value);
/* Octal with leading zeros and a NUL; the value must fit. */
void tar_write_number(char *field, size_t n, uint64_t value);
/* Bytes up to the next whole block. */
static inline uint64_t tar_padding(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}
