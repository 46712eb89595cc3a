#pragma once
/*
 * job - the job file, checked and with defaults.
 *
 * job_load() takes a document tree (TOML, YAML, JSON: same keys) and reports
 * every problem of it in one go.  The struct and all it points to live in the
 * arena.  The schema table job_schema is the only place that knows the keys:
 * `regatta explain` and docs/job-file.md are printed from it.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "fmt/schema.h"

struct arena;
struct err;

#define JOB_MAX_NODES 10000
#define JOB_MAX_PROCESSES 256 /* of one node */
#define JOB_ENGINE_TABLES 8   /* most tables that engines add to the job file */
#define JOB_DEFAULT_NAME "job"

/* When the roles that wait for a role (`after`) may start. */
enum ready_when { READY_DEFAULT, READY_STARTED, READY_PORT, READY_FINISHED };

/* What happens when a node is lost: its machine is gone, or silent for too long. */
enum on_lost { LOST_FAIL, LOST_REPLACE, LOST_SHRINK, LOST_RESTART };

/* What a role does about failed and lost nodes, and how many it may have. */
struct policy {
	int64_t retries;      /* attempts of a node after its own failure */
	struct ints retry_on; /* exit codes; none: any failure */
	int on_lost;	      /* enum on_lost */
	struct doc_pos on_lost_pos;
	int64_t min, max; /* how many nodes; after job_load never 0 */
};
/* For retry_on, a job that was killed by signal N has the exit code 128 + N, as in a shell. */
#define JOB_SIGNAL_CODE 128

/* The machine of a node where one is rented: used by the AWS engines only.  What a role does not say is
 * as the job says it. */
struct machine_spec {
	struct strs instance_type; /* in the order of preference */
	struct doc_pos instance_type_pos;
	bool spot, spot_set;
	const char *ami, *instance_profile;
	int64_t volume_gb; /* 0: not given */
};

/* What the number of a node's processes is. */
enum processes_by { PROCESSES_NUMBER, PROCESSES_GPUS, PROCESSES_CPUS };

/* How far the nodes of one machine are kept apart. */
enum isolate { ISOLATE_NONE, ISOLATE_NETNS };

/* What follows when a job prints nothing for `stall`. */
enum stall_action { STALL_REPORT, STALL_KILL, STALL_RESTART };

/* What a job gets when its machine will be taken back. */
enum preempt_signal {
	PREEMPT_NONE,
	PREEMPT_TERM,
	PREEMPT_INT,
	PREEMPT_HUP,
	PREEMPT_USR1,
	PREEMPT_USR2
};

/* What a node needs at least: it decides where the node fits. */
struct resources_spec {
	double cpus; /* 0 each: not given */
	struct doc_pos pos;
	int64_t gpus;
	uint64_t memory; /* bytes */
};

/* A directory that is mounted into the containers of all nodes: exactly one of the sources is given. */
struct volume_spec {
	const char *path;
	struct doc_pos pos;
	const char *efs, *nfs, *pvc, *host, *config_map, *secret;
	bool empty;
	bool read_only;
};

struct role {
	const char *name;
	struct doc_pos pos;
	int64_t count;
	struct strs command;
	int64_t port; /* 0 = none; probed on the node's own address */
	struct strs after;
	int ready_when; /* enum ready_when */
	bool service;	/* stopped when the counted roles are done */
	bool service_set;
	struct env_list env;
	uint64_t memory;   /* bytes; 0 = no limit */
	bool pty, pty_set; /* not set: as the job says */
	int64_t processes; /* on each node */
	struct doc_pos processes_pos;
	enum processes_by processes_by; /* other than a number: the facts of the engine tell it */
	struct policy policy;
	struct machine_spec machine;
	const char *image;
	struct strs setup, packages;	  /* after those of the job */
	struct resources_spec *resources; /* NULL: nothing is kept free */
	const struct doc *pod;		  /* patch of its pods; NULL: none */
};

struct metric_spec {
	const char *name;
	struct doc_pos pos;
	const char *pattern;
	int better; /* 0 not given, 1 lower, 2 higher: the values of metrics' enum better */
};

struct data_spec {
	const char *src;
	struct doc_pos pos;
	const char *path;
	bool shard;	    /* each node of the counted roles gets its part of the files */
	const char *sha256; /* of a src that is one file; NULL: not checked */
	const char *md5;    /* the same, where that is all that is known */
	bool unpack;	    /* src is an archive; path is the directory with what is in it */
};
/* Is it an address from which nodes fetch by themselves: https:// or s3://? */
bool input_is_fetched(const char *src);
/* "git+https://host/repository@rev": the client's git fetches it. */
bool input_is_git(const char *src);
/* ERR_INVALID if it is no http:// or https:// URL, or if it has a user or password: nothing would send them, and all
 * who may see the job would read them. */
