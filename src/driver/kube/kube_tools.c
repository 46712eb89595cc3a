/* The functions of engine kubernetes for commands that are about the engine itself. */
#include <stddef.h>

#include "driver/engine_tools.h"
#include "driver/kube/kube_doctor.h"
#include "driver/kube/kube_gc.h"
#include "driver/kube/kube_masters.h"

const struct engine_tools kube_tools = {
	.engine = "kubernetes",
	.has_contexts = true,
	.collect = kube_gc,
	.check = kube_doctor,
	.provider = "kubernetes",
	.masters = kube_masters,
};
