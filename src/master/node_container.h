#pragma once
/* node_container - what a node must know to run its job in a container. */
#include <stdbool.h>
#include "base/str.h"

struct arena;
struct live_run;
struct message_inputs;

/* Image and login. */
void node_container_put(const struct live_run *lr, int rank, struct arena *a,
			struct message_inputs *m);
/* Is this variable of the submitting shell kept from the job?  The password of the registry always is; with an image
 * so are those by which programs of the submitting machine are found. */
bool client_variable_hidden(const struct live_run *lr, const char *image, struct str name);
