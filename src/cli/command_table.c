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
static const char *const context_actions[] = {"add",	"list", "ls",	      "show", "use",
					      "remove", "aws",	"kubernetes", NULL};
static const char *const suite_actions[] = {"run",    "plan",	"status", "report",
					    "resume", "cancel", "list",	  NULL};
static const char *const uses[] = {"median", "mean", "last", "best", NULL};
static const char *const paddle_actions[] = {"create", "status", "cleanup", NULL};
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
static const struct cli_argument run_and_tags[] = {
	{.name = "RUN", .required = true, .words = WORDS_RUN},
	{.name = "+TAG|-TAG", .many = true},
	{0}};
static const struct cli_argument run_and_text[] = {
	{.name = "RUN", .required = true, .words = WORDS_RUN},
	{.name = "TEXT", .required = true},
	{0}};
static const struct cli_argument output_and_place[] = {
	{.name = "RUN:PATH", .required = true, .words = WORDS_RUN},
	{.name = "DEST", .required = true, .words = WORDS_FILE},
	{0}};
static const struct cli_argument one_run[] = {{.name = "RUN", .required = true, .words = WORDS_RUN},
					      {0}};
static const struct cli_argument many_runs[] = {{.name = "RUN", .many = true, .words = WORDS_RUN},
						{0}};
static const struct cli_argument compared_runs[] = {
	{.name = "RUNS", .required = true, .many = true, .words = WORDS_RUN}, {0}};
static const struct cli_argument optional_strategy[] = {
	{.name = "STRATEGY", .words = WORDS_STRATEGY}, {0}};
static const struct cli_argument optional_key[] = {{.name = "KEY", .words = WORDS_KEY}, {0}};
static const struct cli_argument one_shell[] = {
	{.name = "SHELL", .required = true, .choices = shells}, {0}};
static const struct cli_argument token_action[] = {
	{.name = "ACTION", .required = true, .choices = token_actions}, {.name = "ID"}, {0}};
static const struct cli_argument suite_action[] = {
	{.name = "ACTION", .required = true, .choices = suite_actions},
	{.name = "FILE|SUITE", .words = WORDS_FILE},
	{0}};
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
#define OPTION_ENV                                                                                 \
	{.name = "env",                                                                            \
	 .value = "NAME=VALUE",                                                                    \
	 .many = true,                                                                             \
	 .help = "a variable of every node, over those of the job file; may be repeated"},         \
	{                                                                                          \
		.name = "env-file", .value = "FILE", .many = true, .words = WORDS_FILE,            \
		.help = "variables from a file of NAME=VALUE lines; --env wins over it"            \
	}
#define OPTION_TAG                                                                                 \
	{                                                                                          \
		.name = "tag", .value = "TAG", .many = true,                                       \
		.help = "a word on the run, to find it by; may be repeated"                        \
	}
#define OPTION_NAME                                                                                \
	{                                                                                          \
		.name = "name", .value = "NAME",                                                   \
		.help = "the job's name; the run is called NAME-xxxx"                              \
	}

#define OPTION_ENGINE                                                                                        \
	{                                                                                                    \
		.name = "engine", .value = "ENGINE",                                                         \
		.help = "where the nodes are: local (default), hosts, aws.ec2, kubernetes; the job's engine" \
	}

#define OPTION_CLUSTER                                                                             \
	{.name = "kube-context",                                                                   \
	 .value = "NAME",                                                                          \
	 .help = "context of the kubeconfig, for engine kubernetes"},                              \
	{                                                                                          \
		.name = "namespace", .value = "NAME",                                              \
		.help = "namespace of the cluster, for engine kubernetes"                          \
	}

#define OPTION_PRICES                                                                                  \
	{                                                                                              \
		.name = "prices", .value = "FILE", .words = WORDS_FILE,                                \
		.help = "prices of machines, CSV with the columns type and usd_per_hour, in place of " \
			"those in the program"                                                         \
	}

#define OPTION_DETACH                                                                              \
	{                                                                                          \
		.name = "detach", .letter = 'd',                                                   \
		.help = "print the run's id and return; the run goes on"                           \
	}
#define OPTION_FOLLOW                                                                              \
	{                                                                                          \
		.name = "follow", .letter = 'f',                                                   \
		.help = "print the job's output while it runs, as 'node | line'"                   \
	}
