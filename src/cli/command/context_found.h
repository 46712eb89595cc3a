#pragma once
/* regatta context aws - the masters on machines of a provider, as contexts. */

struct arena;
struct buf;
struct cli_call;
struct err;

/* The provider is the first word of the call. */
int context_found(const struct cli_call *c, const char *home, struct arena *a, struct buf *out,
		  struct err *err);
