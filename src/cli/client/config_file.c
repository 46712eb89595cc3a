#include "cli/client/config_file.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/doc.h"
#include "spec/config.h"

/* $XDG_CONFIG_HOME, else ~/.config; NULL: neither is known.  Owned. */
static char *config_path(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && config[0] == '/')
		return xasprintf("%s/regatta/config.toml", config);
	return home && home[0] == '/' ? xasprintf("%s/.config/regatta/config.toml", home) : NULL;
}

static int load(const char *path, struct str text, struct arena *a, struct user_config *ret,
		struct err *err)
{
	CLEANUP(freep) struct problems *ps = xcalloc(1, sizeof(*ps));
	struct doc *doc;

	if (toml_parse(text, a, &doc, err) < 0)
		return err_wrap(err, "%s", path);
	if (schema_load(&config_schema, doc, ret, a, ps))
		return 0;
	return err_set(err, ERR_INVALID, "%s:%d:%d: %.150s", path, ps->v[0].pos.line,
		       ps->v[0].pos.col, ps->v[0].text);
}

int config_read(struct arena *a, struct user_config *ret, struct err *err)
{
	CLEANUP(freep) char *path = config_path();
	CLEANUP(buf_release) struct buf text = {0};

	*ret = (struct user_config){0};
	if (!path || !file_exists(path))
		return 0;
	buf_init(&text, DOC_MAX_BYTES);
	return file_read(path, &text, err) < 0 ? -1 : load(path, buf_str(&text), a, ret, err);
}
