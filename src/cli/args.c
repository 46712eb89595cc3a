/*
 * args - a command line read by the command's row.
 *
 * Options and arguments may be mixed; "--name value", "--name=value", "-nVALUE"
 * and bundled flags work.  After "--" every word belongs to the job's command
 * (or is an argument, for commands that take none).
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/suggest.h"
#include "fmt/schema.h"

#define MAX_NAMES 64 /* option names of one command, for suggestions */

static const struct cli_option *find_option(const struct cli_option *o, struct str name,
					    char letter)
{
	for (; o && o->name; o++)
		if (letter ? o->letter == letter : str_is(name, o->name))
			return o;
	return NULL;
}

static const struct cli_option *option_of(const struct command *cmd, struct str name, char letter)
{
	const struct cli_option *o = find_option(cmd->options, name, letter);

	if (o)
		return o;
	o = find_option(cli_common_options, name, letter);
	return o && cli_has_common(cmd, o) ? o : NULL;
}

static int unknown_option(const struct command *cmd, struct str name, struct err *err)
{
	const char *names[MAX_NAMES];
	size_t n = 0;
	const struct cli_option *lists[] = {cmd->options, cli_common_options};

	for (size_t i = 0; i < 2; i++)
		for (const struct cli_option *o = lists[i]; o && o->name && n < MAX_NAMES; o++)
			if (!o->hidden && (i == 0 || cli_has_common(cmd, o)))
				names[n++] = o->name;
	const char *near = suggest_word(names, n, name);
	if (near)
		return err_set(err, ERR_INVALID, "unknown option '--%.*s': did you mean '--%s'?",
			       STR_ARG(name), near);
	return err_set(err, ERR_INVALID, "unknown option '--%.*s': see 'regatta %s --help'",
		       STR_ARG(name), cmd->name);
}

static int bad_choice(const char *what, const char *given, const char *const *choices,
		      struct err *err)
{
	char list[120] = "";
	size_t n = 0, used = 0;

	for (; choices[n]; n++) {
		int m = snprintf(list + used, sizeof(list) - used, "%s%s", n ? ", " : "",
				 choices[n]);
		if (m < 0 || (size_t)m >= sizeof(list) - used)
			break;
		used += (size_t)m;
	}
	const char *near = suggest_word(choices, n, str_from(given));
	if (near)
		return err_set(err, ERR_INVALID, "%s cannot be '%s': did you mean '%s'?", what,
			       given, near);
	return err_set(err, ERR_INVALID, "%s cannot be '%s': choose from %s", what, given, list);
}

static bool among(const char *word, const char *const *choices)
{
	for (; *choices; choices++)
		if (strcmp(word, *choices) == 0)
			return true;
	return false;
}

static int check_value(const struct cli_option *o, const char *text, int64_t *ret_number,
		       struct err *err)
{
	char what[64];

	snprintf(what, sizeof(what), "--%s", o->name);
	if (o->choices && !among(text, o->choices))
		return bad_choice(what, text, o->choices, err);
	if (!o->number)
		return 0;
	int64_t v;
	if (!str_to_i64(str_from(text), &v))
		return err_set(err, ERR_INVALID, "%s needs a whole number, not '%s'", what, text);
	if (v < o->min || v > o->max)
		return err_set(err, ERR_INVALID,
			       "%s must be between %" PRId64 " and %" PRId64 ", not %s", what,
			       o->min, o->max, text);
	*ret_number = v;
	return 0;
}

static int keep(struct cli_call *c, const struct cli_option *o, const char *text, struct err *err)
{
	int64_t number = 0;

	if (o->value && check_value(o, text, &number, err) < 0)
		return -1;
	if (strcmp(o->name, "help") == 0)
		c->help = true;
	else if (text && strcmp(o->name, "output") == 0)
		c->output = strcmp(text, "json") == 0 ? OUTPUT_JSON : OUTPUT_TABLE;
	else
		c->values[c->nvalues++] = (struct cli_call_value){o, text, number};
	return 0;
}

static int missing_value(const struct cli_option *o, struct err *err)
{
	return err_set(err, ERR_INVALID, "--%s needs a value: --%s %s", o->name, o->name, o->value);
}

/* Reads "--name", "--name=value" or "--name value"; *i advances past the words used. */
static int take_long(struct cli_call *c, int argc, char *const *argv, int *i, struct err *err)
{
	const char *word = argv[*i] + 2;
	const char *eq = strchr(word, '=');
	struct str name = {word, eq ? (size_t)(eq - word) : strlen(word)};
	const struct cli_option *o = option_of(c->command, name, 0);

	if (!o)
		return unknown_option(c->command, name, err);
	if (!o->value) {
		if (eq)
			return err_set(err, ERR_INVALID, "--%s takes no value", o->name);
		return keep(c, o, NULL, err);
	}
	if (eq)
		return keep(c, o, eq + 1, err);
	if (*i + 1 >= argc)
		return missing_value(o, err);
	return keep(c, o, argv[++*i], err);
}

