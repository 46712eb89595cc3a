#pragma once
/*
 * cli - the command line.
 *
 * One table of commands (command_table.c) gives parsing, --help, the man page and
 * shell completion.  Results go to stdout, messages to stderr.  A command returns
 * the exit code of the process: 0 ok, 1 the job failed, 2 usage or bad input,
 * 3 not found, 4 denied, 5 capacity or quota, 6 timed out, 7 cancelled,
 * 8 unavailable.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

struct err;

#define CLI_MAX_TEXT (256u << 20) /* bytes of a text that is rendered in one piece */

/* The words that shell completion offers for an argument or a value. */
enum cli_words {
	WORDS_NONE,
	WORDS_RUN,
	WORDS_NODE,
	WORDS_FILE,
	WORDS_KEY,
	WORDS_STRATEGY,
	WORDS_COMMAND,
	WORDS_CONTEXT
};

struct cli_argument {
	const char *name; /* "RUN" */
	bool required, many;
	enum cli_words words;
	const char *const *choices; /* NULL = anything */
};

struct cli_option {
	const char *name;	    /* without the dashes */
	char letter;		    /* 0 = none */
	const char *value;	    /* placeholder, "N"; NULL: a flag */
	const char *const *choices; /* NULL-terminated; NULL = anything */
	bool number;		    /* an integer within min..max */
	int64_t min, max;
	bool many; /* may be repeated */
	bool hidden;
	bool to_master; /* a common option that only commands which talk to a master have */
	enum cli_words words;
	const char *help;
};

struct cli_call;
struct command {
	const char *name;
	const char *group;		      /* heading in the overview; NULL: not shown */
	const struct cli_argument *arguments; /* ends with .name == NULL; NULL = none */
	/* the same; every command also has --output and --help, and --master if it talks to
	 * one */
	const struct cli_option *options;
	bool to_master;	  /* it talks to a master, the user's own or another */
	const char *rest; /* "COMMAND": words after "--" are accepted; NULL = they are arguments */
	bool signs;	  /* after the first argument, words like -x are arguments too */
	const char *help; /* one line */
	const char *more; /* a paragraph; may be NULL */
	const char *example; /* lines */
	int (*run)(const struct cli_call *call);
};

extern const struct command cli_commands[]; /* ends with .name == NULL */
extern const struct cli_option cli_common_options[];
/* Does this command take this common option? */
bool cli_has_common(const struct command *cmd, const struct cli_option *common);

const struct command *cli_find_command(struct str name); /* NULL if there is no such command */
const char *cli_suggest_command(
	const char *name); /* the command probably meant; NULL if none is similar */

enum cli_output { OUTPUT_TABLE, OUTPUT_JSON };

/* One parsed command line.  The words are those of argv; nothing is copied. */
struct cli_call_value {
	const struct cli_option *option;
	const char *text;
	int64_t number;
};
struct cli_call {
	const struct command *command;
	enum cli_output output;
	bool help;
	struct cli_call_value *values;
	size_t nvalues;
	const char **args;
	size_t nargs;
	const char *const *rest;
	size_t nrest;
	bool has_rest; /* "--" was given */
};

/* argv without the program and the command.  ERR_INVALID: one line that says what is wrong and, if a
 * known word is similar, which. */
int call_parse(const struct command *cmd, int argc, char *const *argv, struct cli_call *ret,
	       struct err *err);
void call_release(struct cli_call *c);
bool call_flag(const struct cli_call *c, const char *option);
const char *call_text(const struct cli_call *c,
		      const char *option); /* the last one given, or NULL */
int64_t call_number(const struct cli_call *c, const char *option, int64_t fallback);
/* All values of a repeatable option, in order; returns their number, at most max. */
size_t call_texts(const struct cli_call *c, const char *option, const char **out, size_t max);
const char *call_arg(const struct cli_call *c, size_t i); /* NULL past the end */

/* Pure renderings of the table. */
void help_overview(struct buf *out);
void help_usage(struct buf *out); /* the short text of `regatta` without arguments */
void help_command(const struct command *cmd, struct buf *out);
void help_synopsis(const struct command *cmd, struct buf *out);
void manpage_render(struct buf *out);
/* shell: "bash", "zsh", "fish"; false for another. */
bool completion_render(const char *shell, struct buf *out);

/* Print to stdout.  0, or the exit code after a message when the write fails; a reader that
 * has closed the pipe is no error. */
int cli_print(const struct buf *b);
/* True when the reader of stdout has closed the pipe: following a log can stop. */
bool cli_reader_gone(void);
/* cli_print() of a text; with --output json, of an object with this one key. */
int cli_print_text(const struct cli_call *c, const char *key, const struct buf *text);
/* "regatta: message" on stderr, escaped; returns the exit code of the kind. */
int cli_fail(const struct err *err);
/* A message on stderr: "regatta: ...". */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The command line; main() has handled the internal roles before. */
int cli_main(int argc, char **argv);