#define OPTION_EXIT_CODE(more)                                                                     \
	{                                                                                          \
		.name = "exit-code",                                                               \
		.help = "end with the run's exit code; 8 if it has none yet" more                  \
	}

static const struct cli_option run_options[] = {
	OPTION_COUNT,
	OPTION_SET,
	OPTION_ENV,
	OPTION_TAG,
	OPTION_NAME,
	OPTION_ENGINE,
	OPTION_CLUSTER,
	OPTION_PRICES,
	OPTION_DETACH,
	OPTION_FOLLOW,
	{.name = "no-wait",
	 .help = "refuse at once (exit code 5) what would have to wait in the queue: see `resources`"},
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
	{.name = "dry-run", .help = "run nothing: print what 'regatta plan' prints"},
	{0},
};
static const struct cli_option rerun_options[] = {
	OPTION_SET,    OPTION_ENV,    OPTION_TAG,    OPTION_NAME,
	OPTION_ENGINE, OPTION_DETACH, OPTION_FOLLOW, {0},
};
static const struct cli_option attach_options[] = {OPTION_FOLLOW, {0}};
static const struct cli_option wait_options[] = {
	{.name = "job-code",
	 .help = "end with the exit code of the job where it failed: that of the node, 128 + N after signal N"},
	{0},
};
static const struct cli_option status_options[] = {OPTION_EXIT_CODE(""), {0}};
static const struct cli_option suite_options[] = {
	{.name = "detach",
	 .letter = 'd',
	 .help = "with run and resume: print the suite's id and return; the suite goes on"},
	{.name = "tag",
	 .value = "TAG",
	 .many = true,
	 .help = "with run: a word on each of its runs; may be repeated"},
	{.name = "failed", .help = "with resume: start again what has failed, too"},
	{.name = "now", .help = "with cancel: kill the active runs at once"},
	OPTION_PRICES,
	{0},
};
static const struct cli_option plan_options[] = {
	OPTION_COUNT,  OPTION_SET,     OPTION_ENV,    OPTION_NAME,
	OPTION_ENGINE, OPTION_CLUSTER, OPTION_PRICES, {0}};
static const struct cli_option convert_options[] = {
	OPTION_COUNT, OPTION_SET, OPTION_NAME, OPTION_ENGINE, {0}};