int web_url_check(const char *url, struct err *err);
/* The path in the image of the job that "docker://path" names; NULL: it names none. */
const char *input_in_image(const char *src);
/* Does the client pack it? */
bool input_is_packed(const char *src);

/* The login for the registry of the images. */
struct registry_spec {
	const char *user;	  /* NULL: none */
	const char *password_env; /* variable of the submitting shell that has the password */
	const char
		*login; /* "ecr": the master asks for the password; NULL: the two above, or none */
};

struct output_spec {
	struct strs keep; /* globs below the work directory, copied to outputs/<node>/ */
	struct doc_pos keep_pos;
	const char *s3;
	struct doc_pos s3_pos;
	int64_t retention_ms; /* how long results stay where they were put */
	uint64_t max_log;     /* bytes stored of each log; 0 = no limit */
};

/* What is told of the end of the run; both may be empty. */
struct finish_hook {
	const char *url; /* the run object is posted to it */
	struct doc_pos url_pos;
	struct strs command; /* the run object is its standard input; on the master's machine */
};

struct timeouts {
	int64_t launch_ms; /* all resources live */
	int64_t boot_ms;   /* the agents of new machines have spoken */
	int64_t gather_ms; /* all agents connected and ready */
	int64_t setup_ms; /* what a node runs before its job; added to gather_ms where there is any */
	int64_t serve_ms;   /* a port answers after its start */
	int64_t grace_ms;   /* between SIGTERM and SIGKILL */
	int64_t collect_ms; /* output stored after the last exit */
	int64_t lease_ms;   /* how long a node goes on without a master */
	int64_t lost_ms; /* how long a node may be silent before it counts as lost; not used with on_lost = fail */
};

struct job {
	const char *name;
	const char *engine;   /* "local" */
	const char *strategy; /* "" = "roles" if the file has roles, else "single" */
	struct doc_pos engine_pos, strategy_pos, source_pos, max_cost_pos, secrets_pos, isolate_pos;
	const char *source; /* NULL and no data = run where the job file is */
	struct strs command;
	int64_t count;
	const char *rendezvous; /* NULL: not given */
	struct doc_pos rendezvous_pos;
	struct policy policy; /* of a job without roles */
	int64_t processes;    /* on each node of a job without roles */
	struct doc_pos processes_pos;
	enum processes_by processes_by;
	int64_t priority; /* in the queue */
	struct machine_spec machine;
	const char *image; /* of roles that have none */
	struct doc_pos image_pos;
	struct registry_spec registry;
	struct doc_pos registry_pos;
	struct strs setup; /* commands of all nodes, before the job starts; each for /bin/sh -c */
	struct strs packages; /* of all nodes, for the machine's package manager, before setup */
	struct doc_pos packages_pos;
	const char *master; /* "auto", "here", "context:NAME": where the master lives */
	struct doc_pos master_pos;
	struct env_list env;
	/* names of variables that are secret whatever their name is */
	struct strs secrets;
	/* patterns of names that the submitting shell passes, beside the usual ones */
	struct strs pass;
	const struct doc *params;	  /* table of scalars; NULL: none */
	bool pty;			  /* the commands get a terminal */
	bool bind_cpus;			  /* several processes of a node share its CPUs */
	int isolate;			  /* enum isolate */
	bool preflight, preflight_set;	  /* nodes try out the network before they start */
	int preempt_signal;		  /* enum preempt_signal */
	int64_t max_runtime_ms;		  /* 0 = no limit */
	int64_t stall_ms;		  /* hang watchdog; 0 = off */
	int stall_action;		  /* enum stall_action */
	double max_cost;		  /* USD; 0 = no limit */
	int64_t sample_ms;		  /* host samples; 0 = none */
	const char *data_prefix;	  /* of metric lines; default "**metrics_data: " */
	struct table_list roles;	  /* struct role */
	struct table_list data;		  /* struct data_spec */
	struct table_list volumes;	  /* struct volume_spec */
	struct resources_spec *resources; /* of roles that have none */
	struct table_list metrics;	  /* struct metric_spec */
	struct output_spec output;
	struct finish_hook on_finish;
	struct timeouts timeouts;
	void *engine_tables[JOB_ENGINE_TABLES]; /* as in struct job_rules; NULL: not in the file */

	/* absolute: what relative paths are relative to; set by the caller after loading */
	const char *base_dir;
};

static inline struct role *job_role(const struct job *j, size_t i)
{
	return &((struct role *)j->roles.v)[i];
}

/* All inputs that are put below the work directory after the packed source: [[data]], and before them a
 * source that nodes fetch, as an entry with the path ".".  Submissions and messages number them so. */
