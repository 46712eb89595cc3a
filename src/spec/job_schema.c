/*
 * job_schema - every key of a job file, once.
 *
 * Loading, defaults, limits, `regatta explain` and docs/job-file.md read these
 * rows; what a row cannot express (references between roles, names, sums) is
 * checked in job.c.
 */
#include "spec/job.h"

#include "base/arena.h"

#define SECOND INT64_C(1000)
#define DAY (24 * 3600 * SECOND)
#define LONGEST (366 * DAY) /* most of any duration: more is a typing error */
#define MOST_MEMORY (INT64_C(1) << 50)
#define MOST_VOLUME_GB 65536
#define MOST_RETRIES 1000

const char *const job_ready_choices[] = {
	[READY_DEFAULT] = "auto",
	[READY_STARTED] = "started",
	[READY_PORT] = "port",
	[READY_FINISHED] = "finished",
	NULL,
};

const char *const job_lost_choices[] = {
	[LOST_FAIL] = "fail",
	[LOST_REPLACE] = "replace",
	[LOST_SHRINK] = "shrink",
	[LOST_RESTART] = "restart",
	NULL,
};

/* In the order of enum isolate. */
static const char *const isolate_choices[] = {"none", "netns", NULL};
/* In the order of metrics' enum better. */
static const char *const better_choices[] = {"auto", "lower", "higher", NULL};

/* Of a role, and of a job without roles: `s` is the struct that has the policy. */
#define POLICY_FIELDS(s)                                                                                      \
	{                                                                                                     \
		.name = "min",                                                                                \
		.type = FIELD_INT,                                                                            \
		.offset = offsetof(struct s, policy.min),                                                     \
		.min = 1,                                                                                     \
		.max = JOB_MAX_NODES,                                                                         \
		.help = "The fewest nodes with which the run goes on, when some are lost "                    \
			"(on_lost = \"shrink\") or removed (regatta resize). Without it: count.",             \
		.example = "min = 2",                                                                         \
	},                                                                                                    \
		{                                                                                             \
			.name = "max",                                                                        \
			.type = FIELD_INT,                                                                    \
			.offset = offsetof(struct s, policy.max),                                             \
			.min = 1,                                                                             \
			.max = JOB_MAX_NODES,                                                                 \
			.help = "The most nodes that regatta resize may ask for. Without it: count.",         \
			.example = "max = 8",                                                                 \
		},                                                                                            \
		{                                                                                             \
			.name = "retries",                                                                    \
			.type = FIELD_INT,                                                                    \
			.offset = offsetof(struct s, policy.retries),                                         \
			.min = 0,                                                                             \
			.max = MOST_RETRIES,                                                                  \
			.help = "How often a node that failed by itself is started again, as its next "       \
				"attempt, on the same machine. The others go on. Logs and outputs are "       \
				"kept per attempt; REGATTA_ATTEMPT is its number, REGATTA_PREVIOUS the "      \
				"outputs of the previous one. Without it or with 0: a failure ends the run.", \
			.example = "retries = 2",                                                             \
		},                                                                                            \
		{                                                                                             \
			.name = "retry_on",                                                                   \
			.type = FIELD_INTS,                                                                   \
			.offset = offsetof(struct s, policy.retry_on),                                        \
			.min = 1,                                                                             \
			.max = 255,                                                                           \
			.help = "The exit codes after which retries apply; 128 + N for a job that was "       \
				"killed by signal N. Without it: any failure.",                               \
			.example = "retry_on = [75, 137]",                                                    \
		},                                                                                            \
	{                                                                                                     \
		.name = "on_lost", .type = FIELD_CHOICE,                                                      \
		.offset = offsetof(struct s, policy.on_lost),                                                 \
		.pos_offset = offsetof(struct s, policy.on_lost_pos), .fallback = "fail",                     \
		.choices = job_lost_choices,                                                                  \
		.help = "What happens when a node is lost: its machine is gone, or silent for "               \
			"timeouts.lost. fail: the run fails (a silent node has timeouts.lease). "             \
			"replace: its rank starts again elsewhere while the others go on. "                   \
			"shrink: the run goes on without it, unless fewer than min are left. "                \
			"restart: all nodes are stopped and start again. Engine local takes only "            \
			"fail: its nodes are lost only together with this machine.",                          \
		.example = "on_lost = \"replace\"",                                                           \
	}

