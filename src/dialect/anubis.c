/*
 * anubis - the benchmark descriptor of Anubis (Benchmark AI): docs/anubis.md has the table of keys.
 *
 *	[info] execution_engine = "aws.ec2"     engine
 *	[aws.ec2] image, or [env] image         aws.ami
 *	[hardware] instance_type, ...           instance_type, aws.zones
 *	[ml] benchmark_code, args               command, by a shell as there
 *	[[data.sources]], [[output.metrics]]    data, metrics
 */
#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "dialect/internal.h"
#include "fmt/doc.h"
#include "fmt/schema.h"

#define MAX_NAME 40

struct anubis {
	const struct doc *from;
	struct doc *to;
	struct arena *a;
	struct problems *ps;
	bool on_ec2;
};

static bool is_anubis(const struct doc *doc)
{
	return doc->type == DOC_TABLE && !doc_get(doc, "command") && !doc_get(doc, "roles") &&
	       (doc_get(doc, "spec_version") || doc_get(doc, "info")) &&
	       (doc_table(doc, "ml") || doc_table(doc, "hardware") || doc_table(doc, "env"));
}

/* ---- the tree that is made ---- */

/* The entry with this key; NULL if the table has none. */
static const struct doc_entry *entry_of(const struct doc *table, const char *key)
{
	for (size_t i = 0; table && table->type == DOC_TABLE && i < table->table.n; i++)
		if (str_is(table->table.v[i].key, key))
			return &table->table.v[i];
	return NULL;
}

static void place_key(struct doc *table, const char *key, struct doc_pos pos)
{
	struct doc_entry *e = (struct doc_entry *)entry_of(table, key);

	if (e)
		e->key_pos = pos;
}

/* Sets to.key to a copy of from.name, with the positions in the file. */
static void move(struct anubis *x, const struct doc *from, const char *name, struct doc *to,
		 const char *key)
{
	const struct doc_entry *e = entry_of(from, name);

	if (!e)
		return;
	doc_set(x->a, to, str_from(key), doc_copy(x->a, e->value));
	place_key(to, key, e->key_pos);
}

/* The table with this key in the native tree; makes it if it is missing. */
static struct doc *table_of(struct anubis *x, const char *key, struct doc_pos pos)
{
	const struct doc_entry *e = entry_of(x->to, key);

	if (e)
		return e->value;
	struct doc *table = doc_new(x->a, DOC_TABLE);
	table->pos = pos;
	doc_set(x->a, x->to, str_from(key), table);
	place_key(x->to, key, pos);
	return table;
}

/* ---- what cannot be said ---- */

static void refuse(struct anubis *x, const struct doc_entry *e, const char *what, const char *next)
{
	problems_add(x->ps, x->a, e->value->pos.line ? e->value->pos : e->key_pos, "%s: %s", what,
		     next);
}

/* Warns of each key of the table that is not in `known`, which ends with NULL. */
static void warn_of_others(struct anubis *x, const struct doc *table, const char *name,
			   const char *const *known)
{
	for (size_t i = 0; table && table->type == DOC_TABLE && i < table->table.n; i++) {
		const struct doc_entry *e = &table->table.v[i];
		const char *const *k = known;

		while (*k && !str_is(e->key, *k))
			k++;
		if (!*k)
			problems_warn(x->ps, x->a, e->key_pos,
				      arena_printf(x->a,
						   "%s%s%.*s has no meaning here: it is ignored",
						   name, *name ? "." : "", STR_ARG(e->key)));
	}
}

/* ---- the parts of a descriptor ---- */

/* "Train MNIST" -> "train-mnist". */
static const char *native_name(struct str text, struct arena *a)
{
	char *name = arena_alloc(a, MAX_NAME + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n && n < MAX_NAME; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c < 0x80 && isalnum(c))
			name[n++] = (char)tolower(c);
		else if (n && name[n - 1] != '-')
			name[n++] = '-';
	}
	while (n && name[n - 1] == '-')
		n--;
	name[n] = '\0';
	return name;
}

static void take_name(struct anubis *x, const struct doc *info)
{
	const struct doc *labels = doc_table(info, "labels");
	struct str given = doc_str(info, "task_name", doc_str(labels, "task_name", STR("")));
	const char *name = native_name(given, x->a);

	doc_set(x->a, x->to, STR("name"),
		doc_new_str(x->a, *name ? str_from(name) : STR("benchmark")));
}

