#pragma once
/* engine_input - the engine that --engine names, for commands that are about an engine, and where it looks. */
#include <stdbool.h>

struct cli_call;
struct engine_tools;

/* The engine of --engine, or the first one that does what the command wants.  NULL after a message: there is no such
 * engine, or --kube-context and --namespace are not for it. */
const struct engine_tools *engine_input(const struct cli_call *c,
					bool (*does)(const struct engine_tools *));
