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
#define MOST_CPUS 100000
#define MOST_GPUS 1024

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
/* In the order of enum preempt_signal. */
static const char *const preempt_choices[] = {"none", "TERM", "INT", "HUP", "USR1", "USR2", NULL};
/* In the order of enum stall_action. */
static const char *const stall_choices[] = {"report", "kill", "restart", NULL};
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

/* -1 and -2 of a FIELD_INT */
static const char *const processes_words[] = {"gpus", "cpus", NULL};

/* Of a role, and of a job without roles. */
#define PROCESSES_FIELD(s)                                                                                         \
	{                                                                                                          \
		.name = "processes_per_node", .type = FIELD_INT, .choices = processes_words,                       \
		.offset = offsetof(struct s, processes),                                                           \
		.pos_offset = offsetof(struct s, processes_pos), .fallback = "1", .min = 1,                        \
		.max = JOB_MAX_PROCESSES,                                                                          \
		.help = "How many processes of the command each node runs, each with its rank "                    \
			"(REGATTA_RANK, RANK), its number on the node (REGATTA_LOCAL_RANK, LOCAL_RANK) "           \
			"and logs of its own. One that fails ends the others; the node has its exit code. "        \
			"\"gpus\" or \"cpus\": as many as `resources` gives each node, or else its share of what " \
			"its machine has when the run is planned.",                                                \
		.example = "processes_per_node = 4",                                                               \
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

static const struct field resources_fields[] = {
	{
		.name = "cpus",
		.type = FIELD_FLOAT,
		.offset = offsetof(struct resources_spec, cpus),
		.min = 0,
		.max = MOST_CPUS,
		.help = "Processors; 0.5 is half of one.",
		.example = "cpus = 4",
	},
	{
		.name = "gpus",
		.type = FIELD_INT,
		.offset = offsetof(struct resources_spec, gpus),
		.min = 0,
		.max = MOST_GPUS,
		.help = "GPUs, of the vendor NVIDIA. On engines local and hosts they are the node's alone, and its "
			"processes find them in CUDA_VISIBLE_DEVICES.",
		.example = "gpus = 1",
	},
	{
		.name = "memory",
		.type = FIELD_SIZE,
		.offset = offsetof(struct resources_spec, memory),
		.min = 0,
		.max = MOST_MEMORY,
		.help = "Memory. The most that a node may use is the key memory of its role.",
		.example = "memory = \"8GiB\"",
	},
	{.name = NULL},
};

static const struct schema resources_schema = {
	.name = "resources",
	.help = "What is kept free for a node.",
	.size = sizeof(struct resources_spec),
	.pos_offset = offsetof(struct resources_spec, pos),
	.fields = resources_fields,
};

/* Of a role, and of a job for the roles that have none. */
#define RESOURCES_FIELD(s)                                                                               \
	{                                                                                                \
		.name = "resources", .type = FIELD_BOX, .offset = offsetof(struct s, resources),         \
		.sub = &resources_schema,                                                                \
		.help = "What is kept free for each node, and so decides where it fits. With it, a run " \
			"of the engines local and hosts waits in the queue until all of its nodes fit: " \
			"on local beside other runs that have it, on hosts on hosts that no run has. "   \
			"The AWS engines take the machines as they are. A role without it has the "      \
			"job's.",                                                                        \
		.example = "resources = { cpus = 4, gpus = 1, memory = \"8GiB\" }",                      \
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
	PROCESSES_FIELD(role),
	{
		.name = "command",
		.type = FIELD_ARGV,
		.offset = offsetof(struct role, command),
		.help = "What each node of this role runs: a list of words, or one string that is split into "
			"words as a shell would (but no shell runs: for pipes and variables write [\"sh\", "
			"\"-c\", \"...\"]). Without it the role runs the job's own command.",
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
	RESOURCES_FIELD(role),
	{
		.name = "pod",
		.type = FIELD_DOC,
		.offset = offsetof(struct role, pod),
		.help = "What the pods of this role have besides, as in a manifest: metadata and spec, merged into "
			"the pod template after that of [kubernetes]. Used by engine kubernetes.",
		.example = "pod = { spec = { hostNetwork = true } }",
	},
	{
		.name = "image",
		.type = FIELD_STR,
		.offset = offsetof(struct role, image),
		.help = "Container image for the nodes of this role. Without it: the job's own image.",
		.example = "image = \"myrepo/ctr:1\"",
	},
	{
		.name = "setup",
		.type = FIELD_STRS,
		.offset = offsetof(struct role, setup),
		.help = "Commands that each node of this role runs before anything starts, after those of the job's own setup.",
		.example = "setup = [\"make -C ops\"]",
	},
	{
		.name = "packages",
		.type = FIELD_STRS,
		.offset = offsetof(struct role, packages),
		.help = "Packages that each node of this role needs, beside those of the job's own packages.",
		.example = "packages = [\"openmpi-bin\"]",
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
		.help = "A file or directory, relative to the job file; where nodes are other machines it is packed and "
			"sent to them. Or https://..., s3://bucket/key or s3://bucket/prefix/ (all objects below), which "
			"each node fetches by itself; what is there when the job is submitted is what all nodes get, and "
			"an object that is changed later is refused. See docs/data.md.",
		.example = "src = \"./criteo\"",
	},
	{
		.name = "path",
		.type = FIELD_STR,
		.offset = offsetof(struct data_spec, path),
		.help = "Where it goes, below the work directory of the node. Without it: the last part of src. On "
			"machines that are made for the run (aws.ec2) it may be absolute.",
		.example = "path = \"data\"",
	},
	{
		.name = "shard",
		.type = FIELD_BOOL,
		.offset = offsetof(struct data_spec, shard),
		.help = "Each node that counts for the finish gets its part of the files or objects: they are "
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
	{
		.name = "unpack",
		.type = FIELD_BOOL,
		.offset = offsetof(struct data_spec, unpack),
		.help = "src is one archive (tar, tar.gz, tar.zst, tar.xz, tar.bz2 or zip, known by its first bytes), and "
			"path the directory into which each node unpacks it; without path that is the name of src "
			"without .tar.gz and the like. An archive with links, or with names that leave the directory, "
			"is refused. The node needs gzip, zstd, xz or bzip2 (or bsdtar), and for zip python3 or bsdtar.",
		.example = "unpack = true",
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

#define VOLUME_SOURCE(member, what, shown)                                                         \
	{                                                                                          \
		.name = #member, .type = FIELD_STR,                                                \
		.offset = offsetof(struct volume_spec, member), .help = (what),                    \
		.example = #member " = \"" shown "\"",                                             \
	}

static const struct field volume_fields[] = {
	{
		.name = "path",
		.type = FIELD_STR,
		.offset = offsetof(struct volume_spec, path),
		.required = true,
		.help = "Where it is mounted, absolute.",
		.example = "path = \"/data\"",
	},
	VOLUME_SOURCE(pvc, "Name of a PersistentVolumeClaim of the namespace.", "datasets"),
	VOLUME_SOURCE(nfs, "An NFS export, server:/path.", "10.0.0.5:/exports/data"),
	VOLUME_SOURCE(
		efs,
		"An EFS file system by its DNS name, with :/path for a part of it; it is mounted as NFS.",
		"fs-0123abcd.efs.us-west-2.amazonaws.com"),
	VOLUME_SOURCE(host, "A directory of the machine that the node is on.", "/home/admin/efs"),
	VOLUME_SOURCE(config_map, "Name of a ConfigMap: a file for each of its keys.", "settings"),
	VOLUME_SOURCE(secret, "Name of a Secret: a file for each of its keys.", "credentials"),
	{
		.name = "empty",
		.type = FIELD_BOOL,
		.offset = offsetof(struct volume_spec, empty),
		.help = "A directory of the node's own, which is gone with it.",
		.example = "empty = true",
	},
	{
		.name = "read_only",
		.type = FIELD_BOOL,
		.offset = offsetof(struct volume_spec, read_only),
		.help = "Nodes cannot write to it.",
		.example = "read_only = true",
	},
	{.name = NULL},
};

static const struct schema volume_schema = {
	.name = "volume",
	.help = "A directory in the containers of all nodes, from one of pvc, nfs, efs, host, "
		"config_map, secret and empty.",
	.size = sizeof(struct volume_spec),
	.pos_offset = offsetof(struct volume_spec, pos),
	.fields = volume_fields,
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
		.help = "Where the directory of the run is copied to when it has ended, as <s3>/<run>/. The bucket must "
			"be one of your own account. Without it: on AWS the bucket of this installation, "
			"otherwise nowhere.",
		.example = "s3 = \"s3://bucket/results/\"",
	},
	{
		.name = "retention",
		.type = FIELD_DURATION,
		.offset = offsetof(struct output_spec, retention_ms),
		.fallback = "30d",
		.min = DAY,
		.max = 10 * LONGEST,
		.help = "How long results stay in the bucket of this installation, in whole days. The rules of "
			"a bucket that you name are your own. On Kubernetes: how long the run's master keeps "
			"results that nobody fetches.",
		.example = "retention = \"90d\"",
	},
	{
		.name = "max_log",
		.type = FIELD_SIZE,
		.offset = offsetof(struct output_spec, max_log),
		.min = 1,
		.max = MOST_MEMORY,
		.help = "The most that is stored of each log: of standard output and of standard error of each "
			"process, in each attempt. What comes after it is read for metrics (except of pods without the "
			"agent) and not stored; the job goes on, and the log ends with a line that says how many "
			"bytes are missing. Without it there is no limit.",
		.example = "max_log = \"1GiB\"",
	},
	{.name = NULL},
};

static const struct field registry_fields[] = {
	{
		.name = "login",
		.type = FIELD_STR,
		.offset = offsetof(struct registry_spec, login),
		.help = "\"ecr\": the master asks AWS for a password shortly before each pull. registry = \"ecr\" is the same.",
		.example = "login = \"ecr\"",
	},
	{
		.name = "user",
		.type = FIELD_STR,
		.offset = offsetof(struct registry_spec, user),
		.help = "Name of the user at the registry.",
		.example = "user = \"me\"",
	},
	{
		.name = "password_env",
		.type = FIELD_STR,
		.offset = offsetof(struct registry_spec, password_env),
		.help = "Variable of the submitting shell that has the password. Its value is a secret: no file of the "
			"run, no log and no job shows it.",
		.example = "password_env = \"HUB_PASSWORD\"",
	},
	{.name = NULL},
};

static const struct schema registry_schema = {
	.name = "registry",
	.fields = registry_fields,
	.size = sizeof(struct registry_spec),
	.help = "Login for the registry of the images.",
};

static const struct schema output_schema = {
	.name = "output",
	.help = "What is kept of a run besides its logs and metrics.",
	.size = sizeof(struct output_spec),
	.fields = output_fields,
};

static const struct field finish_fields[] = {
	{
		.name = "url",
		.type = FIELD_STR,
		.offset = offsetof(struct finish_hook, url),
		.pos_offset = offsetof(struct finish_hook, url_pos),
		.help = "The run object is posted to this address, as JSON: https://..., or http://... "
			"It is tried up to 8 times, until the answer is a status of 200 to 299. All who may see the run "
			"see the address: where it has a token, post from a command, with the token in a variable that is "
			"a secret.",
		.example = "url = \"https://hooks.example.org/runs\"",
	},
	{
		.name = "command",
		.type = FIELD_ARGV,
		.offset = offsetof(struct finish_hook, command),
		.help = "A command on the machine of the master, in the directory of the job file: the run object "
			"is its standard input, without the values of secrets. It has the environment that regatta run "
			"was given, as far as it passes to jobs (docs/environment.md), with the real values of secrets, "
			"and REGATTA_RUN, REGATTA_RUN_DIR and REGATTA_VERDICT. What it prints is in on_finish.log. An "
			"exit code other than 0 is tried again, up to 8 times.",
		.example = "command = [\"./publish.sh\"]",
	},
	{0},
};

static const struct schema finish_schema = {
	.name = "on_finish",
	.help = "What is told when the run has ended.",
	.size = sizeof(struct finish_hook),
	.fields = finish_fields,
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
		.name = "boot",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, boot_ms),
		.fallback = "10m",
		.min = SECOND,
		.max = LONGEST,
		.help = "Where machines are made for the run, the agent of each must be heard within this time; gather "
			"counts from the first word of the last one. Other engines have no use for it.",
		.example = "boot = \"20m\"",
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
		.name = "setup",
		.type = FIELD_DURATION,
		.offset = offsetof(struct timeouts, setup_ms),
		.fallback = "10m",
		.min = SECOND,
		.max = LONGEST,
		.help = "What a node does before its command starts (setup) must be done within this time. A run that "
			"has any waits so much longer than gather says.",
		.example = "setup = \"30m\"",
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
			"roles with gates. pserver: parameter servers and trainers. Those of frameworks are in "
			"docs/frameworks.md. mpi: the command runs once and calls mpirun, without ssh. torch: PyTorch, with torchrun or without. elastic: torch with min to max nodes. tf, jax, mxnet, horovod, paddle, inference. Without it: roles if the "
			"file has roles, else single.",
		.example = "strategy = \"pserver\"",
	},
	{
		.name = "source",
		.type = FIELD_STR,
		.offset = offsetof(struct job, source),
		.pos_offset = offsetof(struct job, source_pos),
		.help = "A file or directory, relative to the job file, that every node gets its own copy of "
			"as its work directory; .git, and what its .gitignore and .regattaignore name, stays away (a line '!NAME' "
			"takes it along). Or https://... or s3://bucket/key, which each node fetches by itself "
			"(an archive, known by .tar, .tar.gz, .tgz, .tar.zst, .tar.xz, .tar.bz2 or .zip at its end, is "
			"unpacked), s3://bucket/prefix/, or git+https://host/repository@REVISION, which the git of this "
			"machine fetches; the run keeps the commit; or docker:///path, a path in the image of the job. "
			"Without source and data the commands of engine "
			"local run where the job file is; on other machines the work directory is empty.",
		.example = "source = \"./ctr\"",
	},
	{
		.name = "command",
		.type = FIELD_ARGV,
		.offset = offsetof(struct job, command),
		.help = "What each node runs: a list of words, or one string that is split into words as a "
			"shell would (but no shell runs: for pipes and variables write [\"sh\", \"-c\", "
			"\"...\"]). With roles it is the command of the roles that have none.",
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
	PROCESSES_FIELD(job),
	{
		.name = "priority",
		.type = FIELD_INT,
		.offset = offsetof(struct job, priority),
		.min = -1000,
		.max = 1000,
		.help = "Place in the queue of a run with `resources`: higher ones come first, runs of the same "
			"priority in the order of their submission. Nobody overtakes the first one.",
		.example = "priority = 10",
	},
	MACHINE_FIELDS(job),
	RESOURCES_FIELD(job),
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
		.name = "pass",
		.type = FIELD_STRS,
		.offset = offsetof(struct job, pass),
		.help = "Variables of the submitting shell that the job gets, beside the usual ones (see "
			"docs/environment.md): names, in which * stands for any characters and ? for one. The job's "
			"env wins over them.",
		.example = "pass = [\"WANDB_*\", \"HF_TOKEN\"]",
	},
	{
		.name = "params",
		.type = FIELD_DOC,
		.offset = offsetof(struct job, params),
		.help = "Parameters of the run: strings, numbers, true or false, shown with it and compared between "
			"runs. ${params.lr} in command, env, data and output stands for the value of lr, "
			"$${params.lr} for the text itself; other dollar signs are left alone. Change them by --set "
			"params.lr=0.1. Not for secrets: everybody sees them.",
		.example = "params = { lr = 0.1, model = \"resnet50\" }",
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
		.name = "bind_cpus",
		.type = FIELD_BOOL,
		.offset = offsetof(struct job, bind_cpus),
		.fallback = "true",
		.help = "With processes_per_node above 1, on a node whose machine has no GPUs, each process is bound to "
			"an equal share of its CPUs. false: every process may use all of them.",
		.example = "bind_cpus = false",
	},
	{
		.name = "rendezvous",
		.type = FIELD_STR,
		.offset = offsetof(struct job, rendezvous),
		.pos_offset = offsetof(struct job, rendezvous_pos),
		.help = "Where the nodes of strategy elastic meet: etcd, which must be installed on the node that "
			"runs it, or c10d, PyTorch's own store. Either is a node of its own, rdzv-0. Without it: etcd.",
		.example = "rendezvous = \"c10d\"",
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
		.name = "preflight",
		.type = FIELD_BOOL,
		.offset = offsetof(struct job, preflight),
		.set_offset = offsetof(struct job, preflight_set),
		.help = "Before the nodes start they try out the network between them: each reaches the others, "
			"with small and with large messages, the clocks agree, /dev/shm and the limit of open files "
			"are large enough. What fails ends the run before anything has started, and names the pair "
			"of nodes. Without it: on where a run has several nodes on machines of their own or with "
			"isolate = \"netns\", else off.",
		.example = "preflight = false",
	},
	{
		.name = "preempt_signal",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct job, preempt_signal),
		.fallback = "none",
		.choices = preempt_choices,
		.help = "Signal that the job gets when the provider announces that it will take the machine back "
			"(a Spot instance: two minutes before). In any case the file that REGATTA_PREEMPT_FILE "
			"names appears then, with the Unix time of the end.",
		.example = "preempt_signal = \"USR1\"",
	},
	{
		.name = "image",
		.type = FIELD_STR,
		.offset = offsetof(struct job, image),
		.pos_offset = offsetof(struct job, image_pos),
		.help = "Container image in which the commands run, by docker or podman of the node's machine: with the "
			"machine's network and GPUs, the node's directories at the same paths, and the user of "
			"the agent. The command follows the image's own entry point. Where the job brings no "
			"files it works in the image's directory. Without image the commands run on the machine; "
			"setup and packages always do.",
		.example = "image = \"myrepo/ctr:1\"",
	},
	{
		.name = "registry",
		.type = FIELD_TABLE,
		.offset = offsetof(struct job, registry),
		.pos_offset = offsetof(struct job, registry_pos),
		.sub = &registry_schema,
		.word = "login",
		.help = "Login for the registry of the images. \"ecr\" is Amazon ECR, with the AWS credentials of whoever "
			"submits, or of the master's instance.",
		.example = "registry = { user = \"me\", password_env = \"HUB_PASSWORD\" }",
	},
	{
		.name = "setup",
		.type = FIELD_STRS,
		.offset = offsetof(struct job, setup),
		.help = "Commands that every node runs once, one after the other, before the command of any node starts: "
			"each by /bin/sh -c, in the work directory, with env and the variables of the submitting shell. "
			"What they print is the beginning of the node's log. One that fails ends the run, which says "
			"which one and with what code. A machine that replaces a lost one runs them again; an attempt "
			"on the same machine does not.",
		.example = "setup = [\"pip install -r requirements.txt\"]",
	},
	{
		.name = "packages",
		.type = FIELD_STRS,
		.offset = offsetof(struct job, packages),
		.pos_offset = offsetof(struct job, packages_pos),
		.help = "Packages that every node installs before setup, by the package manager of its machine (apt-get, "
			"dnf, yum, apk or zypper) and by the names that this one knows. Only where the engine makes the "
			"machines; engines local and hosts install nothing on machines of your own, and say so.",
		.example = "packages = [\"openmpi-bin\", \"libarchive-tools\"]",
	},
	{
		.name = "master",
		.type = FIELD_STR,
		.offset = offsetof(struct job, master),
		.pos_offset = offsetof(struct job, master_pos),
		.fallback = "auto",
		.help = "Where the master of the run lives. here: the one that `regatta run` talks to, which the "
			"nodes must reach. context:NAME: the master of that name (`regatta context`), unless "
			"--master names another. auto: as here for the engines local and hosts; on AWS an "
			"instance of its own, on Kubernetes a pod, which takes the run over and ends itself last.",
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
		.name = "stall",
		.type = FIELD_DURATION,
		.offset = offsetof(struct job, stall_ms),
		.min = 0,
		.max = LONGEST,
		.help = "Hang watchdog: when no rank has printed anything for this long, what the processes of all "
			"nodes do is stored in the run's directory (stall/NODE.txt), the node that differs from "
			"the others is named, and stall_action follows. Without it, or with 0: off.",
		.example = "stall = \"5m\"",
	},
	{
		.name = "stall_action",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct job, stall_action),
		.fallback = "report",
		.choices = stall_choices,
		.help = "What follows when the job is stalled: \"report\" only records it, \"kill\" ends the run as "
			"failed, \"restart\" starts all nodes again, which takes one of their `retries`, and ends "
			"the run when there is none left.",
		.example = "stall_action = \"kill\"",
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
		.name = "volumes",
		.type = FIELD_LIST,
		.offset = offsetof(struct job, volumes),
		.sub = &volume_schema,
		.help = "Directories that are mounted into the containers of all nodes. Used by engine kubernetes.",
		.example = "[[volumes]]\npath = \"/data\"\npvc = \"datasets\"",
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
		.name = "on_finish",
		.type = FIELD_TABLE,
		.offset = offsetof(struct job, on_finish),
		.sub = &finish_schema,
		.help = "Who is told when the run has ended, however it did. The run does not wait for it, and it "
			"does not change the verdict; when it is given up, an event says so.",
		.example = "on_finish = { url = \"https://hooks.example.org/runs\" }",
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
