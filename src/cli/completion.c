/*
 * completion - completion scripts for bash, zsh and fish, rendered from the
 * command table.  Names of runs, nodes and keys come from
 * `regatta words`, which never starts a master.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/command/commands.h"

/* Shell text that prints the candidates.  That for nodes is for bash, where $run is the run already on the
 * line.  NULL: nothing to complete. */
static const char *lister(enum cli_words words)
{
	switch (words) {
	case WORDS_RUN:
		return "regatta words runs 2>/dev/null";
	case WORDS_NODE:
		return "regatta words nodes $run 2>/dev/null";
	case WORDS_KEY:
		return "regatta words keys 2>/dev/null";
	case WORDS_STRATEGY:
		return "regatta words strategies 2>/dev/null";
	case WORDS_CONTEXT:
		return "regatta words contexts 2>/dev/null";
	case WORDS_NONE:
	case WORDS_FILE:
	case WORDS_COMMAND:
		return NULL;
	}
	return NULL;
}

static void words_of(struct buf *out, const char *const *choices)
{
	for (size_t i = 0; choices[i]; i++)
		buf_printf(out, "%s%s", i ? " " : "", choices[i]);
}

static void command_names(struct buf *out)
{
	bool first = true;

	for (const struct command *c = cli_commands; c->name; c++) {
		if (!c->group)
			continue;
		buf_printf(out, "%s%s", first ? "" : " ", c->name);
		first = false;
	}
}

/* Text inside single quotes of a shell. */
static void quoted(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_addz(out, "'\\''");
		else
			buf_addc(out, *text);
	}
}

/* " 'run --count' 'run -n' ...": the options, without the common ones, that take the next word as their value: it is
 * not counted as an argument. */
static void value_options(struct buf *out, char between)
{
	for (const struct command *c = cli_commands; c->name; c++) {
		for (const struct cli_option *o = c->options; o && o->name; o++) {
			if (!o->value || o->hidden || !c->group)
				continue;
			buf_printf(out, "%c'%s --%s'", between, c->name, o->name);
			if (o->letter)
				buf_printf(out, "%c'%s -%c'", between, c->name, o->letter);
		}
	}
}

/* bash */

static void bash_candidates(struct buf *out, enum cli_words words, const char *const *choices)
{
	const char *list = lister(words);

	if (choices) {
		buf_addz(out, "COMPREPLY=($(compgen -W '");
		words_of(out, choices);
		buf_addz(out, "' -- \"$cur\"))");
	} else if (words == WORDS_COMMAND) {
		buf_addz(out, "COMPREPLY=($(compgen -W '");
		command_names(out);
		buf_addz(out, "' -- \"$cur\"))");
	} else if (words == WORDS_FILE) {
		buf_addz(out,
			 "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
	} else if (list) {
		buf_printf(out, "COMPREPLY=($(compgen -W \"$(%s)\" -- \"$cur\"))", list);
	} else {
		buf_addc(out, ':');
	}
}

static void bash_value_case(struct buf *out, const char *cmd, const struct cli_option *o)
{
	if (!o->value || o->hidden)
		return;
	buf_printf(out, "\t'%s --%s'", cmd, o->name);
	if (o->letter)
		buf_printf(out, "|'%s -%c'", cmd, o->letter);
	buf_addz(out, ") ");
	bash_candidates(out, o->words, o->choices);
	buf_addz(out, "; return ;;\n");
}

static void bash_options(struct buf *out, const struct command *c)
{
	const struct cli_option *lists[] = {c->options, cli_common_options};
	bool first = true;

	buf_printf(out, "\t\t%s) COMPREPLY=($(compgen -W '", c->name);
	for (size_t i = 0; i < 2; i++) {
		for (const struct cli_option *o = lists[i]; o && o->name; o++) {
			if (o->hidden || (i == 1 && !cli_has_common(c, o)))
				continue;
			buf_printf(out, "%s--%s", first ? "" : " ", o->name);
			if (o->letter)
				buf_printf(out, " -%c", o->letter);
			first = false;
		}
	}
	buf_addz(out, "' -- \"$cur\")) ;;\n");
}

static void bash_arguments(struct buf *out, const struct command *c)
{
	int i = 0;

	for (const struct cli_argument *a = c->arguments; a && a->name; a++, i++) {
		if (a->many)
			buf_printf(out, "\t'%s '*) ", c->name);
		else
			buf_printf(out, "\t'%s %d') ", c->name, i);
		bash_candidates(out, a->words, a->choices);
		buf_addz(out, " ;;\n");
	}
}

static void bash_script(struct buf *out)
{
	buf_addz(out, "# bash completion for regatta; made by 'regatta completion bash'\n"
		      "_regatta()\n{\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		      "\tlocal cmd=${COMP_WORDS[1]} run= n=0 i w\n"
		      "\tCOMPREPLY=()\n"
		      "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '");
	command_names(out);
	buf_addz(out, " --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n"
		      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		      "\t\tw=${COMP_WORDS[i]}\n"
		      "\t\tcase \"$cmd $w\" in\n"
		      "\t\t*' --') compopt -o default; return ;;\n\t\t*' --output'|*' --master'");
	value_options(out, '|');
	buf_addz(out, ") i=$((i + 1)) ;;\n\t\t*' -'*) ;;\n"
		      "\t\t*) if ((n == 0)); then run=$w; fi; n=$((n + 1)) ;;\n"
		      "\t\tesac\n\tdone\n"
		      "\tcase \"$cmd $prev\" in\n");
	for (const struct command *c = cli_commands; c->name; c++)
		for (const struct cli_option *o = c->options; c->group && o && o->name; o++)
			bash_value_case(out, c->name, o);
	buf_addz(out,
		 "\t*' --output') COMPREPLY=($(compgen -W 'table json' -- \"$cur\")); return ;;\n"
		 "\t*' --master') ");
	bash_candidates(out, WORDS_CONTEXT, NULL);
	buf_addz(out, "; return ;;\n"
		      "\tesac\n"
		      "\tif [[ $cur == -* ]]; then\n\t\tcase $cmd in\n");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->group)
			bash_options(out, c);
	buf_addz(out, "\t\tesac\n\t\treturn\n\tfi\n\tcase \"$cmd $n\" in\n");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->group)
			bash_arguments(out, c);
	buf_addz(out, "\tesac\n}\ncomplete -F _regatta regatta\n");
}