/* The machine of a node, of a role and of a job. */
#define MACHINE_FIELDS(s)                                                                                              \
	{                                                                                                              \
		.name = "instance_type",                                                                               \
		.type = FIELD_STRS,                                                                                    \
		.offset = offsetof(struct s, machine.instance_type),                                                   \
		.pos_offset = offsetof(struct s, machine.instance_type_pos),                                           \
		.help = "Machine types to try, in this order. Used by the AWS engines; others take the "               \
			"machines as they are.",                                                                       \
		.example = "instance_type = [\"c5.2xlarge\", \"c5a.2xlarge\"]",                                        \
	},                                                                                                             \
		{                                                                                                      \
			.name = "spot",                                                                                \
			.type = FIELD_BOOL,                                                                            \
			.offset = offsetof(struct s, machine.spot),                                                    \
			.set_offset = offsetof(struct s, machine.spot_set),                                            \
			.help = "Take spot capacity: cheaper, and may be taken away. Used by the AWS engines.",        \
			.example = "spot = true",                                                                      \
		},                                                                                                     \
		{                                                                                                      \
			.name = "ami",                                                                                 \
			.type = FIELD_STR,                                                                             \
			.offset = offsetof(struct s, machine.ami),                                                     \
			.help = "Machine image: an id, ssm:NAME, OWNER/name pattern, or one of al2023, ecs, "          \
				"ubuntu-24.04, debian-12, dlami. Without it: as [aws] says. Used by the AWS engines.", \
			.example = "ami = \"ubuntu-24.04\"",                                                           \
		},                                                                                                     \
		{                                                                                                      \
			.name = "volume_gb",                                                                           \
			.type = FIELD_INT,                                                                             \
			.offset = offsetof(struct s, machine.volume_gb),                                               \
			.min = 1,                                                                                      \
			.max = MOST_VOLUME_GB,                                                                         \
			.help = "Size of the root volume. Without it: as [aws] says. Used by the AWS engines.",        \
			.example = "volume_gb = 200",                                                                  \
		},                                                                                                     \
	{                                                                                                              \
		.name = "instance_profile", .type = FIELD_STR,                                                         \
		.offset = offsetof(struct s, machine.instance_profile),                                                \
		.help = "Instance profile of the machines, for jobs that call AWS themselves. Without it: "            \
			"as [aws] says, or none. Used by the AWS engines.",                                            \
		.example = "instance_profile = \"reads-my-bucket\"",                                                   \
	}

static const struct field role_fields[] = {
	{
		.name = "count",
		.type = FIELD_INT,
		.offset = offsetof(struct role, count),
		.fallback = "1",
		.min = 1,
		.max = JOB_MAX_NODES,
		.help = "How many nodes of this role. They are named <role>-0, <role>-1, and so on. "
			"Without it: min, or else 1.",
		.example = "count = 4",
	},
	POLICY_FIELDS(role),
	{
		.name = "command",
		.type = FIELD_ARGV,
		.offset = offsetof(struct role, command),
		.help = "What each node of this role runs: a list of words, or one string that is split into "
			"words as a shell would (nothing is expanded). Without it the role runs the job's "
			"own command.",
		.example = "command = [\"python3\", \"train.py\", \"--epochs\", \"3\"]",
	},
	{
		.name = "port",
		.type = FIELD_INT,
		.offset = offsetof(struct role, port),
		.min = 1,
		.max = 65535,
		.help = "The TCP port that the command listens on, on its node's own address. It is probed: "
			"roles that wait for this one start when it answers. Other nodes find it in their "
			"environment.",
		.example = "port = 5436",
	},
	{
		.name = "after",
		.type = FIELD_STRS,
		.offset = offsetof(struct role, after),
		.help = "Roles that must be ready before this one starts: see their ready_when.",
		.example = "after = [\"store\"]",
	},
	{
		.name = "ready_when",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct role, ready_when),
		.fallback = "auto",
		.choices = job_ready_choices,
		.help = "When a node of this role is ready for the roles that wait for it: its "
			"process was started, its port answers, or it has finished with exit code 0. auto is "
			"port if the role has one, else started.",
		.example = "ready_when = \"finished\"",
	},
	{
		.name = "service",
		.type = FIELD_BOOL,
		.offset = offsetof(struct role, service),
		.set_offset = offsetof(struct role, service_set),
		.help = "A service serves the others and is stopped when they are done. It has no say in the "
			"verdict, unless it fails while it is needed.",
		.example = "service = true",
	},
	{
		.name = "env",
		.type = FIELD_ENV,
		.offset = offsetof(struct role, env),
		.help = "Environment of this role's nodes, on top of the job's env. Names that start with "
			"REGATTA_ are reserved.",
		.example = "env = { OMP_NUM_THREADS = \"4\" }",
	},
	{
		.name = "memory",
		.type = FIELD_SIZE,
		.offset = offsetof(struct role, memory),
		.min = 0,
		.max = MOST_MEMORY,
		.help = "The most memory a node may use, where control groups allow a limit. A node that "
			"goes above it is killed and reported as out of memory. Without it there is no limit.",
		.example = "memory = \"2GiB\"",
	},
	{
		.name = "pty",
		.type = FIELD_BOOL,
		.offset = offsetof(struct role, pty),
		.set_offset = offsetof(struct role, pty_set),
		.help = "The nodes of this role get a terminal, or get none. Without it: as the job's own pty says.",
		.example = "pty = true",
	},
	MACHINE_FIELDS(role),
	{
		.name = "image",
		.type = FIELD_STR,
		.offset = offsetof(struct role, image),
		.help = "Container image to run the command in. Without it the command runs on the host. "
			"Engine local runs no containers and refuses it.",
		.example = "image = \"myrepo/ctr:1\"",
	},
	{.name = NULL},
};

