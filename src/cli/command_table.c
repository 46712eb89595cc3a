/*
 * command_table - the commands: their arguments, options and texts.
 *
 * A new command is a row here and a function in its own file.
 */
#include "base/suggest.h"
#include "cli/command/commands.h"

#include <string.h>

#include "cli/cli.h"
#include "fmt/schema.h"

#define MAX_COMMANDS 64

static const char *const outputs[] = {"table", "json", NULL};
static const char *const scopes[] = {"read", "submit", "admin", NULL};
static const char *const token_scopes[] = {"read", "submit", "admin", "join", NULL};
static const char *const token_actions[] = {"new", "list", "revoke", NULL};
static const char *const context_actions[] = {"add", "list", "ls", "show", "use", "remove", NULL};
static const char *const uses[] = {"median", "mean", "last", "best", NULL};
static const char *const shells[] = {"bash", "zsh", "fish", NULL};
static const char *const word_lists[] = {"runs", "nodes", "keys", "strategies", "contexts", NULL};

const struct cli_option cli_common_options[] = {
	{.name = "output",
	 .value = "FORMAT",
	 .choices = outputs,
	 .help = "table for people (default), json for scripts"},
	{.name = "master",
	 .value = "MASTER",
	 .to_master = true,
	 .words = WORDS_CONTEXT,
	 .help = "the master to talk to: the name of a context, a URL, or 'local' for your own"},
	{.name = "help", .letter = 'h', .help = "show this help"},
	{0},
};

bool cli_has_common(const struct command *cmd, const struct cli_option *common)
{
	return !common->to_master || cmd->to_master;
}

static const struct cli_argument optional_file[] = {{.name = "FILE", .words = WORDS_FILE}, {0}};
static const struct cli_argument optional_run[] = {{.name = "RUN", .words = WORDS_RUN}, {0}};
static const struct cli_argument run_and_node[] = {
	{.name = "RUN", .words = WORDS_RUN}, {.name = "NODE", .words = WORDS_NODE}, {0}};
static const struct cli_argument run_and_metric[] = {
	{.name = "RUN", .words = WORDS_RUN}, {.name = "NAME"}, {0}};
static const struct cli_argument run_and_sizes[] = {
	{.name = "RUN", .required = true, .words = WORDS_RUN},
	{.name = "ROLE=N", .required = true, .many = true},
	{0}};
static const struct cli_argument many_runs[] = {
	{.name = "RUN", .required = true, .many = true, .words = WORDS_RUN}, {0}};
static const struct cli_argument compared_runs[] = {
	{.name = "RUNS", .required = true, .many = true, .words = WORDS_RUN}, {0}};
static const struct cli_argument optional_strategy[] = {
	{.name = "STRATEGY", .words = WORDS_STRATEGY}, {0}};
static const struct cli_argument optional_key[] = {{.name = "KEY", .words = WORDS_KEY}, {0}};
static const struct cli_argument one_shell[] = {
	{.name = "SHELL", .required = true, .choices = shells}, {0}};
static const struct cli_argument token_action[] = {
	{.name = "ACTION", .required = true, .choices = token_actions}, {.name = "ID"}, {0}};
static const struct cli_argument context_action[] = {
	{.name = "ACTION", .required = true, .choices = context_actions},
	{.name = "NAME", .words = WORDS_CONTEXT},
	{.name = "URL"},
	{0}};
static const struct cli_argument optional_command[] = {{.name = "COMMAND", .words = WORDS_COMMAND},
						       {0}};
static const struct cli_argument node_dir[] = {{.name = "NODE_DIR", .words = WORDS_FILE}, {0}};
static const struct cli_argument word_list[] = {
	{.name = "LIST", .required = true, .choices = word_lists},
	{.name = "RUN", .words = WORDS_RUN},
	{0}};

#define OPTION_COUNT                                                                               \
	{                                                                                          \
		.name = "count", .letter = 'n', .value = "N", .number = true, .min = 1,            \
		.max = 10000, .help = "number of nodes: the job's count"                           \
	}
