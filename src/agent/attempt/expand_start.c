#include "agent/attempt/expand_start.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/expand.h"
#include "link/layout.h"
#include "link/message.h"

static bool has(const struct message_start *m, const char *name)
{
	for (size_t i = 0; i < m->nenv; i++)
		if (strcmp(m->env[i].name, name) == 0)
			return true;
	return false;
}

static void add_file(struct start_texts *texts, const char *name, const char *text)
{
	if (text[0])
		texts->files[texts->nfiles++] = (struct start_file){name, text};
}

/* Expand the variables of one process.  Those that expand to nothing and those moved to files are left out.  A
 * long value lists nodes and is the same for all processes: the first one's goes to the file. */
static int expand_env(const struct message_start *m, const struct expand_here *here,
		      const char *node_dir, struct arena *a, struct start_texts *texts,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct env_pair *v = arena_array(a, struct env_pair, m->nenv);
	size_t n = 0;

	buf_init(&text, EXPAND_MAX_TEXT);
	for (size_t i = 0; i < m->nenv; i++) {
		const char *name = m->env[i].name, *file, *variable;

		switch (expand_variable(name, m->env[i].value, here, &text, err)) {
		case EXPAND_OK:
			v[n++] = (struct env_pair){name, arena_str(a, buf_str(&text)).p};
			break;
		case EXPAND_LONG:
			file = arena_printf(a, LAYOUT_LONG_VALUES "/%s", name);
			variable = arena_printf(a, "%s" EXPAND_FILE_SUFFIX, name);
			if (here->local == 0)
				add_file(texts, file, arena_str(a, buf_str(&text)).p);
			if (!has(m, variable)) /* the job may have one of its own */
				v[n++] = (struct env_pair){
					variable, arena_printf(a, "%s/%s", node_dir, file)};
			break;
		case EXPAND_NONE:
			break;
		case EXPAND_BAD:
			return err_wrap(err, "start");
		}
	}
	texts->envs[here->local] = (struct env_list){.v = v, .n = n};
	return 0;
}

static int expand_file(const char **text, const struct expand_here *here, struct arena *a,
		       struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, EXPAND_MAX_TEXT);
	if (expand_text(*text, here, &out, err) == EXPAND_BAD)
		return err_wrap(err, "start: hostfile");
	*text = arena_str(a, buf_str(&out)).p;
	return 0;
}

int expand_start(struct message_start *m, const struct expand_here *here, const char *node_dir,
		 struct arena *a, struct start_texts *ret, struct err *err)
{
	size_t n = (size_t)m->processes;

	*ret = (struct start_texts){.files = arena_array(a, struct start_file, m->nenv + 3),
				    .envs = arena_array(a, struct env_list, n)};
	if (here && (expand_file(&m->hostfile, here, a, err) < 0 ||
		     expand_file(&m->machinefile, here, a, err) < 0))
		return -1;
	for (int i = 0; i < m->processes; i++) {
		struct expand_here of = here ? *here : (struct expand_here){0};

		of.local = i;
		ret->envs[i] = (struct env_list){.v = m->env, .n = m->nenv};
		if (here && expand_env(m, &of, node_dir, a, ret, err) < 0)
			return -1;
	}
	add_file(ret, LAYOUT_HOSTFILE, m->hostfile);
	add_file(ret, LAYOUT_MACHINEFILE, m->machinefile);
	if (m->tail)
		add_file(ret, LAYOUT_TAIL, "\n"); /* for the next agent */
	return 0;
}