static const struct schema role_schema = {
	.name = "role",
	.help = "One kind of node: how many, what they run, and what they wait for.",
	.size = sizeof(struct role),
	.name_offset = offsetof(struct role, name),
	.pos_offset = offsetof(struct role, pos),
	.fields = role_fields,
};

static const struct field data_fields[] = {
	{
		.name = "src",
		.type = FIELD_STR,
		.offset = offsetof(struct data_spec, src),
		.required = true,
		.help = "A file or directory, relative to the job file. Where nodes are other machines it is packed and "
			"sent to them, and https://... is fetched by each node itself. On AWS also s3://bucket/prefix/.",
		.example = "src = \"./criteo\"",
	},
	{
		.name = "path",
		.type = FIELD_STR,
		.offset = offsetof(struct data_spec, path),
		.help = "Where it goes, below the work directory of the node. Without it: the last part of src.",
		.example = "path = \"data\"",
	},
	{
		.name = "shard",
		.type = FIELD_BOOL,
		.offset = offsetof(struct data_spec, shard),
		.help = "Each node that counts for the finish gets its part of the files: the files are "
			"sorted by name and dealt out by rank. Services get all of them. A node keeps its part "
			"when the role is resized; one that starts later gets the part that is its own by then.",
		.example = "shard = true",
	},
	{
		.name = "sha256",
		.type = FIELD_STR,
		.offset = offsetof(struct data_spec, sha256),
		.help = "The SHA-256 of a src that is one file, as 64 hex digits: other bytes are refused.",
		.example =
			"sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
	},
	{
		.name = "md5",
		.type = FIELD_STR,
		.offset = offsetof(struct data_spec, md5),
		.help = "The MD5 of a src that is one file, as 32 hex digits: other bytes are refused. It finds "
			"damage, not forgery: prefer sha256.",
		.example = "md5 = \"098f6bcd4621d373cade4e832627b4f6\"",
	},
	{.name = NULL},
};

static const struct schema data_schema = {
	.name = "data",
	.help = "Input files that every node finds in its work directory, which is a new one below the run.",
	.size = sizeof(struct data_spec),
	.pos_offset = offsetof(struct data_spec, pos),
	.fields = data_fields,
};

static const struct field metric_fields[] = {
	{
		.name = "pattern",
		.type = FIELD_STR,
		.offset = offsetof(struct metric_spec, pattern),
		.help = "Regular expression (PCRE2) that is tried on every line of output. Without it the metric "
			"comes by metric_prefix lines or the FIFO, and only its direction is said here. The group named "
			"value, or else the first group, is the figure; a group named step is its step, one "
			"named total the number of steps, which gives a progress bar.",
		.example = "pattern = 'loss=(?<value>[-+.0-9eE]+)'",
	},
	{
		.name = "better",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct metric_spec, better),
		.fallback = "auto",
		.choices = better_choices,
		.help = "Which way is better, for the best value in the summary. auto guesses from the name: "
			"loss, errors and times are better lower, all else higher.",
		.example = "better = \"lower\"",
	},
	{.name = NULL},
};