/* zsh */

static void zsh_action(struct buf *out, enum cli_words words, const char *const *choices)
{
	const char *list = lister(words);

	if (choices || words == WORDS_COMMAND) {
		buf_addc(out, '(');
		if (choices)
			words_of(out, choices);
		else
			command_names(out);
		buf_addc(out, ')');
	} else if (words == WORDS_FILE) {
		buf_addz(out, "_files");
	} else if (words == WORDS_NODE) {
		buf_addz(out, "{compadd -- $(regatta words nodes $line[1] 2>/dev/null)}");
	} else if (list) {
		buf_printf(out, "{compadd -- $(%s)}", list);
	} else {
		buf_addc(out, ' ');
	}
}

static void zsh_help(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			buf_addc(out, '\\');
		if (*text == '\'')
			buf_addz(out, "'\\''");
		else
			buf_addc(out, *text);
	}
}

static void zsh_option(struct buf *out, const struct cli_option *o)
{
	buf_addz(out, " \\\n\t\t\t");
	if (o->letter)
		buf_printf(out, "'%s'{-%c,--%s}'[", o->many ? "*" : "", o->letter, o->name);
	else
		buf_printf(out, "'%s--%s[", o->many ? "*" : "", o->name);
	zsh_help(out, o->help);
	buf_addc(out, ']');
	if (o->value) {
		buf_addc(out, ':');
		zsh_help(out, o->value);
		buf_addc(out, ':');
		zsh_action(out, o->words, o->choices);
	}
	buf_addc(out, '\'');
}

static void zsh_command(struct buf *out, const struct command *c)
{
	const struct cli_option *lists[] = {c->options, cli_common_options};

	buf_printf(out, "\t%s)\n\t\t_arguments -S", c->name);
	for (size_t i = 0; i < 2; i++)
		for (const struct cli_option *o = lists[i]; o && o->name; o++)
			if (!o->hidden && (i == 0 || cli_has_common(c, o)))
				zsh_option(out, o);
	for (const struct cli_argument *a = c->arguments; a && a->name; a++) {
		buf_printf(out, " \\\n\t\t\t'%s:%s:",
			   a->many	 ? "*"
			   : a->required ? ""
					 : ":",
			   a->name);
		zsh_action(out, a->words, a->choices);
		buf_addc(out, '\'');
	}
	buf_addz(out, "\n\t\t;;\n");
}