#define OPTION_SET                                                                                 \
	{                                                                                          \
		.name = "set", .value = "KEY=VALUE", .many = true, .words = WORDS_KEY,             \
		.help = "change a key of the job, e.g. roles.trainer.count=8; may be repeated"     \
	}
#define OPTION_NAME                                                                                \
	{                                                                                          \
		.name = "name", .value = "NAME",                                                   \
		.help = "the job's name; the run is called NAME-xxxx"                              \
	}

#define OPTION_ENGINE                                                                              \
	{                                                                                          \
		.name = "engine", .value = "ENGINE",                                               \
		.help = "where the nodes are: local (default) or hosts; the job's engine"          \
	}

static const struct cli_option run_options[] = {
	OPTION_COUNT,
	OPTION_SET,
	OPTION_NAME,
	OPTION_ENGINE,
	{.name = "detach", .letter = 'd', .help = "print the run's id and return; the run goes on"},
	{.name = "follow",
	 .letter = 'f',
	 .help = "print the job's output while it runs, as 'node | line'"},
	{.name = "repeat",
	 .value = "N",
	 .number = true,
	 .min = 1,
	 .max = 1000000,
	 .help = "run the job N times, each a run of its own"},
	{.name = "parallel",
	 .value = "K",
	 .number = true,
	 .min = 1,
	 .max = 256,
	 .help = "with --repeat: K runs at a time (default 1)"},
	{0},
};
static const struct cli_option plan_options[] = {
	OPTION_COUNT, OPTION_SET, OPTION_NAME, OPTION_ENGINE, {0}};
static const struct cli_option ps_options[] = {
	{.name = "all", .letter = 'a', .help = "ended runs too"},
	{.name = "limit",
	 .value = "N",
	 .number = true,
	 .min = 0,
	 .max = 10000,
	 .help = "at most N runs (default 50; 0: all)"},
	{0},
};
static const struct cli_option logs_options[] = {
	{.name = "follow", .letter = 'f', .help = "go on until the node has ended"},
	{.name = "tail",
	 .value = "N",
	 .number = true,
	 .min = 0,
	 .max = 1000000,
	 .help = "only the last N lines"},
	{.name = "attempt",
	 .value = "N",
	 .number = true,
	 .min = 1,
	 .max = 1000000,
	 .help = "only this attempt of a node that was started again"},
	{.name = "merge", .help = "all nodes, each line as 'node | line'"},
	{.name = "stdout", .help = "standard output only"},
	{.name = "stderr", .help = "standard error only"},
	{.name = "err", .hidden = true, .help = "the same as --stderr"},
	{.name = "raw",
	 .help = "raw bytes even on a terminal (control characters are escaped otherwise)"},
	{0},
};
static const struct cli_option metrics_options[] = {
	{.name = "node",
	 .value = "NODE",
	 .words = WORDS_NODE,
	 .help = "only the metrics of this node"},
	{.name = "host", .help = "samples of the nodes too: cpu, memory, network, disk"},
	{0},
};
static const struct cli_option events_options[] = {
	{.name = "follow", .letter = 'f', .help = "go on until the run has ended"}, {0}};
static const struct cli_option report_options[] = {
	{.name = "to",
	 .letter = 'o',
	 .value = "DIR",
	 .words = WORDS_FILE,
	 .help = "write to DIR instead of the run's directory"},
	{0},
};
static const struct cli_option compare_options[] = {
	{.name = "metric",
	 .value = "NAME",
	 .many = true,
	 .help = "this metric only; may be repeated"},
	{.name = "use",
	 .value = "FIGURE",
	 .choices = uses,
	 .help = "what a run gives for a metric: median (default) or mean of its samples after the warm-up, "
		 "last or best"},
	{.name = "threshold",
	 .value = "PCT",
	 .help = "a change up to PCT percent does not matter (default 5)"},
	{.name = "samples", .help = "test the samples of the runs as if they were independent"},
	{.name = "no-test", .help = "where the runs are too few to test, let the threshold decide"},
	{0},
};
static const struct cli_option kill_options[] = {
	{.name = "now", .help = "SIGKILL at once, without the grace period"}, {0}};