size_t job_data(const struct job *j, struct arena *a, const struct data_spec **ret);
/* Does any node run something before its job starts? */
bool job_sets_up(const struct job *j);
/* The image of a role's nodes; NULL: they run without a container.  role NULL: the job has no roles. */
const char *job_image(const struct job *j, const struct role *role);
/* The keys of a job without roles as a role. */
struct role job_worker(const struct job *j);

/*
 * What the engines add to a job file.  They are above this folder: plan_job_rules() makes it.
 * A table is a row of type FIELD_BOX with name, sub, help and example; its value goes to the same
 * place of engine_tables.
 */
struct job_rules {
	const struct field *tables[JOB_ENGINE_TABLES + 1]; /* ends with NULL */
	/* Adds the problems that strategy and engine find in the job: called by job_load() when it
	 * found problems, so that all problems are shown at once.  names_only: there are problems other than
	 * unknown keys, so only the names of strategy and engine can be checked. */
	void (*check)(const struct job *job, bool names_only, struct arena *a, struct problems *ps);
	/* Adds to a job without problems what its strategy brings. */
	void (*complete)(struct job *job, struct arena *a);
	/* Does the strategy bring the command of this role, if the file has none? */
	bool (*brings_command)(const struct job *job, const char *role);
};

/* The keys of a job file without those of the engines, and with them. */
extern const struct schema job_schema;
const struct schema *job_schema_with(const struct job_rules *rules, struct arena *a);
/* The words of ready_when, by enum ready_when; NULL after the last. */
extern const char *const job_ready_choices[];
/* The words of on_lost, by enum on_lost; NULL after the last. */
extern const char *const job_lost_choices[];

/* Checks keys, types, names, metric patterns' presence, role references, cycles of `after`, counts.
 * On problems: false, and ps holds them all. */
bool job_load(const struct doc *doc, const struct job_rules *rules, struct arena *a,
	      struct job *ret_job, struct problems *ps);

/* Turns the tree of another system into a native one.  A file of several documents is a list of
 * them.  NULL: there is no job in it, and a problem says so. */
typedef struct doc *job_convert_fn(struct doc *doc, struct arena *a, struct problems *ps);

/* Where a setting is written, if not after --set. */
struct set_place {
	const char *text; /* "suite.toml:4:9: variant count=0" */
	bool blamed;	  /* a problem was printed with it */
};

struct job_options {
	const char *const *sets; /* the words after --set: "key.path=value" */
	size_t nsets;
	struct set_place *places; /* one for each; NULL: they stand after --set */
	/* Variables of the command line: they win over those of the job and of its roles. */
	struct env_list env;
	const struct job_rules *rules; /* NULL: no engine adds anything */
	job_convert_fn *convert;       /* NULL: there are only native files */
};
/* Read a file by its extension, apply the words after --set (value read as TOML, else as a string) and the
 * variables of the command line, whose names are valid (variable.h), load it.
 * ERR_INVALID: msg is a summary ("job.toml has 3 problems"), *ret_text the "file:line:col: message" lines (owned by the arena).
 * A problem of a setting is a line "--set key.path: message".  *ret_text is "" if msg is the whole error.
 * *ret_doc is the tree with the settings applied, which is sent to the master.  Warnings of a conversion are
 * lines of *ret_text although it succeeds. */
int job_read(const char *path, const struct job_options *opts, struct arena *a, struct job *ret_job,
	     struct doc **ret_doc, const char **ret_text, struct err *err);
/* The same from argv: `regatta run -n 4 -- python3 train.py`. */
int job_from_argv(const char *name, int64_t count, const char *const *argv, size_t argc,
		  const struct job_options *opts, struct arena *a, struct job *ret_job,
		  struct doc **ret_doc, const char **ret_text, struct err *err);
/* The same from a tree that opts->convert turns into a native one. */
int job_from_doc(struct doc *doc, const struct job_options *opts, struct arena *a,
		 struct job *ret_job, struct doc **ret_doc, const char **ret_text, struct err *err);
/*
 * Prints what plan_check() found in a job that was read with these options: places of the file by line, those of
 * settings as "--set key.path: text", or with their own places.  Changes the order of the problems, and drops those of settings.
 */
void job_print_problems(const struct job_options *opts, struct problems *ps, const char *name,
			struct buf *out);
void job_print_warnings(const struct job_options *opts, struct problems *ps, const char *name,
			struct buf *out);
/* The name of such a job in messages. */
#define JOB_OF_ARGV "command line"
/* A commented starting job file for `regatta init [strategy]`; NULL if the strategy is unknown. */
const char *job_template(const char *strategy);
