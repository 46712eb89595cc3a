#include "cli/command/env_input.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "fmt/doc.h"
#include "spec/variable.h"

static int read_file(const char *path, struct arena *a, struct env_list *list, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, DOC_MAX_BYTES);
	if (file_read(path, &text, err) < 0)
		return err_wrap(err, "--env-file");
	return variables_parse(path, buf_str(&text), a, list, err);
}

/* The value may be a secret: no message has it. */
static int read_word(const char *word, struct arena *a, struct env_list *list, struct err *err)
{
	struct str rest = str_from(word), name = str_cut(&rest, '=');
	const char *fault = variable_fault(name, rest.p ? rest : STR(""));

	if (!rest.p)
		return err_set(err, ERR_INVALID,
			       "--env '%.60s': expected NAME=VALUE; `pass` in the job file takes "
			       "variables of your shell",
			       word);
	if (fault)
		return err_set(err, ERR_INVALID, "--env '%.*s'%s", (int)(name.n < 60 ? name.n : 60),
			       name.p, fault);
	if (!str_is_utf8(rest))
		return err_set(err, ERR_INVALID, "--env %.*s: the value is not UTF-8 text",
			       STR_ARG(name));
	variables_set(a, list, arena_str(a, name).p, rest.p);
	return 0;
}

int env_input_read(const struct cli_call *c, struct arena *a, struct env_list *ret, struct err *err)
{
	const char **words = arena_array(a, const char *, c->nvalues + 1);
	size_t n = call_texts(c, "env-file", words, c->nvalues);

	*ret = (struct env_list){0};
	for (size_t i = 0; i < n; i++)
		if (read_file(words[i], a, ret, err) < 0)
			return -1;
	n = call_texts(c, "env", words, c->nvalues);
	for (size_t i = 0; i < n; i++)
		if (read_word(words[i], a, ret, err) < 0)
			return -1;
	return 0;
}
