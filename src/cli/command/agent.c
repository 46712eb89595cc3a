/* regatta agent - this machine joins a master as a host. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/command/token_input.h"
#include "fmt/schema.h"
#include "host/host.h"
#include "link/layout.h"

#define MAX_LABELS 32
#define MAX_LABEL 64 /* bytes of a name or value */

struct label_list {
	struct env_pair v[MAX_LABELS];
	size_t n;
};

static int add_label(struct str text, struct arena *a, struct label_list *l, struct err *err)
{
	struct str value = text, name = str_cut(&value, '=');

	if (!value.p || name.n == 0 || name.n > MAX_LABEL || value.n > MAX_LABEL)
		return err_set(err, ERR_INVALID,
			       "--labels: '%.*s' is not NAME=VALUE with at most %d characters each",
			       STR_ARG(text), MAX_LABEL);
	for (size_t i = 0; i < l->n; i++)
		if (str_is(name, l->v[i].name))
			return err_set(err, ERR_INVALID, "--labels: '%.*s' is there twice",
				       STR_ARG(name));
	if (l->n == MAX_LABELS)
		return err_set(err, ERR_INVALID, "--labels: at most %d", MAX_LABELS);
	l->v[l->n++] = (struct env_pair){arena_strndup(a, name.p, name.n),
					 arena_strndup(a, value.p, value.n)};
	return 0;
}

static int read_labels(const struct cli_call *c, struct arena *a, struct label_list *l,
		       struct err *err)
{
	const char **texts = arena_array(a, const char *, c->nvalues + 1);
	size_t n = call_texts(c, "labels", texts, c->nvalues);

	for (size_t i = 0; i < n; i++) {
		struct str rest = str_from(texts[i]);

		while (rest.p && rest.n)
			if (add_label(str_cut(&rest, ','), a, l, err) < 0)
				return -1;
	}
	return 0;
}

/* By its name, so that several hosts may be on one machine. */
static int choose_dir(const struct cli_call *c, struct arena *a, struct host_options *o,
		      struct err *err)
{
	CLEANUP(freep) char *home = NULL;
	char own[256] = "";

	o->dir = call_text(c, "dir");
	if (o->dir)
		return 0;
	if (home_find(&home, err) < 0)
		return -1;
	gethostname(own, sizeof(own) - 1);
	o->dir = arena_printf(a, "%s/" LAYOUT_JOINED "/%s", home, o->name ? o->name : own);
	return 0;
}

static int read_options(const struct cli_call *c, struct arena *a, struct label_list *labels,
			struct host_options *o, struct err *err)
{
	o->url = call_text(c, "join");
	o->pin = call_text(c, "pin");
	o->name = call_text(c, "name");
	if (!o->url || !o->pin)
		return err_set(
			err, ERR_INVALID,
			"agent: --join URL and --pin PIN are needed; 'regatta master --listen "
			"0.0.0.0:5436' prints the line to type");
	if (o->name && strchr(o->name, '/'))
		return err_set(err, ERR_INVALID, "--name '%.80s' cannot be the name of a host",
			       o->name);
	if (token_input(c, a, &o->token, err) < 0 || read_labels(c, a, labels, err) < 0)
		return -1;
	o->labels = labels->v;
	o->nlabels = labels->n;
	return choose_dir(c, a, o, err);
}

int command_agent(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct label_list labels = {0};
	struct host_options o = {0};
	struct err err;

	if (read_options(c, a, &labels, &o, &err) < 0)
		return cli_fail(&err);
	return host_main(&o);
}
