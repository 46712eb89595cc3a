#include "spec/config.h"

static const struct field retention_fields[] = {
	{
		.name = "older_than",
		.type = FIELD_DURATION,
		.offset = offsetof(struct retention, older_than_ms),
		.help = "Runs that ended longer ago are removed by 'regatta prune'.",
		.example = "older_than = \"30d\"",
	},
	{
		.name = "keep_tagged",
		.type = FIELD_BOOL,
		.offset = offsetof(struct retention, keep_tagged),
		.help = "Runs with a tag stay, whatever their age and size.",
		.example = "keep_tagged = true",
	},
	{
		.name = "max_size",
		.type = FIELD_SIZE,
		.offset = offsetof(struct retention, max_size),
		.help = "The newest runs stay as long as their files are not larger than this in all.",
		.example = "max_size = \"10GiB\"",
	},
	{0},
};

static const struct schema retention_schema = {
	.name = "retention",
	.help = "What 'regatta prune' removes when its options do not say it.",
	.size = sizeof(struct retention),
	.fields = retention_fields,
};

static const struct field config_fields[] = {
	{
		.name = "retention",
		.type = FIELD_TABLE,
		.offset = offsetof(struct user_config, retention),
		.sub = &retention_schema,
		.help = "Which ended runs are removed by 'regatta prune'. It is a key of the user's "
			"~/.config/regatta/config.toml ($XDG_CONFIG_HOME/regatta/config.toml), not of a job file.",
		.example =
			"retention = { older_than = \"30d\", keep_tagged = true, max_size = \"10GiB\" }",
	},
	{0},
};

const struct schema config_schema = {
	.name = "config",
	.help = "The user's own settings.",
	.size = sizeof(struct user_config),
	.fields = config_fields,
};
