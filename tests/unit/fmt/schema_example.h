#pragma once
/* schema_example - a schema with a field of every type, for the tests of loading and of
 * explaining. */
#include "fmt/schema.h"

struct item {
	const char *src;
	struct doc_pos pos;
	bool shard;
};

struct role {
	const char *name;
	struct doc_pos pos;
	int64_t count;
	struct strs command;
	bool spot, spot_set;
};

struct limits {
	int64_t grace_ms;
	const char *note;
};

struct meter {
	const char *title, *name;
};

struct example {
	const char *text;
	const char *name;
	bool flag;
	int64_t count;
	struct doc_pos count_pos;
	double cost;
	int64_t grace_ms;
	uint64_t memory;
	int mode;
	struct strs tags;
	struct strs command;
	struct env_list env;
	struct limits limits;
	struct table_list roles;
	struct table_list meters;
	struct table_list data;
};

static const char *const example_modes[] = {"auto", "lower", "higher", NULL};

static const struct field item_fields[] = {
	{.name = "src",
	 .type = FIELD_STR,
	 .offset = offsetof(struct item, src),
	 .required = true,
	 .help = "Where from.",
	 .example = "src = \"a|b\""},
	{.name = "shard",
	 .type = FIELD_BOOL,
	 .offset = offsetof(struct item, shard),
	 .help = "In parts."},
	{.name = NULL},
};
static const struct schema item_schema = {
	.name = "item",
	.help = "Input files.",
	.size = sizeof(struct item),
	.pos_offset = offsetof(struct item, pos),
	.fields = item_fields,
};

static const struct field role_fields[] = {
	{.name = "count",
	 .type = FIELD_INT,
	 .offset = offsetof(struct role, count),
	 .fallback = "1",
	 .min = 1,
	 .max = 10,
	 .help = "How many nodes. They are named <role>-0, <role>-1, and so on.",
	 .example = "count = 4"},
	{.name = "command",
	 .type = FIELD_ARGV,
	 .offset = offsetof(struct role, command),
	 .required = true,
	 .help = "What each node runs."},
	{.name = "spot",
	 .type = FIELD_BOOL,
	 .offset = offsetof(struct role, spot),
	 .set_offset = offsetof(struct role, spot_set),
	 .help = "Take spot capacity."},
	{.name = NULL},
};
static const struct schema role_schema = {
	.name = "role",
	.help = "One kind of node.",
	.size = sizeof(struct role),
	.name_offset = offsetof(struct role, name),
	.pos_offset = offsetof(struct role, pos),
	.fields = role_fields,
};

static const struct field limits_fields[] = {
	{.name = "grace",
	 .type = FIELD_DURATION,
	 .offset = offsetof(struct limits, grace_ms),
	 .fallback = "10s",
	 .min = 1000,
	 .max = 5400000,
	 .help = "Before the kill."},
	{.name = "note",
	 .type = FIELD_STR,
	 .offset = offsetof(struct limits, note),
	 .required = true,
	 .help = "Why."},
	{.name = NULL},
};
static const struct schema limits_schema = {
	.name = "limits",
	.size = sizeof(struct limits),
	.fields = limits_fields,
};

static const struct field meter_fields[] = {
	{.name = "title",
	 .type = FIELD_STR,
	 .offset = offsetof(struct meter, title),
	 .min = 2,
	 .max = 5,
	 .help = "Shown."},
	{.name = NULL},
};
static const struct schema meter_schema = {
	.name = "meter",
	.size = sizeof(struct meter),
	.name_offset = offsetof(struct meter, name),
	.fields = meter_fields,
};

static const struct field example_fields[] = {
	{.name = "text",
	 .type = FIELD_STR,
	 .offset = offsetof(struct example, text),
	 .fallback = "plain text",
	 .help = "Any text, as in **bold** or a|b."},
	{.name = "name",
	 .type = FIELD_NAME,
	 .offset = offsetof(struct example, name),
	 .required = true,
	 .help = "A name.",
	 .example = "name = \"ctr\""},
	{.name = "flag",
	 .type = FIELD_BOOL,
	 .offset = offsetof(struct example, flag),
	 .fallback = "true",
	 .help = "On or off."},
	{.name = "count",
	 .type = FIELD_INT,
	 .offset = offsetof(struct example, count),
	 .fallback = "3",
	 .pos_offset = offsetof(struct example, count_pos),
	 .min = -5,
	 .max = 100,
	 .help = "How many."},
	{.name = "cost",
	 .type = FIELD_FLOAT,
	 .offset = offsetof(struct example, cost),
	 .fallback = "2.5",
	 .min = 0,
	 .max = 1000,
	 .help = "In USD."},
	{.name = "grace",
	 .type = FIELD_DURATION,
	 .offset = offsetof(struct example, grace_ms),
	 .fallback = "1m30s",
	 .min = 0,
	 .max = 7200000,
	 .help = "How long."},
	{.name = "memory",
	 .type = FIELD_SIZE,
	 .offset = offsetof(struct example, memory),
	 .fallback = "2GiB",
	 .min = 1024,
	 .max = INT64_C(1) << 40,
	 .help = "How much."},
	{.name = "mode",
	 .type = FIELD_CHOICE,
	 .offset = offsetof(struct example, mode),
	 .choices = example_modes,
	 .fallback = "lower",
	 .help = "Which way."},
	{.name = "tags",
	 .type = FIELD_STRS,
	 .offset = offsetof(struct example, tags),
	 .fallback = "[\"a\", \"b\"]",
	 .min = 0,
	 .max = 3,
	 .help = "Words."},
	{.name = "command",
	 .type = FIELD_ARGV,
	 .offset = offsetof(struct example, command),
	 .fallback = "echo 'hello world'",
	 .min = 1,
	 .max = 0,
	 .help = "What runs."},
	{.name = "env",
	 .type = FIELD_ENV,
	 .offset = offsetof(struct example, env),
	 .fallback = "{ A = \"1\" }",
	 .min = 0,
	 .max = 5,
	 .help = "Environment."},
	{.name = "limits",
	 .type = FIELD_TABLE,
	 .offset = offsetof(struct example, limits),
	 .sub = &limits_schema,
	 .min = 0,
	 .max = 3,
	 .help = "Limits of all kinds.",
	 .example = "[limits]\nnote = \"x\""},
	{.name = "roles",
	 .type = FIELD_MAP,
	 .offset = offsetof(struct example, roles),
	 .sub = &role_schema,
	 .help = "The kinds of nodes, by name.",
	 .example = "[roles.trainer]\ncommand = \"true\""},
	{.name = "meters",
	 .type = FIELD_MAP,
	 .offset = offsetof(struct example, meters),
	 .sub = &meter_schema,
	 .keys = KEYS_METRIC,
	 .help = "Figures."},
	{.name = "data",
	 .type = FIELD_LIST,
	 .offset = offsetof(struct example, data),
	 .sub = &item_schema,
	 .min = 0,
	 .max = 3,
	 .help = "Inputs."},
	{.name = NULL},
};
static const struct schema example_schema = {
	.name = "example",
	.help = "A file with everything.",
	.size = sizeof(struct example),
	.fields = example_fields,
};
