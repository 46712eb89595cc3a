#include "fmt/tar_block.h"

#include <stddef.h>
#include <stdio.h>

uint32_t tar_checksum(const struct tar_block *b)
{
	const unsigned char *p = (const unsigned char *)b;
	uint32_t sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		bool own = i >= offsetof(struct tar_block, checksum) &&
			   i < offsetof(struct tar_block, checksum) + sizeof(b->checksum);

		sum += own ? ' ' : p[i];
	}
	return sum;
}

bool tar_is_zero(const struct tar_block *b)
{
	const char *p = (const char *)b;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		if (p[i] != 0)
			return false;
	}
	return true;
}

bool tar_read_number(const char *field, size_t n, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t i = 0, digits = 0;

	if ((unsigned char)field[0] == 0x80) {
		for (i = 1; i < n; i++) {
			if (value > (uint64_t)INT64_MAX >> 8)
				return false;
			value = value << 8 | (unsigned char)field[i];
		}
		*ret_value = value;
		return true;
	}
	while (i < n && field[i] == ' ')
		i++;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++, digits++)
		value = value << 3 | (uint64_t)(field[i] - '0');
	for (; i < n; i++) {
		if (field[i] != ' ' && field[i] != '\0')
			return false;
	}
	*ret_value = value;
	return digits > 0;
}

void tar_write_number(char *field, size_t n, uint64_t value)
{
	snprintf(field, n, "%0*llo", (int)n - 1, (unsigned long long)value);
}