static const struct schema metric_schema = {
	.name = "metric",
	.help = "A figure read from the output. The short form is a bare pattern: metrics.loss = 'loss=([-+.0-9eE]+)'.",
	.size = sizeof(struct metric_spec),
	.name_offset = offsetof(struct metric_spec, name),
	.pos_offset = offsetof(struct metric_spec, pos),
	.fields = metric_fields,
};

static const struct field output_fields[] = {
	{
		.name = "keep",
		.type = FIELD_STRS,
		.offset = offsetof(struct output_spec, keep),
		.pos_offset = offsetof(struct output_spec, keep_pos),
		.help = "Files to keep, as globs below the work directory (** is any depth; the name of a "
			"directory is all of it). They are copied to outputs/<node>/ of the run, beside what "
			"the job wrote to $REGATTA_OUTPUT. Where the job runs in the directory of its file, "
			"only files that changed since the start are kept, and only for a job of one node.",
		.example = "keep = [\"model/**\", \"*.json\"]",
	},
	{
		.name = "s3",
		.type = FIELD_STR,
		.offset = offsetof(struct output_spec, s3),
		.pos_offset = offsetof(struct output_spec, s3_pos),
		.help = "Where to put the results as well. Used by the AWS engines; engine local refuses it.",
		.example = "s3 = \"s3://bucket/results/\"",
	},
	{.name = NULL},
};

static const struct schema output_schema = {
	.name = "output",
	.help = "What is kept of a run besides its logs and metrics.",
	.size = sizeof(struct output_spec),
	.fields = output_fields,
};

static const struct field timeout_fields[] = {
	{
		.name = "launch",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, launch_ms),
		.fallback = "5m",
		.min = SECOND,
		.max = LONGEST,
		.help = "All resources must exist within this time, or the run fails and gives them back.",
		.example = "launch = \"10m\"",
	},
	{
		.name = "gather",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, gather_ms),
		.fallback = "2m",
		.min = SECOND,
		.max = LONGEST,
		.help = "All nodes must be connected and have their inputs within this time; no command starts before.",
		.example = "gather = \"10m\"",
	},
	{
		.name = "serve",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, serve_ms),
		.fallback = "2m",
		.min = SECOND,
		.max = LONGEST,
		.help = "A role's port must answer this soon after its start.",
		.example = "serve = \"30s\"",
	},
	{
		.name = "grace",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, grace_ms),
		.fallback = "10s",
		.min = 0,
		.max = LONGEST,
		.help = "Between SIGTERM and SIGKILL when a node is stopped.",
		.example = "grace = \"1m\"",
	},
	{
		.name = "collect",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, collect_ms),
		.fallback = "5m",
		.min = SECOND,
		.max = LONGEST,
		.help = "Output and kept files must be stored this soon after the last node's end.",
		.example = "collect = \"30m\"",
	},
	{
		.name = "lease",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, lease_ms),
		.fallback = "30m",
		.min = SECOND,
		.max = LONGEST,
		.help = "How long a node goes on without its master before it stops the job, and in a cloud itself.",
		.example = "lease = \"2h\"",
	},
	{
		.name = "lost",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, lost_ms),
		.fallback = "15s",
		.min = SECOND,
		.max = LONGEST,
		.help = "How long a node may be silent before it counts as lost, unless on_lost is fail. The "
			"node stops its job by itself when its master has not answered for so long; "
			"grace and two seconds later its rank starts again.",
		.example = "lost = \"1m\"",
	},
	{
		.name = "boot",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, boot_ms),
		.fallback = "10m",
		.min = SECOND,
		.max = LONGEST,
		.help = "How long a rented machine may take from its creation to the first word of its agent. "
			"timeouts.gather counts from the first word of the last one. Used by the AWS engines.",
		.example = "boot = \"20m\"",
	},
	{.name = NULL},
};

static const struct schema timeouts_schema = {
	.name = "timeouts",
	.help = "How long each phase may take. A run that misses one says which phase and which node.",
	.size = sizeof(struct timeouts),
	.fields = timeout_fields,
};