/* "-f", "-df", "-n4", "-n 4". */
static int take_short(struct cli_call *c, int argc, char *const *argv, int *i, struct err *err)
{
	for (const char *p = argv[*i] + 1; *p; p++) {
		const struct cli_option *o = option_of(c->command, (struct str){0}, *p);
		if (!o)
			return err_set(err, ERR_INVALID,
				       "unknown option '-%c': see 'regatta %s --help'", *p,
				       c->command->name);
		if (!o->value) {
			if (keep(c, o, NULL, err) < 0)
				return -1;
			continue;
		}
		if (p[1])
			return keep(c, o, p + 1, err);
		if (*i + 1 >= argc)
			return missing_value(o, err);
		return keep(c, o, argv[++*i], err);
	}
	return 0;
}

static int check_arguments(const struct cli_call *c, struct err *err)
{
	size_t i = 0;
	bool many = false;

	for (const struct cli_argument *a = c->command->arguments; a && a->name; a++) {
		if (a->required && i >= c->nargs)
			return err_set(err, ERR_INVALID, "%s is missing: see 'regatta %s --help'",
				       a->name, c->command->name);
		if (a->choices && i < c->nargs && !among(c->args[i], a->choices))
			return bad_choice(a->name, c->args[i], a->choices, err);
		many = many || a->many;
		i++;
	}
	if (many || c->nargs <= i)
		return 0;
	if (c->command->rest)
		return err_set(err, ERR_INVALID,
			       "unexpected argument '%s': a command goes after '--'", c->args[i]);
	return err_set(err, ERR_INVALID, "unexpected argument '%s': see 'regatta %s --help'",
		       c->args[i], c->command->name);
}

int call_parse(const struct command *cmd, int argc, char *const *argv, struct cli_call *ret,
	       struct err *err)
{
	/* A bundle of flags "-adf" gives as many values as it has letters. */
	size_t room = 1;
	for (int i = 0; i < argc; i++)
		room += strlen(argv[i]) + 1;
	struct cli_call c = {
		.command = cmd,
		.values = xcalloc(room, sizeof(*c.values)),
		.args = xcalloc((size_t)argc + 1, sizeof(*c.args)),
	};
	int rc = 0;

	for (int i = 0; i < argc && rc == 0; i++) {
		if (strcmp(argv[i], "--") == 0) {
			c.has_rest = cmd->rest != NULL;
			for (int j = i + 1; j < argc && !cmd->rest; j++)
				c.args[c.nargs++] = argv[j];
			c.rest = (const char *const *)argv + i + 1;
			c.nrest = cmd->rest ? (size_t)(argc - i - 1) : 0;
			break;
		}
		if (strncmp(argv[i], "--", 2) == 0)
			rc = take_long(&c, argc, argv, &i, err);
		else if (argv[i][0] == '-' && argv[i][1] && !(cmd->signs && c.nargs))
			rc = take_short(&c, argc, argv, &i, err);
		else
			c.args[c.nargs++] = argv[i];
	}
	if (rc == 0 && !c.help)
		rc = check_arguments(&c, err);
	if (rc < 0) {
		call_release(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void call_release(struct cli_call *c)
{
	free(c->values);
	free(c->args);
	c->values = NULL;
	c->args = NULL;
	c->nvalues = c->nargs = 0;
}

static const struct cli_call_value *last_value(const struct cli_call *c, const char *option)
{
	for (size_t i = c->nvalues; i-- > 0;)
		if (strcmp(c->values[i].option->name, option) == 0)
			return &c->values[i];
	return NULL;
}

bool call_flag(const struct cli_call *c, const char *option)
{
	return last_value(c, option) != NULL;
}

const char *call_text(const struct cli_call *c, const char *option)
{
	const struct cli_call_value *v = last_value(c, option);

	return v ? v->text : NULL;
}

int64_t call_number(const struct cli_call *c, const char *option, int64_t fallback)
{
	const struct cli_call_value *v = last_value(c, option);

	return v ? v->number : fallback;
}

size_t call_texts(const struct cli_call *c, const char *option, const char **out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nvalues && n < max; i++)
		if (strcmp(c->values[i].option->name, option) == 0)
			out[n++] = c->values[i].text;
	return n;
}

const char *call_arg(const struct cli_call *c, size_t i)
{
	return i < c->nargs ? c->args[i] : NULL;
}
