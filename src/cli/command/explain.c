/* regatta explain - the meaning of a key of the job file. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "fmt/jsonw.h"
#include "fmt/schema.h"
#include "plan/plan.h"
#include "spec/config.h"

static const char *type_name(enum field_type t)
{
	switch (t) {
	case FIELD_STR:
		return "string";
	case FIELD_NAME:
		return "name";
	case FIELD_BOOL:
		return "boolean";
	case FIELD_INT:
		return "integer";
	case FIELD_FLOAT:
		return "number";
	case FIELD_DURATION:
		return "duration";
	case FIELD_SIZE:
		return "size";
	case FIELD_CHOICE:
		return "choice";
	case FIELD_STRS:
		return "strings";
	case FIELD_INTS:
		return "integers";
	case FIELD_ARGV:
		return "command";
	case FIELD_ENV:
		return "environment";
	case FIELD_TABLE:
	case FIELD_BOX:
	case FIELD_DOC:
		return "table";
	case FIELD_MAP:
		return "named tables";
	case FIELD_LIST:
		return "list of tables";
	case FIELD_ANY:
		break;
	}
	return "value";
}

static void field_json(struct jsonw *w, const struct field *f)
{
	jsonw_open(w, '{');
	jsonw_kz(w, "key", f->name);
	jsonw_kz(w, "type", type_name(f->type));
	jsonw_kbool(w, "required", f->required);
	jsonw_kz(w, "default", f->fallback);
	jsonw_kz(w, "help", f->help);
	jsonw_kz(w, "example", f->example);
	if (f->choices) {
		jsonw_key(w, "choices");
		jsonw_open(w, '[');
		for (size_t i = 0; f->choices[i]; i++)
			jsonw_z(w, f->choices[i]);
		jsonw_close(w);
	}
	if (f->sub) {
		jsonw_key(w, "keys");
		jsonw_open(w, '[');
		for (const struct field *s = f->sub->fields; s->name; s++)
			jsonw_z(w, s->name);
		jsonw_close(w);
	}
	jsonw_close(w);
}

static void explain_json(const struct schema *job, struct str key, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	if (key.n) {
		field_json(&w, schema_find(job, key));
	} else {
		jsonw_open(&w, '[');
		for (const struct field *f = job->fields; f->name; f++)
			field_json(&w, f);
		jsonw_close(&w);
	}
	buf_addc(out, '\n');
}

static bool is_config(struct str key)
{
	return schema_find(&config_schema, key) != NULL;
}

int command_explain(const struct cli_call *c)
{
	struct str key = str_from(call_arg(c, 0) ? call_arg(c, 0) : "");
	CLEANUP(buf_release) struct buf text, json;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	/* The keys of the user's own file are no keys of a job. */
	const struct schema *job = is_config(key) ? &config_schema : plan_job_schema(a);
	struct err err;

	buf_init(&text, CLI_MAX_TEXT);
	buf_init(&json, CLI_MAX_TEXT);
	if (schema_explain(job, key, &text, &err) < 0)
		return cli_fail(&err);
	if (c->output == OUTPUT_TABLE)
		return cli_print(&text);
	/* "roles.trainer" is a table, not a field: only its text is printed. */
	if (key.n && !schema_find(job, key)) {
		struct jsonw w;
		jsonw_init(&w, &json);
		jsonw_open(&w, '{');
		jsonw_kstr(&w, "key", key);
		jsonw_kstr(&w, "text", buf_str(&text));
		jsonw_close(&w);
		buf_addc(&json, '\n');
	} else {
		explain_json(job, key, &json);
	}
	return cli_print(&json);
}
