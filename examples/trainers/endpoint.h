#pragma once
/* endpoint - "address:port" lists as the environment gives them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int endpoint_parse(const char *text, struct sockaddr_in *ret)
{
	char host[64];
	const char *colon = strrchr(text, ':');

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return -1;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	memset(ret, 0, sizeof(*ret));
	ret->sin_family = AF_INET;
	ret->sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
	return inet_pton(AF_INET, host, &ret->sin_addr) == 1 ? 0 : -1;
}

/* The i-th of a comma list into out; 0 if there is none. */
static inline int endpoint_at(const char *list, int i, char *out, size_t size)
{
	for (; i > 0 && list; i--) {
		list = strchr(list, ',');
		if (list)
			list++;
	}
	if (!list || !*list)
		return 0;
	size_t n = strcspn(list, ",");
	if (n >= size)
		return 0;
	memcpy(out, list, n);
	out[n] = '\0';
	return 1;
}

static inline const char *need_env(const char *name)
{
	const char *value = getenv(name);

	if (!value || !*value) {
		fprintf(stderr,
			"%s is not set: start this with `regatta run` and strategy = \"pserver\"\n",
			name);
		exit(2);
	}
	return value;
}