static void take_engine(struct anubis *x, const struct doc *info)
{
	const struct doc_entry *e = entry_of(info, "execution_engine");

	if (!e || str_is(doc_str(info, "execution_engine", STR("")), "default"))
		return;
	x->on_ec2 = str_is(doc_str(info, "execution_engine", STR("")), "aws.ec2");
	move(x, info, "execution_engine", x->to, "engine");
}

static void take_info(struct anubis *x)
{
	static const char *const known[] = {"description", "task_name", "execution_engine",
					    "scheduling",  "labels",	NULL};
	const struct doc *info = doc_table(x->from, "info");
	const struct doc_entry *labels = entry_of(info, "labels");
	const struct doc_entry *when = entry_of(info, "scheduling");

	take_name(x, info);
	take_engine(x, info);
	if (when && !str_is(doc_str(info, "scheduling", STR("")), "single_run"))
		refuse(x, when, "info.scheduling",
		       "only single_run; start `regatta run` from cron for the others");
	if (labels)
		move(x, info, "labels", table_of(x, "aws", labels->key_pos), "tags");
	warn_of_others(x, info, "info", known);
}

static void take_strategy(struct anubis *x, const struct doc *hardware)
{
	const struct doc_entry *e = entry_of(hardware, "strategy");

	if (e && !str_is(doc_str(hardware, "strategy", STR("")), "single_node"))
		refuse(x, e, "hardware.strategy", "only single_node is in this version");
}

static void take_hardware(struct anubis *x)
{
	static const char *const known[] = {"instance_type",	 "strategy",	"aws_zone_id",
					    "availability_zone", "distributed", NULL};
	const struct doc *hardware = doc_table(x->from, "hardware");
	const struct doc_entry *zone = entry_of(hardware, "availability_zone");
	const struct doc_entry *id = entry_of(hardware, "aws_zone_id");

	move(x, hardware, "instance_type", x->to, "instance_type");
	take_strategy(x, hardware);
	if (zone)
		move(x, hardware, "availability_zone", table_of(x, "aws", zone->key_pos), "zones");
	if (id)
		refuse(x, id, "hardware.aws_zone_id", "write availability_zone");
	warn_of_others(x, hardware, "hardware", known);
}

/* An image is a machine image on EC2, and a container image on other engines. */
static void take_image(struct anubis *x)
{
	const struct doc *env = doc_table(x->from, "env");
	const struct doc *ec2 = doc_table(doc_table(x->from, "aws"), "ec2");
	const struct doc_entry *image = entry_of(ec2, "image");
	const struct doc *of = image ? ec2 : env;

	if (!image)
		image = entry_of(env, "image");
	if (image && x->on_ec2)
		move(x, of, "image", table_of(x, "aws", image->key_pos), "ami");
	else if (image)
		move(x, of, "image", x->to, "image");
	move(x, env, "docker_image", x->to, "image");
}

static void take_env(struct anubis *x)
{
	static const char *const known[] = {"docker_image", "image",	    "vars",
					    "privileged",   "extended_shm", NULL};
	const struct doc *env = doc_table(x->from, "env");

	take_image(x);
	move(x, env, "vars", x->to, "env");
	warn_of_others(x, env, "env", known);
}

/* benchmark_code is a command line for a shell; args are appended to it. */
static void take_command(struct anubis *x, const struct doc *ml)
{
	const struct doc_entry *code = entry_of(ml, "benchmark_code");
	struct str text = doc_str(ml, "benchmark_code", STR("")),
		   args = doc_str(ml, "args", STR(""));
	struct doc *command = doc_new(x->a, DOC_ARRAY);

	if (!code)
		return;
	command->pos = code->value->pos;
	doc_append(x->a, command, doc_new_str(x->a, STR("sh")));
	doc_append(x->a, command, doc_new_str(x->a, STR("-c")));
	doc_append(x->a, command,
		   doc_new_str(x->a, str_from(arena_printf(x->a, "%.*s%s%.*s", STR_ARG(text),
							   args.n ? " " : "", STR_ARG(args)))));
	doc_set(x->a, x->to, STR("command"), command);
	place_key(x->to, "command", code->key_pos);
}

