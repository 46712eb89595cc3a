#include "agent/places.h"

#include "agent/config.h"
#include "agent/prepare.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/str.h"
#include "link/layout.h"

bool place_is_own_machine(const struct agent_config *cfg)
{
	return !cfg->base_dir && !cfg->cache;
}

char *place_work(const char *node_dir)
{
	return path_join(node_dir, LAYOUT_WORK);
}

char *place_cwd(const struct agent_config *cfg, const char *node_dir,
		const struct message_inputs *in)
{
	return cfg->base_dir && !prepare_has_work(in) ? xstrdup(cfg->base_dir)
						      : place_work(node_dir);
}

char *place_output(const struct agent_config *cfg, const char *node_dir, int attempt)
{
	CLEANUP(freep)
	char *dir = cfg->output_dir ? xstrdup(cfg->output_dir) : path_join(node_dir, LAYOUT_OUTPUT);

	return attempt > 1 ? xasprintf("%s" LAYOUT_ATTEMPT_SUFFIX, dir, attempt) : TAKE_PTR(dir);
}
