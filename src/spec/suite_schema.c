/* suite_schema - every key of a suite file, once; docs/suites.md has the reference. */
#include "spec/suite.h"

/* In the order of enum suite_order. */
static const char *const order_choices[] = {"interleaved", "as written", NULL};

static const struct field experiment_fields[] = {
	{
		.name = "name",
		.type = FIELD_NAME,
		.offset = offsetof(struct suite_experiment, name),
		.required = true,
		.help = "The name of the experiment, in the report and in `after` of others.",
		.example = "name = \"baseline\"",
	},
	{
		.name = "job",
		.type = FIELD_STR,
		.offset = offsetof(struct suite_experiment, job),
		.help = "Its job file, relative to the suite file. Without it: suite.job.",
		.example = "job = \"old.toml\"",
	},
	{
		.name = "set",
		.type = FIELD_ANY,
		.offset = offsetof(struct suite_experiment, set),
		.help = "Keys of the job that are changed, with their values.",
		.example = "set = { \"env.BATCH\" = \"512\" }",
	},
	{
		.name = "after",
		.type = FIELD_STRS,
		.offset = offsetof(struct suite_experiment, after),
		.help = "Experiments of which all runs must have succeeded before this one starts. If one of "
			"them fails, this one is skipped.",
		.example = "after = [\"prepare\"]",
	},
	{.name = NULL},
};
static const struct schema experiment_schema = {
	.name = "experiment",
	.help = "A single variant, besides those of the matrix.",
	.size = sizeof(struct suite_experiment),
	.pos_offset = offsetof(struct suite_experiment, pos),
	.fields = experiment_fields,
};

#define RUNS(member) offsetof(struct suite, runs.member) - offsetof(struct suite, runs)
static const struct field runs_fields[] = {
	{
		.name = "job",
		.type = FIELD_STR,
		.offset = RUNS(job),
		.pos_offset = RUNS(job_pos),
		.help = "The job file of the matrix, relative to the suite file.",
		.example = "job = \"train.toml\"",
	},
	{
		.name = "repeats",
		.type = FIELD_INT,
		.offset = RUNS(repeats),
		.fallback = "1",
		.min = 1,
		.max = SUITE_MAX_REPEATS,
		.help = "How many runs each variant gets. `regatta suite plan` says what difference so many can "
			"show.",
		.example = "repeats = 5",
	},
	{
		.name = "parallel",
		.type = FIELD_ANY,
		.offset = RUNS(parallel),
		.help = "How many runs at a time, up to 256; 1 without it. \"auto\": as many as this machine has "
			"processors for, at most 16 on other engines.",
		.example = "parallel = 2",
	},
	{
		.name = "order",
		.type = FIELD_CHOICE,
		.offset = RUNS(order),
		.fallback = "interleaved",
		.choices = order_choices,
		.help = "interleaved: the first repeat of every variant, then the second, so that a machine that "
			"gets slower hits all variants alike. as written: all repeats of a variant, then the "
			"next.",
		.example = "order = \"as written\"",
	},
	{
		.name = "on_exit",
		.type = FIELD_STRS,
		.offset = RUNS(on_exit),
		.max = 64,
		.help = "Commands for /bin/sh, run in the directory of the suite file when the last run has ended, "
			"whatever happened. REGATTA_SUITE is the suite, REGATTA_SUITE_DIR its directory, "
			"REGATTA_SUITE_STATE how it ended. One that fails is reported; the next ones run.",
		.example = "on_exit = [\"./publish.sh\"]",
	},
	{
		.name = "max_cost",
		.type = FIELD_FLOAT,
		.offset = RUNS(max_cost),
		.min = 0,
		.max = 1000000000,
		.help = "US dollars that all runs together may cost: then the active ones are cancelled and no "
			"other starts.",
		.example = "max_cost = 50.0",
	},
	{.name = NULL},
};
static const struct schema runs_schema = {
	.name = "suite",
	.help = "What is run, and how.",
	.size = sizeof(((struct suite *)0)->runs),
	.fields = runs_fields,
};

static const struct field report_fields[] = {
	{
		.name = "metric",
		.type = FIELD_STRS,
		.offset = offsetof(struct suite_report_spec, metric),
		.max = 64,
		.help = "The metrics of the report, the most important one first. Without it: all that the runs "
			"have.",
		.example = "metric = \"samples_per_s\"",
	},
	{
		.name = "baseline",
		.type = FIELD_ANY,
		.offset = offsetof(struct suite_report_spec, baseline),
		.help = "What each variant is compared with: values of keys (the variant that has them, and else "
			"the same values as the compared one), or the name of an experiment.",
		.example = "baseline = { \"roles.trainer.count\" = 1 }",
	},
	{.name = NULL},
};
static const struct schema report_schema = {
	.name = "report",
	.help = "What the report is about.",
	.size = sizeof(struct suite_report_spec),
	.fields = report_fields,
};

static const struct field suite_fields[] = {
	{
		.name = "name",
		.type = FIELD_NAME,
		.offset = offsetof(struct suite, name),
		.fallback = "suite",
		.help = "The name of the suite; it is called NAME-xxxx when it runs.",
		.example = "name = \"resnet-scaling\"",
	},
	{
		.name = "suite",
		.type = FIELD_TABLE,
		.offset = offsetof(struct suite, runs),
		.sub = &runs_schema,
		.help = "What is run, and how.",
		.example = "[suite]\njob = \"train.toml\"\nrepeats = 5",
	},
	{
		.name = "matrix",
		.type = FIELD_ANY,
		.offset = offsetof(struct suite, matrix),
		.help = "Keys of the job file, each with a list of values: every combination is a variant.",
		.example = "[matrix]\n\"roles.trainer.count\" = [1, 2, 4, 8]",
	},
	{
		.name = "exclude",
		.type = FIELD_ANY,
		.offset = offsetof(struct suite, exclude),
		.help = "Combinations of the matrix that are left out: a list of tables, each with one value of "
			"some of its keys.",
		.example = "[[exclude]]\n\"roles.trainer.count\" = 8\n\"env.BATCH\" = \"256\"",
	},
	{
		.name = "experiments",
		.type = FIELD_LIST,
		.offset = offsetof(struct suite, experiments),
		.sub = &experiment_schema,
		.max = 1000,
		.help = "Single variants, besides or instead of a matrix.",
		.example = "[[experiments]]\nname = \"baseline\"\njob = \"old.toml\"",
	},
	{
		.name = "report",
		.type = FIELD_TABLE,
		.offset = offsetof(struct suite, report),
		.sub = &report_schema,
		.help = "What the report is about.",
		.example = "[report]\nmetric = \"samples_per_s\"",
	},
	{.name = NULL},
};

const struct schema suite_schema = {
	.name = "suite file",
	.help = "A suite file says which jobs are run, with which values of their keys, how often, and what the "
		"report is about. TOML is its native form; YAML and JSON work too.",
	.size = sizeof(struct suite),
	.fields = suite_fields,
};
