#pragma once
/* aws_masters - the masters that run on instances of the account, found by their tags, and made reachable
 * from the caller's address (engine_tools.masters). */

struct arena;
struct err;
struct masters_input;
struct running_masters;

int aws_masters(const struct masters_input *in, struct arena *a, struct running_masters *ret,
		struct err *err);