static const struct cli_option init_options[] = {
	{.name = "to",
	 .letter = 'o',
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "write to this file (default job.toml; '-' is standard output)"},
	{0},
};
static const struct cli_option sim_options[] = {
	{.name = "seeds",
	 .value = "N",
	 .number = true,
	 .min = 1,
	 .max = 1000000000,
	 .help = "runs to simulate (default 100)"},
	{.name = "nodes",
	 .value = "M",
	 .number = true,
	 .min = 1,
	 .max = 10000,
	 .help = "nodes of each run (default 3)"},
	{.name = "seed",
	 .value = "S",
	 .number = true,
	 .min = 0,
	 .max = INT64_MAX,
	 .help = "the first seed (default 1)"},
	{.name = "verbose",
	 .letter = 'v',
	 .many = true,
	 .help = "a line for each seed; -vv: its whole history"},
	{0},
};
static const struct cli_option master_options[] = {
	{.name = "listen",
	 .value = "ADDR:PORT",
	 .help = "serve HTTPS for hosts and other clients at ADDR:PORT; on 127.0.0.1 also plain HTTP (default: plain "
		 "HTTP on the next free port of 127.0.0.1 from 5436 on)"},
	{.name = "stop",
	 .help = "stop the running master; its runs go on, and the next master takes them over"},
	{.name = "cancel", .help = "with --stop: cancel the active runs first"},
	{.name = "background",
	 .hidden = true,
	 .help = "exit when idle; 'regatta run' starts the master so"},
	{0},
};
static const struct cli_option hosts_options[] = {
	{.name = "forget", .value = "NAME", .help = "remove a host that is gone from the list"},
	{0},
};
static const struct cli_option node_agent_options[] = {
	{.name = "enrol",
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "ask the master which node this machine is, if it has none yet"},
	{0},
};
static const struct cli_option agent_options[] = {
	{.name = "join", .value = "URL", .help = "the master: https://HOST:PORT"},
	{.name = "pin", .value = "PIN", .help = "the pin of the master's key, as it prints it"},
	{.name = "token",
	 .value = "TOKEN",
	 .help = "the token for hosts; other users of this machine may see it"},
	{.name = "token-file",
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "read the token from FILE ('-' is standard input)"},
	{.name = "name", .value = "NAME", .help = "the host's name (default: that of the machine)"},
	{.name = "labels",
	 .value = "K=V,...",
	 .many = true,
	 .help = "what jobs may ask for, e.g. gpu=a100,room=2"},
	{.name = "dir",
	 .value = "DIR",
	 .words = WORDS_FILE,
	 .help = "directory of the host's nodes (default: $REGATTA_HOME/joined/NAME)"},
	{.name = "install",
	 .help = "install and start a systemd unit instead: of the machine for root, else of the user"},
	{0},
};
static const struct cli_option ui_options[] = {
	{.name = "print", .help = "only print the link; open no browser"},
	{.name = "scope",
	 .value = "SCOPE",
	 .choices = scopes,
	 .help = "what the browser may do: read, submit or admin (default)"},
	{0},
};
static const struct cli_option token_options[] = {
	{.name = "scope",
	 .value = "SCOPE",
	 .choices = token_scopes,
	 .help = "with new: what the token allows: read, submit (read and submit runs), admin, or join (only as a host)"},
	{.name = "expires",
	 .value = "TIME",
	 .help = "with new: how long the token is valid, e.g. 7d"},
	{.name = "name",
	 .value = "NAME",
	 .help = "with new: a name that says what the token is for"},
	{0},
};
static const struct cli_option context_options[] = {
	{.name = "pin",
	 .value = "PIN",
	 .help = "with add: the pin of the master's key, as it prints it; without a pin, its certificate must "
		 "be of a CA"},
	{.name = "token-file",
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "with add: read the token from FILE ('-' is standard input)"},
	{.name = "token",
	 .value = "TOKEN",
	 .help = "with add: the token itself; other users of this machine may see it"},
	{.name = "no-check", .help = "with add: do not ask the master"},
	{0},
};
static const struct cli_option help_options[] = {
	{.name = "man", .hidden = true, .help = "print the man page"}, {0}};

