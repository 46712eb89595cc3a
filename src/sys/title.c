#include "sys/title.h"

#include <stdio.h>
#include <string.h>

static char *second, *third, *end;

void title_init(int argc, char **argv)
{
	if (argc < 3)
		return;
	second = argv[1];
	third = argv[2];
	end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
}

void title_role(const char *role)
{
	size_t n = strlen(role) + 1;

	if (!second || n > (size_t)(third - second))
		return;
	size_t rest = (size_t)(end - third);
	memmove(second + n, third, rest);
	memcpy(second, role, n);
	memset(second + n + rest, 0, (size_t)(end - (second + n + rest)));
	third = second + n;
	end = third + rest;
}

void title_words(const char *role, const char *arg)
{
	size_t n = strlen(role) + 1;

	if (!second || n >= (size_t)(end - second))
		return;
	memset(second, 0, (size_t)(end - second));
	memcpy(second, role, n);
	third = second + n;
	snprintf(third, (size_t)(end - third), "%s", arg);
}