static void take_ml(struct anubis *x)
{
	static const char *const known[] = {"benchmark_code",	 "args",   "framework",
					    "framework_version", "script", NULL};
	const struct doc *ml = doc_table(x->from, "ml");

	take_command(x, ml);
	move(x, doc_table(ml, "script"), "script", x->to, "source");
	warn_of_others(x, ml, "ml", known);
}

/* Each table of a list becomes one table of the native list. */
static void take_sources(struct anubis *x)
{
	static const char *const known[] = {"src", "uri", "path", "md5", "id", NULL};
	const struct doc_entry *e = entry_of(doc_table(x->from, "data"), "sources");
	struct doc *list = doc_new(x->a, DOC_ARRAY);

	if (!e || e->value->type != DOC_ARRAY)
		return;
	list->pos = e->value->pos;
	for (size_t i = 0; i < e->value->array.n; i++) {
		const struct doc *source = e->value->array.v[i];
		struct doc *data = doc_new(x->a, DOC_TABLE);

		data->pos = source->pos;
		move(x, source, "uri", data, "src");
		move(x, source, "src", data, "src");
		move(x, source, "path", data, "path");
		move(x, source, "md5", data, "md5");
		warn_of_others(x, source, "data.sources", known);
		doc_append(x->a, list, data);
	}
	doc_set(x->a, x->to, STR("data"), list);
	place_key(x->to, "data", e->key_pos);
}

static void take_metrics(struct anubis *x)
{
	static const char *const known[] = {"name", "units", "pattern", NULL};
	const struct doc_entry *e = entry_of(doc_table(x->from, "output"), "metrics");

	if (!e || e->value->type != DOC_ARRAY)
		return;
	struct doc *metrics = table_of(x, "metrics", e->key_pos);
	for (size_t i = 0; i < e->value->array.n; i++) {
		const struct doc *given = e->value->array.v[i];
		struct str name = doc_str(given, "name", STR(""));
		struct doc *metric = doc_new(x->a, DOC_TABLE);

		metric->pos = given->pos;
		move(x, given, "pattern", metric, "pattern");
		warn_of_others(x, given, "output.metrics", known);
		doc_set(x->a, metrics, name, metric);
	}
}

/* Copies native keys that have no counterpart in a descriptor; they may stand beside its own. */
static void take_native(struct anubis *x)
{
	static const char *const native[] = {"max_runtime", "max_cost", "timeouts", "master", NULL};

	for (size_t i = 0; native[i]; i++)
		move(x, x->from, native[i], x->to, native[i]);
}

/* Copies the native keys of [aws]; the table [aws.ec2] in it belongs to the descriptor. */
static void take_aws(struct anubis *x)
{
	const struct doc_entry *aws = entry_of(x->from, "aws");

	for (size_t i = 0; aws && aws->value->type == DOC_TABLE && i < aws->value->table.n; i++) {
		const char *key = aws->value->table.v[i].key.p;

		if (!str_is(aws->value->table.v[i].key, "ec2"))
			move(x, aws->value, key, table_of(x, "aws", aws->key_pos), key);
	}
}

static struct doc *convert(const struct doc *doc, struct arena *a, struct problems *ps)
{
	static const char *const known[] = {
		"spec_version", "info",	  "hardware", "env",	     "ml",	 "data", "output",
		"aws",		"master", "timeouts", "max_runtime", "max_cost", NULL};
	struct anubis x = {.from = doc, .to = doc_new(a, DOC_TABLE), .a = a, .ps = ps};
	const struct doc_entry *server = entry_of(doc, "server");

	x.to->pos = doc->pos;
	take_info(&x);
	take_hardware(&x);
	take_env(&x);
	take_ml(&x);
	take_sources(&x);
	take_metrics(&x);
	take_aws(&x);
	take_native(&x);
	if (server)
		refuse(&x, server, "server", "inference servers are not in this version");
	else
		warn_of_others(&x, doc, "", known);
	return x.to;
}

const struct dialect dialect_anubis = {
	.name = "Anubis descriptor",
	.is = is_anubis,
	.convert = convert,
};