#define WATCHING "run and watch"
#define WRITING "write job files"
#define MACHINERY "machinery"

const struct command cli_commands[] = {
	{.name = "run",
	 .group = WATCHING,
	 .arguments = optional_file,
	 .options = run_options,
	 .rest = "COMMAND",
	 .to_master = true,
	 .help = "run a job file, or a command, and watch it",
	 .more = "FILE is a job file (.toml, .yaml or .json; default job.toml).  Without a file, the command "
		 "after '--' is the job.  Ctrl-C cancels the run, a second one hurries; the exit code says "
		 "how it ended.",
	 .example = "regatta run job.toml\n"
		    "regatta run -n 4 -- python3 train.py\n"
		    "regatta run job.toml --set roles.trainer.count=8 -d",
	 .run = command_run},
	{.name = "ps",
	 .group = WATCHING,
	 .options = ps_options,
	 .to_master = true,
	 .help = "list the active runs",
	 .example = "regatta ps --all --limit 10",
	 .run = command_ps},
	{.name = "status",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .to_master = true,
	 .help = "show one run: phase, nodes, metrics, verdict",
	 .more = "RUN is the id of a run or any unique prefix of it; without it, the latest run is meant.",
	 .example = "regatta status quickstart",
	 .run = command_status},
	{.name = "logs",
	 .group = WATCHING,
	 .arguments = run_and_node,
	 .options = logs_options,
	 .to_master = true,
	 .help = "print the output of a run's nodes",
	 .more = "Without NODE, the only node, or all nodes with their names in front.  Without RUN, the "
		 "latest run.  The attempts of a node that was started again follow each other.  Standard output and standard error are printed in the order in which they "
		 "came, both on standard output; lines stay whole.  Bytes are printed as the job wrote "
		 "them, except on a terminal, where control characters are escaped.",
	 .example = "regatta logs quickstart trainer-0 --tail 20\n"
		    "regatta logs quickstart -f --stderr",
	 .run = command_logs},
	{.name = "metrics",
	 .group = WATCHING,
	 .arguments = run_and_metric,
	 .options = metrics_options,
	 .to_master = true,
	 .help = "print first, last, best and mean of a run's metrics",
	 .more = "With NAME, that metric only and its course over time.  Without RUN, the latest run.",
	 .example = "regatta metrics quickstart loss\n"
		    "regatta metrics quickstart --host",
	 .run = command_metrics},
	{.name = "events",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .options = events_options,
	 .to_master = true,
	 .help = "print what happened in a run, in order",
	 .example = "regatta events quickstart -f",
	 .run = command_events},
	{.name = "report",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .options = report_options,
	 .to_master = true,
	 .help = "write report.html, metrics.csv and summary.json of a run",
	 .more = "report.html is one file with its charts in it; it fetches nothing and runs no script.  "
		 "Without RUN, the latest run.",
	 .example = "regatta report quickstart\n"
		    "regatta report quickstart -o /tmp/quickstart",
	 .run = command_report},
	{.name = "compare",
	 .group = WATCHING,
	 .arguments = compared_runs,
	 .options = compare_options,
	 .to_master = true,
	 .help = "compare the metrics of runs with those of the first",
	 .more = "Each of RUNS is a run, or a group of repeats: runs joined by commas, the name of a job "
		 "(all its runs that succeeded), or name@lastN.  The first is the baseline.  With two runs "
		 "or more on both sides the difference is tested; exit code 1 if a metric got worse beyond "
		 "the threshold, 3 if there was no metric to compare.",
	 .example = "regatta compare base@last5 new@last5\n"
		    "regatta compare ctr-abcd ctr-efgh --metric loss --threshold 2",
	 .run = command_compare},
	{.name = "resize",
	 .group = WATCHING,
	 .arguments = run_and_sizes,
	 .to_master = true,
	 .help = "change how many nodes of a role a run has",
	 .more = "Between min and max of the job file.  The nodes with the highest index are stopped and "
		 "released, and their output is kept; new nodes start when they are ready.  The role of a "
		 "job without roles is called worker.",
	 .example = "regatta resize ctr trainer=6",
	 .run = command_resize},
	{.name = "kill",
	 .group = WATCHING,
	 .arguments = many_runs,
	 .options = kill_options,
	 .to_master = true,
	 .help = "cancel runs",
	 .more = "Every process of the run gets SIGTERM and, after the job's grace period, SIGKILL.",
	 .example = "regatta kill quickstart --now",
	 .run = command_kill},
	{.name = "cleanup",
	 .group = WATCHING,
	 .arguments = many_runs,
	 .to_master = true,
	 .help = "cancel runs if needed and remove all their files",
	 .example = "regatta cleanup quickstart",
	 .run = command_cleanup},
	{.name = "ui",
	 .group = WATCHING,
	 .options = ui_options,
	 .to_master = true,
	 .help = "open the dashboard in a browser",
	 .more = "Prints a link that works once, within two minutes, and opens it when there is a screen.  "
		 "Callers without a browser use a token: 'regatta token'.",
	 .example = "regatta ui\n"
		    "regatta ui --print --scope read",
	 .run = command_ui},
	{.name = "plan",
	 .group = WRITING,
	 .arguments = optional_file,
	 .options = plan_options,
	 .rest = "COMMAND",
	 .help = "show what a run would use: resources, nodes, environment, limits",
	 .example = "regatta plan job.toml\n"
		    "regatta plan -n 4 -- python3 train.py",
	 .run = command_plan},
	{.name = "convert",
	 .group = WRITING,
	 .arguments = optional_file,
	 .options = plan_options,
	 .rest = "COMMAND",
	 .help = "print a job file in the native form, also one of another system",
	 .more = "Files that are understood besides native ones: descriptors of Anubis (docs/anubis.md).",
	 .example = "regatta convert descriptor.toml > job.toml",
	 .run = command_convert},
	{.name = "init",
	 .group = WRITING,
	 .arguments = optional_strategy,
	 .options = init_options,
	 .help = "write a commented job file to start from",
	 .more = "STRATEGY chooses the kind of job (default single).  A file that exists is never overwritten.",
	 .example = "regatta init pserver -o ctr.toml",
	 .run = command_init},
	{.name = "explain",
	 .group = WRITING,
	 .arguments = optional_key,
	 .help = "explain a key of the job file, or list them all",
	 .example = "regatta explain roles.trainer.count",
	 .run = command_explain},
	{.name = "completion",
	 .group = MACHINERY,
	 .arguments = one_shell,
	 .help = "print the completion script for bash, zsh or fish",
	 .example = "regatta completion bash > ~/.local/share/bash-completion/completions/regatta",
	 .run = command_completion},
	{.name = "master",
	 .group = MACHINERY,
	 .options = master_options,
	 .help = "run the master in the foreground, or stop it",
	 .more = "Every command starts a master in the background when there is none; it exits when idle.  With "
		 "--output json it prints one line when it is ready: url, pin, token and join (the token for hosts).",
	 .example = "regatta master --listen 127.0.0.1:5436\n"
		    "regatta master --listen 0.0.0.0:5436 --output json\n"
		    "regatta master --stop",
	 .run = command_master},
	{.name = "agent",
	 .group = MACHINERY,
	 .options = agent_options,
	 .help = "let this machine join a master as a host",
	 .more = "Stays in the foreground and makes nodes here when the master asks for them (engine = "
		 "\"hosts\").  'regatta master --listen' prints the line to type.  Jobs go on when it is "
		 "stopped; it finds them again when it is started.  It exits when the master refuses it.",
	 .example =
		 "regatta agent --join https://10.0.0.5:5436 --pin sha256//... --token-file join",
	 .run = command_agent},
	{.name = "hosts",
	 .group = MACHINERY,
	 .to_master = true,
	 .options = hosts_options,
	 .help = "list the hosts that have joined the master, or forget one",
	 .more = "A host is free, busy (a run has it) or gone (not connected).",
	 .example = "regatta hosts\n"
		    "regatta hosts --output json\n"
		    "regatta hosts --forget node7",
	 .run = command_hosts},
	{.name = "context",
	 .group = MACHINERY,
	 .arguments = context_action,
	 .options = context_options,
	 .help = "name other masters and choose the one to talk to",
	 .more = "A context is URL, pin and token of a master under a name, in "
		 "$REGATTA_HOME/contexts.  add asks the master before it stores them; show never prints "
		 "the token; use makes one the current context, and 'use local' goes back to your own "
		 "master.  --master and REGATTA_MASTER come before the current context.",
	 .example =
		 "regatta context add lab https://10.0.0.5:5436 --pin sha256//... --token-file -\n"
		 "regatta context use lab\n"
		 "regatta ps --master local",
	 .run = command_context},
	{.name = "token",
	 .group = MACHINERY,
	 .arguments = token_action,
	 .options = token_options,
	 .to_master = true,
	 .help = "make, list or revoke tokens for callers over HTTP",
	 .more = "A token is printed once and kept as a hash.  Your own, for everything, is in $REGATTA_HOME/token.",
	 .example = "regatta token new --scope read --expires 7d --name grafana\n"
		    "regatta token list\n"
		    "regatta token revoke 1f2e3d4c",
	 .run = command_token},
	{.name = "sim",
	 .group = MACHINERY,
	 .options = sim_options,
	 .help = "simulate runs on a faulty cloud and check every invariant",
	 .example = "regatta sim --seeds 1000 --nodes 5",
	 .run = command_sim},
	{.name = "version",
	 .group = MACHINERY,
	 .help = "print the version",
	 .example = "regatta version --output json",
	 .run = command_version},
	{.name = "help",
	 .group = MACHINERY,
	 .arguments = optional_command,
	 .options = help_options,
	 .help = "show help for a command",
	 .example = "regatta help run",
	 .run = command_help},
	{.name = "node-agent",
	 .arguments = node_dir,
	 .options = node_agent_options,
	 .help = "the agent of one node",
	 .run = command_node_agent},
	{.name = "words",
	 .arguments = word_list,
	 .to_master = true,
	 .help = "words for shell completion",
	 .run = command_words},
	{0},
};

const struct command *cli_find_command(struct str name)
{
	for (const struct command *c = cli_commands; c->name; c++)
		if (str_is(name, c->name))
			return c;
	return NULL;
}

/* Names of commands in other tools, and Regatta's name for the same thing. */
static const char *const other_names[][2] = {
	{"abort", "kill"},	{"cancel", "kill"},	 {"delete", "cleanup"},
	{"describe", "status"}, {"exec", "run"},	 {"list", "ps"},
	{"ls", "ps"},		{"remove", "cleanup"},	 {"rm", "cleanup"},
	{"show", "status"},	{"start", "run"},	 {"stop", "kill"},
	{"submit", "run -d"},	{"wait", "logs RUN -f"},
};

const char *cli_suggest_command(const char *name)
{
	const char *names[MAX_COMMANDS];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
		if (strcmp(name, other_names[i][0]) == 0)
			return other_names[i][1];
	for (const struct command *c = cli_commands; c->name && n < MAX_COMMANDS; c++)
		if (c->group)
			names[n++] = c->name;
	return suggest_word(names, n, str_from(name));
}
