/* regatta agent - this machine joins a master as a host. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/command/token_input.h"
#include "fmt/schema.h"
#include "host/host.h"
#include "host/install.h"
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
			return err_set(err, ERR_INVALID, "--labels: '%.*s' is given twice",
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

/* By the host's name, so that one machine may be several hosts.  Absolute: a systemd unit has another work directory. */
static int choose_dir(const struct cli_call *c, struct arena *a, struct host_options *o,
		      struct err *err)
{
	CLEANUP(freep) char *home = NULL;
	CLEANUP(freep) char *cwd = getcwd(NULL, 0);
	const char *dir = call_text(c, "dir");

	if (!dir && home_find(&home, err) < 0)
		return -1;
	if (!dir)
		dir = arena_printf(a, "%s/" LAYOUT_JOINED "/%s", home, o->name);
	CLEANUP(freep) char *path = path_join(cwd ? cwd : "/", dir);

	o->dir = arena_strdup(a, path);
	return 0;
}

static int choose_name(const struct cli_call *c, struct arena *a, struct host_options *o,
		       struct err *err)
{
	char own[256] = "";

	o->name = call_text(c, "name");
	if (!o->name) {
		if (gethostname(own, sizeof(own) - 1) < 0)
			return err_errno(err, errno, "the name of this machine");
		o->name = arena_strdup(a, own);
	}
	return host_check_name(o->name, err);
}

static int read_options(const struct cli_call *c, struct arena *a, struct label_list *labels,
			struct host_options *o, struct err *err)
{
	o->url = call_text(c, "join");
	o->pin = call_text(c, "pin");
	if (!o->url || !o->pin)
		return err_set(
			err, ERR_INVALID,
			"agent: --join URL and --pin PIN are needed; 'regatta master --listen "
			"0.0.0.0:5436' prints the line to type");
	if (choose_name(c, a, o, err) < 0 || token_input(c, a, &o->token, err) < 0 ||
	    read_labels(c, a, labels, err) < 0)
		return -1;
	o->labels = labels->v;
	o->nlabels = labels->n;
	return choose_dir(c, a, o, err);
}

/* Installs a systemd unit: of the machine as root, else of the user. */
static int install(const struct host_options *o, struct arena *a, struct buf *told, struct err *err)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n < 0)
		return err_errno(err, errno, "find this program");
	program[n] = '\0';
	struct install_places p = {.running = "/run/systemd/system",
				   .unit_dir = "/etc/systemd/system",
				   .systemctl = "systemctl",
				   .program = program,
				   .user = geteuid() != 0};

	if (p.user && config && config[0] == '/')
		p.unit_dir = arena_printf(a, "%s/systemd/user", config);
	else if (p.user)
		p.unit_dir = arena_printf(a, "%s/.config/systemd/user", home ? home : "");
	return install_host(o, &p, told, err);
}

int command_agent(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf told = {0};
	struct label_list labels = {0};
	struct host_options o = {0};
	struct err err;

	if (read_options(c, a, &labels, &o, &err) < 0)
		return cli_fail(&err);
	if (!call_flag(c, "install"))
		return host_main(&o);
	buf_init(&told, CLI_MAX_TEXT);
	return install(&o, a, &told, &err) < 0 ? cli_fail(&err) : cli_print(&told);
}