static void zsh_script(struct buf *out)
{
	buf_addz(
		out,
		"#compdef regatta\n# zsh completion for regatta; made by 'regatta completion zsh'\n"
		"_regatta()\n{\n\tlocal -a names\n\tnames=(\n");
	for (const struct command *c = cli_commands; c->name; c++) {
		if (!c->group)
			continue;
		buf_printf(out, "\t\t'%s:", c->name);
		zsh_help(out, c->help);
		buf_addz(out, "'\n");
	}
	buf_addz(
		out,
		"\t)\n"
		"\tif ((CURRENT == 2)); then\n\t\t_describe command names\n\t\treturn\n\tfi\n"
		"\tlocal dashes=${words[(i)--]}\n"
		"\tif ((dashes < CURRENT)); then\n"
		"\t\tshift $dashes words\n\t\t((CURRENT -= dashes))\n\t\t_normal\n\t\treturn\n\tfi\n"
		"\tshift words\n\t((CURRENT--))\n"
		"\tcase $words[1] in\n");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->group)
			zsh_command(out, c);
	buf_addz(out,
		 "\tesac\n}\nif [ \"$funcstack[1]\" = _regatta ]; then\n\t_regatta \"$@\"\nelse\n"
		 "\tcompdef _regatta regatta\nfi\n");
}

/* fish */

static void fish_candidates(struct buf *out, enum cli_words words, const char *const *choices)
{
	const char *list = lister(words);

	if (choices || words == WORDS_COMMAND) {
		buf_addz(out, " -x -a '");
		if (choices)
			words_of(out, choices);
		else
			command_names(out);
		buf_addc(out, '\'');
	} else if (words == WORDS_FILE) {
		buf_addz(out, " -r -F");
	} else if (words == WORDS_NODE) {
		buf_addz(out, " -x -a '(regatta words nodes (__regatta_words)[1] 2>/dev/null)'");
	} else if (list) {
		buf_printf(out, " -x -a '(%s)'", list);
	} else {
		buf_addz(out, " -x");
	}
}

static void fish_option(struct buf *out, const char *condition, const struct cli_option *o)
{
	if (o->hidden)
		return;
	buf_printf(out, "complete -c regatta -n '%s' -l %s", condition, o->name);
	if (o->letter)
		buf_printf(out, " -s %c", o->letter);
	if (o->value)
		fish_candidates(out, o->words, o->choices);
	buf_addz(out, " -d '");
	quoted(out, o->help);
	buf_addz(out, "'\n");
}

static void fish_command(struct buf *out, const struct command *c)
{
	char condition[96];
	int i = 0;

	buf_printf(out, "complete -c regatta -n __fish_use_subcommand -a %s -d '", c->name);
	quoted(out, c->help);
	buf_addz(out, "'\n");
	for (const struct cli_argument *a = c->arguments; a && a->name; a++, i++) {
		if (!a->choices && a->words == WORDS_NONE)
			continue;
		snprintf(condition, sizeof(condition), "__regatta_is %s; and __regatta_args %d%s",
			 c->name, i, a->many ? " or_more" : "");
		buf_printf(out, "complete -c regatta -n '%s'", condition);
		fish_candidates(out, a->words, a->choices);
		buf_addc(out, '\n');
	}
	snprintf(condition, sizeof(condition), "__regatta_is %s", c->name);
	for (const struct cli_option *o = c->options; o && o->name; o++)
		fish_option(out, condition, o);
	for (const struct cli_option *o = cli_common_options; o->name; o++)
		if (cli_has_common(c, o))
			fish_option(out, condition, o);
}

static void fish_script(struct buf *out)
{
	buf_addz(out, "# fish completion for regatta; made by 'regatta completion fish'\n"
		      "function __regatta_is\n"
		      "\tset -l words (commandline -opc)\n"
		      "\ttest \"$words[2]\" = $argv[1]; and not contains -- -- $words\nend\n"
		      "function __regatta_words\n"
		      "\tset -l words (commandline -opc)\n"
		      "\tset -l cmd $words[2]\n"
		      "\tset -l skip no\n"
		      "\tfor w in $words[3..]\n"
		      "\t\tif test $skip = yes\n\t\t\tset skip no\n\t\t\tcontinue\n\t\tend\n"
		      "\t\tswitch \"$cmd $w\"\n"
		      "\t\t\tcase '* --output' '* --master'");
	value_options(out, ' ');
	buf_addz(out,
		 "\n\t\t\t\tset skip yes\n"
		 "\t\t\tcase '* -*'\n"
		 "\t\t\tcase '*'\n\t\t\t\techo $w\n"
		 "\t\tend\n\tend\nend\n"
		 "function __regatta_args\n"
		 "\tset -l n (count (__regatta_words))\n"
		 "\ttest $n -eq $argv[1]; or test (count $argv) -gt 1 -a $n -gt $argv[1]\nend\n"
		 "complete -c regatta -f\n"
		 "complete -c regatta -n 'contains -- -- (commandline -opc)' -F\n");
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->group)
			fish_command(out, c);
}

bool completion_render(const char *shell, struct buf *out)
{
	static const struct {
		const char *shell;
		void (*render)(struct buf *out);
	} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		if (strcmp(scripts[i].shell, shell) == 0) {
			scripts[i].render(out);
			return true;
		}
	}
	return false;
}