static const struct cli_option manifests_options[] = {OPTION_COUNT, OPTION_SET, OPTION_NAME, {0}};
static const struct cli_option paddle_options[] = {
	{.name = "action",
	 .value = "ACTION",
	 .choices = paddle_actions,
	 .help = "create (default), status or cleanup"},
	{.name = "key_name",
	 .value = "NAME",
	 .help = "key pair of the machines; nothing here needs one"},
	{.name = "pem_path",
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "accepted, without an effect: nothing here logs in"},
	{.name = "security_group_id",
	 .value = "ID",
	 .help = "security group of all machines, besides the run's own"},
	{.name = "vpc_id",
	 .value = "ID",
	 .help = "VPC (default: that of the subnet, or the default VPC)"},
	{.name = "subnet_id", .value = "ID", .help = "subnet of the nodes (default: one is made)"},
	{.name = "availability_zone",
	 .value = "ZONE",
	 .help = "zone of the nodes, e.g. us-east-2a"},
	{.name = "pserver_instance_type",
	 .value = "TYPE",
	 .help = "machine type of parameter servers (c5.2xlarge)"},
	{.name = "trainer_instance_type",
	 .value = "TYPE",
	 .help = "machine type of trainers (p2.8xlarge)"},
	{.name = "pserver_image_id",
	 .value = "IMAGE",
	 .help = "container image, or machine image (ami-...)"},
	{.name = "trainer_image_id",
	 .value = "IMAGE",
	 .help = "container image, or machine image (ami-...)"},
	{.name = "pserver_command",
	 .value = "WORDS",
	 .help = "python,vgg.py,batch_size:128 runs 'python vgg.py --batch_size 128 --device CPU'"},
	{.name = "trainer_command",
	 .value = "WORDS",
	 .help = "the same for trainers, with --device GPU"},
	{.name = "docker_image", .value = "IMAGE", .help = "the training image"},
	{.name = "pserver_count", .value = "N", .help = "parameter servers (1)"},
	{.name = "trainer_count", .value = "N", .help = "trainers (1)"},
	{.name = "pserver_port", .value = "PORT", .help = "port of the parameter servers (5436)"},
	{.name = "master_server_port", .value = "PORT", .help = "port of the master (5436)"},
	{.name = "master_server_public_ip",
	 .value = "IP",
	 .help = "the master, for status and cleanup"},
	{.name = "master_docker_image",
	 .value = "IMAGE",
	 .help = "accepted, without an effect: the master needs no container"},
	{.name = "task_name", .value = "NAME", .help = "name of the task: run, tags and TASK_NAME"},
	{.name = "no_clean_up",
	 .value = "BOOL",
	 .help = "accepted, without an effect: machines are always removed"},
	{.name = "metric_data_identifier",
	 .value = "TEXT",
	 .help = "what a line of metrics starts with (\"**metrics_data: \")"},
	{.name = "print", .help = "print the native job file and create nothing"},
	{0},
};
static const struct cli_option ps_options[] = {
	{.name = "all", .letter = 'a', .help = "ended runs too"},
	{.name = "limit",
	 .value = "N",
	 .number = true,
	 .min = 0,
	 .max = 10000,
	 .help = "at most N runs (default 50; 0: all)"},
	{.name = "state",
	 .value = "STATE",
	 .many = true,
	 .help = "only runs in this state: active, ended, running, succeeded, failed, cancelled and so on; may be repeated"},
	{.name = "name",
	 .value = "GLOB",
	 .words = WORDS_RUN,
	 .help = "only runs whose name or id is like this, e.g. 'resnet-*'"},
	{.name = "tag",
	 .value = "TAG",
	 .many = true,
	 .help = "only runs with this tag; with all, if repeated"},
	{.name = "since",
	 .value = "AGE",
	 .help = "only runs that were started in this time, e.g. 2d or 90m"},
	{.name = "engine",
	 .value = "GLOB",
	 .help = "only runs of this engine, e.g. local or 'aws.*'"},
	{.name = "watch",
	 .letter = 'w',
	 .help = "show the list again when it changes, until Ctrl-C"},
	{.name = "params", .help = "with a column of the runs' parameters"},
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
	{.name = "since",
	 .value = "TIME",
	 .help = "only what came in the last e.g. 5m, or since a time such as 2026-01-31T12:00:00Z"},
	{.name = "timestamps",
	 .help = "each line with the time at which the master got it, in UTC"},
	{.name = "grep",
	 .value = "RE",
	 .help = "only lines that have this regular expression (PCRE), of those that --tail leaves"},
	{.name = "node",
	 .value = "GLOB",
	 .words = WORDS_NODE,
	 .help = "only nodes with such names, e.g. 'trainer-*'"},
	{.name = "merge", .help = "all nodes, each line as 'node | line'"},
	{.name = "stdout", .help = "standard output only"},
	{.name = "stderr", .help = "standard error only"},
	{.name = "err", .hidden = true, .help = "the same as --stderr"},
	{.name = "raw",
	 .help = "raw bytes even on a terminal (control characters are escaped otherwise)"},
	OPTION_EXIT_CODE("; with -f its end is waited for"),
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
	{.name = "follow", .letter = 'f', .help = "go on until the run has ended"},
	OPTION_EXIT_CODE("; with -f its end is waited for"),
	{0},
};
static const char *const export_ways[] = {"csv", "tensorboard", "mlflow", NULL};
static const struct cli_argument run_and_place[] = {
	{.name = "RUN", .required = true, .words = WORDS_RUN},
	{.name = "DIR|URL", .words = WORDS_FILE},
	{0}};
static const struct cli_option export_options[] = {
	{.name = "to",
	 .value = "WHERE",
	 .choices = export_ways,
	 .help = "csv or tensorboard: into a directory; mlflow: to a server"},
	{.name = "experiment", .value = "NAME", .help = "of MLflow; without it, that of the job"},
	{0},
};
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
static const struct cli_argument one_node[] = {
	{.name = "RUN", .required = true, .words = WORDS_RUN},
	{.name = "NODE", .required = true, .words = WORDS_NODE},
	{0},
};
static const struct cli_option exec_options[] = {
	{.name = "tty", .letter = 't', .help = "give the command a terminal"}, {0}};

#define OPTION_YES                                                                                 \
	{                                                                                          \
		.name = "yes", .letter = 'y', .help = "do not ask"                                 \
	}