static const struct field job_fields[] = {
	{
		.name = "name",
		.type = FIELD_NAME,
		.offset = offsetof(struct job, name),
		.fallback = JOB_DEFAULT_NAME,
		.help = "Name of the job. Each run of it is called <name>-<4 letters>.",
		.example = "name = \"ctr\"",
	},
	{
		.name = "engine",
		.type = FIELD_STR,
		.offset = offsetof(struct job, engine),
		.pos_offset = offsetof(struct job, engine_pos),
		.fallback = "local",
		.help = "Where the nodes run. local: processes on this machine, each with an address of its own. hosts: machines that have joined the master.",
		.example = "engine = \"local\"",
	},
	{
		.name = "strategy",
		.type = FIELD_STR,
		.offset = offsetof(struct job, strategy),
		.pos_offset = offsetof(struct job, strategy_pos),
		.help = "How the nodes work together. single: the same command count times. roles: free "
			"roles with gates. pserver: parameter servers and trainers. Without it: roles if the "
			"file has roles, else single.",
		.example = "strategy = \"pserver\"",
	},
	{
		.name = "source",
		.type = FIELD_STR,
		.offset = offsetof(struct job, source),
		.pos_offset = offsetof(struct job, source_pos),
		.help = "A file or directory, relative to the job file, that every node gets its own copy of "
			"as its work directory. Without it and without data the commands of engine local run where the job "
			"file is; on other machines the work directory is empty.",
		.example = "source = \"./ctr\"",
	},
	{
		.name = "command",
		.type = FIELD_ARGV,
		.offset = offsetof(struct job, command),
		.help = "What each node runs: a list of words, or one string that is split into words as a "
			"shell would (nothing is expanded). With roles it is the command of the roles that "
			"have none.",
		.example = "command = [\"python3\", \"train.py\"]",
	},
	{
		.name = "count",
		.type = FIELD_INT,
		.offset = offsetof(struct job, count),
		.fallback = "1",
		.min = 1,
		.max = JOB_MAX_NODES,
		.help = "How many nodes run the command. With roles, each role has its own count, and "
			"its own of the five keys below.",
		.example = "count = 4",
	},
	POLICY_FIELDS(job),
	MACHINE_FIELDS(job),
	{
		.name = "env",
		.type = FIELD_ENV,
		.offset = offsetof(struct job, env),
		.help = "Environment of every node. It wins over what Regatta sets for torch, TensorFlow, "
			"JAX, MPI and Paddle. Names that start with REGATTA_ are reserved.",
		.example = "env = { BATCH = \"512\" }",
	},
	{
		.name = "secrets",
		.type = FIELD_STRS,
		.offset = offsetof(struct job, secrets),
		.pos_offset = offsetof(struct job, secrets_pos),
		.help = "Variables whose values are shown nowhere: the job gets them, everybody else sees ***. "
			"Names that end with _KEY or _TOKEN, or hold PASSWORD or SECRET, need not be listed.",
		.example = "secrets = [\"LICENSE\"]",
	},
	{
		.name = "pty",
		.type = FIELD_BOOL,
		.offset = offsetof(struct job, pty),
		.help = "The command gets a terminal, for programs that show progress or write line by line only "
			"there. Standard output and standard error are one then: both arrive as standard output.",
		.example = "pty = true",
	},
	{
		.name = "isolate",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct job, isolate),
		.pos_offset = offsetof(struct job, isolate_pos),
		.fallback = "none",
		.choices = isolate_choices,
		.help = "How far the nodes of engine local are kept apart. netns: each node has a network "
			"namespace with an address, a host name and an /etc/hosts of its own, behind a bridge; "
			"every node may listen on any port, and they reach each other by name. It takes a "
			"master that runs as root. The nodes reach this machine, and nothing beyond it.",
		.example = "isolate = \"netns\"",
	},
	{
		.name = "image",
		.type = FIELD_STR,
		.offset = offsetof(struct job, image),
		.pos_offset = offsetof(struct job, image_pos),
		.help = "Container image to run the commands in. Without it they run on the host. No engine of "
			"this version runs containers: it is refused.",
		.example = "image = \"myrepo/ctr:1\"",
	},
	{
		.name = "master",
		.type = FIELD_STR,
		.offset = offsetof(struct job, master),
		.pos_offset = offsetof(struct job, master_pos),
		.fallback = "auto",
		.help = "Where the master of the run lives. auto: here for the engines local and hosts, on an "
			"instance of its own on AWS. here: in the calling process's own master, which the nodes "
			"must reach. context:NAME: that of `regatta context`.",
		.example = "master = \"here\"",
	},
	{
		.name = "max_runtime",
		.type = FIELD_DURATION,
		.offset = offsetof(struct job, max_runtime_ms),
		.min = 0,
		.max = LONGEST,
		.help = "The run is stopped and fails when it runs longer. Without it, or with 0: no limit.",
		.example = "max_runtime = \"2h\"",
	},
	{
		.name = "max_cost",
		.type = FIELD_FLOAT,
		.offset = offsetof(struct job, max_cost),
		.pos_offset = offsetof(struct job, max_cost_pos),
		.min = 0,
		.max = 1000000,
		.help = "The run is stopped and fails when it has cost more, in USD. Without it, or with 0: "
			"no limit. Engine local costs nothing.",
		.example = "max_cost = 20.0",
	},
	{
		.name = "sample_every",
		.type = FIELD_DURATION,
		.offset = offsetof(struct job, sample_ms),
		.fallback = "1s",
		.min = 0,
		.max = DAY,
		.help = "How often CPU, memory, network, disk and, where there is one, GPU are sampled on "
			"each node; at least 100ms, or 0 for never.",
		.example = "sample_every = \"5s\"",
	},
	{
		.name = "metric_prefix",
		.type = FIELD_STR,
		.offset = offsetof(struct job, data_prefix),
		.fallback = "**metrics_data: ",
		.help = "A line of output that starts with this is read as name=value,name=value.",
		.example = "metric_prefix = \"METRICS \"",
	},
	{
		.name = "roles",
		.type = FIELD_MAP,
		.offset = offsetof(struct job, roles),
		.sub = &role_schema,
		.help = "The kinds of nodes, by name.",
		.example = "[roles.trainer]\ncount = 4\ncommand = [\"python3\", \"train.py\"]",
	},
	{
		.name = "data",
		.type = FIELD_LIST,
		.offset = offsetof(struct job, data),
		.sub = &data_schema,
		.help = "Input files that every node finds in its work directory.",
		.example = "[[data]]\nsrc = \"./criteo\"\npath = \"data\"",
	},
	{
		.name = "metrics",
		.type = FIELD_MAP,
		.offset = offsetof(struct job, metrics),
		.sub = &metric_schema,
		.keys = KEYS_ANY, /* names of metrics may have '/': checked in job.c */
		.min = 0,
		.max = 64, /* patterns tried on every line of output */
		.help = "Figures to read from the output, by name (letters, digits and any of _./-).",
		.example =
			"[metrics.loss]\npattern = 'loss=(?<value>[-+.0-9eE]+)'\nbetter = \"lower\"",
	},
	{
		.name = "output",
		.type = FIELD_TABLE,
		.offset = offsetof(struct job, output),
		.sub = &output_schema,
		.help = "What is kept of a run besides its logs and metrics.",
		.example = "[output]\nkeep = [\"model/**\"]",
	},
	{
		.name = "timeouts",
		.type = FIELD_TABLE,
		.offset = offsetof(struct job, timeouts),
		.sub = &timeouts_schema,
		.help = "How long each phase may take.",
		.example = "[timeouts]\ngather = \"10m\"",
	},
	{.name = NULL},
};

const struct schema job_schema = {
	.name = "job",
	.help = "A job file says what to run, on how many nodes, and what to keep. TOML is its native form; "
		"YAML and JSON work too.",
	.size = sizeof(struct job),
	.fields = job_fields,
};

static size_t count_fields(const struct field *fields)
{
	size_t n = 0;

	while (fields[n].name)
		n++;
	return n;
}

const struct schema *job_schema_with(const struct job_rules *rules, struct arena *a)
{
	size_t n = count_fields(job_fields);
	struct schema *all = arena_new_of(a, struct schema);
	struct field *fields;

	if (!rules || !rules->tables[0])
		return &job_schema;
	fields = arena_array(a, struct field, n + JOB_ENGINE_TABLES + 1);
	memcpy(fields, job_fields, n * sizeof(fields[0]));
	for (size_t i = 0; rules->tables[i]; i++) {
		fields[n + i] = *rules->tables[i];
		fields[n + i].offset = offsetof(struct job, engine_tables) + i * sizeof(void *);
	}
	*all = job_schema;
	all->fields = fields;
	return all;
}