static const struct cli_option kill_options[] = {
	{.name = "now", .help = "SIGKILL at once, without the grace period"},
	{.name = "all", .help = "all active runs, after a question"},
	OPTION_YES,
	{0}};
static const struct cli_option cleanup_options[] = {
	{.name = "all", .help = "all runs, active ones too, after a question"}, OPTION_YES, {0}};
static const struct cli_option prune_options[] = {
	{.name = "older-than", .value = "DURATION", .help = "runs that ended longer ago, e.g. 30d"},
	{.name = "max-size",
	 .value = "SIZE",
	 .help = "the newest runs stay up to SIZE in all, e.g. 10G"},
	{.name = "keep-tagged", .help = "runs with a tag stay"},
	{.name = "dry-run", .help = "remove nothing, only list"},
	{0}};
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
static const struct cli_option doctor_options[] = {
	{.name = "engine", .value = "ENGINE", .help = "the engine (default local)"},
	OPTION_CLUSTER,
	{0},
};
static const struct cli_option gc_options[] = {
	{.name = "engine", .value = "ENGINE", .help = "the engine (default aws.ec2)"},
	{.name = "region",
	 .value = "REGION",
	 .help = "the region, or namespace of a cluster, to look at (default: that of the environment)"},
	{.name = "all-regions", .help = "all regions of the account, or namespaces of the cluster"},
	OPTION_CLUSTER,
	{.name = "install",
	 .value = "ID",
	 .help = "everything of this install, also of runs that may be alive elsewhere"},
	{.name = "dry-run", .help = "remove nothing, only list"},
	{0},
};
static const struct cli_option iam_policy_options[] = {
	{.name = "engine", .value = "ENGINE", .help = "the engine (default aws.ec2)"},
	{.name = "bucket",
	 .value = "NAME",
	 .help = "the bucket that the jobs name in [aws]; without it, buckets that Regatta makes: regatta-*"},
	{.name = "cloudwatch",
	 .value = "NAMESPACE",
	 .help = "the namespace that the jobs name in [aws]; without it, no permission to send metrics"},
	{0},
};
static const struct cli_option node_agent_options[] = {
	{.name = "enrol",
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "ask the master which node this machine is, if it has none yet"},
	{.name = "copy-to",
	 .value = "FILE",
	 .words = WORDS_FILE,
	 .help = "copy this program there"},
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
	{.name = "region",
	 .value = "REGION",
	 .help = "with aws: the region to look at (default: that of the environment)"},
	OPTION_CLUSTER,
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
	{.name = "rerun",
	 .group = WATCHING,
	 .arguments = one_run,
	 .options = rerun_options,
	 .to_master = true,
	 .help = "run a run again, from its record",
	 .more = "The job is that of RUN with all its settings, and its source is the very archive that RUN had; "
		 "what --set, --engine and --name change is said.  Secrets are not in the record: their "
		 "variables must be set here, or given by --env.",
	 .example = "regatta rerun ctr-abcd\n"
		    "regatta rerun ctr-abcd --set env.BATCH=256 --engine aws.ec2 -d",
	 .run = command_rerun},
	{.name = "attach",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .options = attach_options,
	 .to_master = true,
	 .help = "watch a run that was started before, as 'regatta run' does",
	 .more = "Shows the run until its end; the exit code says how it ended.  Ctrl-C leaves the run alone: it "
		 "goes on, and the exit code is 7.  Without RUN, the latest run.",
	 .example = "regatta attach ctr\n"
		    "regatta attach ctr -f",
	 .run = command_attach},
	{.name = "wait",
	 .group = WATCHING,
	 .arguments = many_runs,
	 .options = wait_options,
	 .to_master = true,
	 .help = "wait until runs have ended, and print how",
	 .more = "The exit code is 0 if all have succeeded, else that of the first of them, in the order given, "
		 "that has not.  A run that does not exist is said at once.  Ctrl-C ends the waiting, not the "
		 "runs.  Without RUN, the latest run.",
	 .example = "regatta wait ctr-abcd ctr-efgh\n"
		    "regatta wait ctr --job-code",
	 .run = command_wait},
	{.name = "ps",
	 .group = WATCHING,
	 .options = ps_options,
	 .to_master = true,
	 .help = "list the active runs",
	 .more = "With --state, --name, --tag, --since or --engine also those that have ended, unless --state says "
		 "which.  --watch redraws the list on a terminal; elsewhere it prints the list each time that a run "
		 "comes, goes or changes its state.",
	 .example = "regatta ps --all --limit 10\n"
		    "regatta ps --state failed --since 2d\n"
		    "regatta ps --tag baseline --watch",
	 .run = command_ps},
	{.name = "status",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .options = status_options,
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
	 .more = "Without NODE, the only node, or all nodes with their names in front; of a run of mpirun the node on which "
		 "it runs, which has the output of all: the others have copies of their own part.  Without RUN, the "
		 "latest run.  The attempts of a node that was started again follow each other.  Standard output and standard error are printed in the order in which they "
		 "came, both on standard output; lines stay whole.  Bytes are printed as the job wrote "
		 "them, except on a terminal, where control characters are escaped.",
	 .example = "regatta logs quickstart trainer-0 --tail 20\n"
		    "regatta logs quickstart -f --stderr\n"
		    "regatta logs quickstart -f --since 5m --timestamps\n"
		    "regatta logs quickstart --node 'trainer-*' --grep 'loss|error'",
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
	{.name = "outputs",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .to_master = true,
	 .help = "list the files that a run has kept, with size and SHA-256",
	 .more = "Each name begins with that of its node.  The sums are in outputs.json of the run's directory "
		 "when the run has ended.  Without RUN, the latest run.",
	 .example = "regatta outputs quickstart\n"
		    "regatta outputs quickstart --output json",
	 .run = command_outputs},
	{.name = "export",
	 .group = WATCHING,
	 .arguments = run_and_place,
	 .options = export_options,
	 .to_master = true,
	 .help = "export the metrics of a run for other programs",
	 .more = "csv writes DIR/RUN.csv, tensorboard event files in DIR/RUN/NODE/, mlflow a run with metrics, "
		 "parameters and tags to the server at URL; MLFLOW_TRACKING_TOKEN is its token.  Exporting again "
		 "adds only what is missing, also while the run goes on.",
	 .example = "regatta export ctr --to tensorboard boards/\n"
		    "regatta export ctr --to mlflow http://localhost:5000",
	 .run = command_export},
	{.name = "cp",
	 .group = WATCHING,
	 .arguments = output_and_place,
	 .to_master = true,
	 .help = "copy files that a run has kept to this machine",
	 .more = "PATH is a file or a directory as 'regatta outputs' lists it; without it, all of them.  Into a "
		 "DEST that is a directory it goes under its own name, else DEST is its name; '-' is standard "
		 "output.  Every file is checked by its SHA-256 once the run has ended.  Nothing is written "
		 "outside DEST; a symbolic link that leads out of it is left out.",
	 .example = "regatta cp ctr:trainer-0/model.pt .\n"
		    "regatta cp ctr: results/",
	 .run = command_cp},
	{.name = "suite",
	 .group = WATCHING,
	 .arguments = suite_action,
	 .options = suite_options,
	 .to_master = true,
	 .help = "run a set of jobs with one report: a matrix of values, repeats, experiments",
	 .more = "run FILE: run a suite file and stay with it; plan FILE: what it would run, how long and how dear, "
		 "and what difference its repeats can show; status, report, resume SUITE: one that was started "
		 "(without SUITE, the latest); cancel SUITE; list: all.  Exit code of run and resume: 0 if every run "
		 "succeeded, 1 if one failed.  Ctrl-C cancels the suite, a second one kills its runs; 'resume' goes "
		 "on where it stood.  A suite goes on when its terminal is closed, with -d, and after a restart of "
		 "the machine.  docs/suites.md explains the file.",
	 .example = "regatta suite plan scaling.toml\n"
		    "regatta suite run scaling.toml\n"
		    "regatta suite report scaling",
	 .run = command_suite},
	{.name = "compare",
	 .group = WATCHING,
	 .arguments = compared_runs,
	 .options = compare_options,
	 .to_master = true,
	 .help = "compare the metrics of runs or suites with those of the first",
	 .more = "Each of RUNS is a run, or a group of repeats: runs joined by commas, the name of a job "
		 "(all its runs that succeeded), or name@lastN.  Or all of them are suites (suite:ID): their "
		 "variants are paired by their parameters.  The first is the baseline.  With two runs "
		 "or more on both sides the difference is tested; exit code 1 if a metric got worse beyond "
		 "the threshold, 3 if there was no metric to compare.",
	 .example = "regatta compare base@last5 new@last5\n"
		    "regatta compare ctr-abcd ctr-efgh --metric loss --threshold 2\n"
		    "regatta compare suite:scaling-abcd suite:scaling-efgh",
	 .run = command_compare},
	{.name = "cost",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .to_master = true,
	 .help = "what a run has cost, by role, with the share of time in which its machines were idle",
	 .more = "A machine is idle while it is paid for and the job does not run on it: booting, waiting for "
		 "others, being removed. Machines of your own have no price.",
	 .example = "regatta cost\nregatta cost mnist-a1b2 --output json",
	 .run = command_cost},
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
	{.name = "tag",
	 .group = WATCHING,
	 .arguments = run_and_tags,
	 .to_master = true,
	 .signs = true,
	 .help = "put tags on a run, or take them off",
	 .more = "A tag is one word of at most 64 bytes, and a run has at most 64.  Prints the tags that the run has "
		 "then.  'regatta ps --tag' finds runs by them, 'regatta prune --keep-tagged' keeps them.",
	 .example = "regatta tag ctr +baseline -draft\n"
		    "regatta tag ctr",
	 .run = command_tag},
	{.name = "note",
	 .group = WATCHING,
	 .arguments = run_and_text,
	 .to_master = true,
	 .help = "write a note on a run",
	 .more = "It is kept with its time and shown by 'regatta status', on the page and in the report.",
	 .example = "regatta note ctr \"the second disk was slow\"",
	 .run = command_note},
	{.name = "exec",
	 .group = WATCHING,
	 .arguments = one_node,
	 .options = exec_options,
	 .to_master = true,
	 .rest = "COMMAND",
	 .help = "run a command on a node of a run, beside its job",
	 .more = "With the environment of the job, in its work directory and in its network, as long as the job "
		 "runs.  Standard input, output and error are those of this command, and so is the exit code; "
		 "Ctrl-C goes to the command.  With -t it gets a terminal, and without a command a shell.  It is "
		 "recorded in the events of the run.",
	 .example = "regatta exec ctr trainer-0 -- nvidia-smi\nregatta exec -t ctr trainer-0",
	 .run = command_exec},
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
	 .options = cleanup_options,
	 .to_master = true,
	 .help = "cancel runs if needed and remove all their files",
	 .example = "regatta cleanup quickstart\n"
		    "regatta cleanup --all --yes",
	 .run = command_cleanup},
	{.name = "prune",
	 .group = WATCHING,
	 .options = prune_options,
	 .to_master = true,
	 .help = "remove ended runs that are old, or for which there is no room",
	 .more = "What the options do not say is taken from [retention] in ~/.config/regatta/config.toml "
		 "('regatta explain retention').  Prints the runs that are removed.",
	 .example = "regatta prune --older-than 30d --keep-tagged --dry-run\n"
		    "regatta prune --max-size 10G",
	 .run = command_prune},
	{.name = "ui",
	 .group = WATCHING,
	 .arguments = optional_run,
	 .options = ui_options,
	 .to_master = true,
	 .help = "open the dashboard in a browser",
	 .more = "Prints a link that works once, within two minutes, and opens it when there is a screen.  "
		 "With a RUN that was handed over it is of the master that has the run; if no browser reaches "
		 "that one, because it is in a cluster, the command serves the page itself until Ctrl-C.  "
		 "Callers without a browser use a token: 'regatta token'.",
	 .example = "regatta ui\n"
		    "regatta ui --print --scope read",
	 .run = command_ui},
	{.name = "plan",
	 .group = WRITING,
	 .arguments = optional_file,
	 .options = plan_options,
	 .rest = "COMMAND",
	 .help = "show what a run would use: resources, nodes, environment, limits, inputs",
	 .example = "regatta plan job.toml\n"
		    "regatta plan -n 4 -- python3 train.py",
	 .run = command_plan},
	{.name = "convert",
	 .group = WRITING,
	 .arguments = optional_file,
	 .options = convert_options,
	 .rest = "COMMAND",
	 .help = "print a job file in the native form, also one of another system",
	 .more = "Files that are understood besides native ones: descriptors of Anubis (docs/anubis.md), manifests "
		 "of Kubernetes (docs/kubernetes.md).",
	 .example = "regatta convert descriptor.toml > job.toml",
	 .run = command_convert},
	{.name = "manifests",
	 .group = WRITING,
	 .arguments = optional_file,
	 .options = manifests_options,
	 .rest = "COMMAND",
	 .help = "print the objects of Kubernetes that a job is, for kubectl apply",
	 .more = "YAML documents, made without a cluster and without secrets: a Job for each role and their Service, "
		 "or the object that `as` in [kubernetes] names. Their pods run the commands without Regatta.",
	 .example =
		 "regatta manifests job.toml > all.yaml\n"
		 "regatta manifests job.toml --set kubernetes.as=pytorchjob | kubectl apply -f -",
	 .run = command_manifests},
	{.name = "paddle",
	 .group = WRITING,
	 .options = paddle_options,
	 .to_master = true,
	 .help = "the flags of Paddle's AWS benchmark tool: parameter servers and trainers on EC2",
	 .more = "For who has the old tool's document: docs/paddle.md goes through it. --print shows the job file "
		 "that the flags are, which `regatta run` takes and which can do more.",
	 .example = "regatta paddle --action create --docker_image me/benchmark --trainer_count 2\n"
		    "regatta paddle --action status --master_server_public_ip 203.0.113.7",
	 .run = command_paddle},
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
	{.name = "doctor",
	 .group = MACHINERY,
	 .options = doctor_options,
	 .help = "check whether a run could start, and say what to do if not",
	 .more = "Nothing is made or changed.  Exit code 0 if a run could start; a check that cannot be made is "
		 "a warning.",
	 .example = "regatta doctor\n"
		    "regatta doctor --engine aws.ec2 --output json\n"
		    "regatta doctor --engine kubernetes --namespace team",
	 .run = command_doctor},
	{.name = "gc",
	 .group = MACHINERY,
	 .options = gc_options,
	 .help = "remove what runs have left behind in a cloud or cluster",
	 .more = "Everything that Regatta makes in a cloud or cluster carries tags.  gc removes what carries those of "
		 "this install and belongs to no live run, or is past its time; from a home without runs "
		 "it only lists, unless --install names whose it is.  Buckets and results stay.  Exit code 0 if nothing is left, 1 if something is, "
		 "which is listed.",
	 .example = "regatta gc --dry-run\n"
		    "regatta gc --all-regions --install 1f2e3d4c5b6a7988\n"
		    "regatta gc --engine kubernetes",
	 .run = command_gc},
	{.name = "iam-policy",
	 .group = MACHINERY,
	 .options = iam_policy_options,
	 .help = "print the permissions that an engine needs, as a policy document",
	 .more = "The document is for whoever runs jobs: every call that Regatta can make, bound to what "
		 "carries its tags.  Nodes need no permissions, and a master's instance gets a role with "
		 "its own part.",
	 .example = "regatta iam-policy --engine aws.ec2 > policy.json",
	 .run = command_iam_policy},
	{.name = "context",
	 .group = MACHINERY,
	 .arguments = context_action,
	 .options = context_options,
	 .help = "name other masters and choose the one to talk to",
	 .more = "A context is URL, pin and token of a master under a name, in "
		 "$REGATTA_HOME/contexts.  add asks the master before it stores them; show never prints "
		 "the token; use makes one the current context, and 'use local' goes back to your own "
		 "master.  --master and REGATTA_MASTER come before the current context.  aws finds the "
		 "masters of runs on instances of the account and opens their ports to your address, "
		 "kubernetes those in a namespace of a cluster; both write a context with the name of each "
		 "run, so that 'regatta status RUN' and other commands reach it.",
	 .example =
		 "regatta context add lab https://10.0.0.5:5436 --pin sha256//... --token-file -\n"
		 "regatta context use lab\n"
		 "regatta context aws\n"
		 "regatta context kubernetes --namespace team\n"
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
	{"abort", "kill"},  {"cancel", "kill"}, {"delete", "cleanup"}, {"describe", "status"},
	{"list", "ps"},	    {"ls", "ps"},	{"remove", "cleanup"}, {"rm", "cleanup"},
	{"show", "status"}, {"start", "run"},	{"stop", "kill"},      {"submit", "run -d"},
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
