/*
 * anubis - the benchmark descriptor of Anubis (Benchmark AI): docs/anubis.md has the table of keys.
 *
 *	[info] execution_engine = "aws.ec2"     engine
 *	[aws.ec2] image, or [env] image         aws.ami
 *	[hardware] instance_type, ...           instance_type, aws.zones
 *	[ml] benchmark_code, args               command, by a shell as there
 *	[[data.sources]], [[output.metrics]]    data, metrics
 *	[hardware] strategy = "horovod"         strategy, count, processes_per_node
 *	[hardware] strategy = "inference"       strategy, and [server] as roles.server beside roles.client
 */
#include <string.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/str.h"
#include "dialect/internal.h"
#include "fmt/doc.h"
#include "fmt/schema.h"

struct anubis {
	const struct doc *from;
	struct doc *to;
	struct arena *a;
	struct problems *ps;
	bool on_ec2, inference;
};

#define DEFAULT_INSTANCES 2

static bool is_anubis(const struct doc *doc)
{
	return doc->type == DOC_TABLE && !doc_get(doc, "command") && !doc_get(doc, "roles") &&
	       (doc_get(doc, "spec_version") || doc_get(doc, "info")) &&
	       (doc_table(doc, "ml") || doc_table(doc, "hardware") || doc_table(doc, "env"));
}

/* ---- the tree that is made ---- */

/* Sets to.key to a copy of from.name, with the positions in the file. */
static void move(struct anubis *x, const struct doc *from, const char *name, struct doc *to,
		 const char *key)
{
	const struct doc_entry *e = dialect_entry(from, name);

	if (!e)
		return;
	doc_set(x->a, to, str_from(key), doc_copy(x->a, e->value));
	dialect_place_key(to, key, e->key_pos);
}

/* The table with this key in the native tree; makes it if it is missing. */
static struct doc *table_of(struct anubis *x, const char *key, struct doc_pos pos)
{
	const struct doc_entry *e = dialect_entry(x->to, key);

	if (e)
		return e->value;
	struct doc *table = doc_new(x->a, DOC_TABLE);
	table->pos = pos;
	doc_set(x->a, x->to, str_from(key), table);
	dialect_place_key(x->to, key, pos);
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

static void take_name(struct anubis *x, const struct doc *info)
{
	const struct doc *labels = doc_table(info, "labels");
	struct str given = doc_str(info, "task_name", doc_str(labels, "task_name", STR("")));
	const char *name = dialect_job_name(given, x->a);

	doc_set(x->a, x->to, STR("name"),
		doc_new_str(x->a, *name ? str_from(name) : STR("benchmark")));
}

static void take_engine(struct anubis *x, const struct doc *info)
{
	const struct doc_entry *e = dialect_entry(info, "execution_engine");

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
	const struct doc_entry *labels = dialect_entry(info, "labels");
	const struct doc_entry *when = dialect_entry(info, "scheduling");

	take_name(x, info);
	take_engine(x, info);
	if (when && !str_is(doc_str(info, "scheduling", STR("")), "single_run"))
		refuse(x, when, "info.scheduling",
		       "only single_run; start `regatta run` from cron for the others");
	if (labels)
		move(x, info, "labels", table_of(x, "aws", labels->key_pos), "tags");
	warn_of_others(x, info, "info", known);
}

static void set_text(struct anubis *x, struct doc *to, const char *key, const char *text,
		     struct doc_pos pos)
{
	struct doc *value = doc_new_str(x->a, str_from(text));

	value->pos = pos;
	doc_set(x->a, to, str_from(key), value);
	dialect_place_key(to, key, pos);
}

/* processes_per_instance is a text there: "1", "4" or "gpus". */
static void take_processes(struct anubis *x, const struct doc *distributed)
{
	const struct doc_entry *e = dialect_entry(distributed, "processes_per_instance");
	int64_t n;

	move(x, distributed, "processes_per_instance", x->to, "processes_per_node");
	if (e && e->value->type == DOC_STRING && str_to_i64(e->value->s, &n)) {
		struct doc *number = doc_new_int(x->a, n);

		number->pos = e->value->pos;
		doc_set(x->a, x->to, STR("processes_per_node"), number);
	}
}

/* Horovod's ranks on several instances; without a number there are two. */
static void take_horovod(struct anubis *x, const struct doc *hardware, const struct doc_entry *e)
{
	static const char *const known[] = {"num_instances", "processes_per_instance", NULL};
	const struct doc *distributed = doc_table(hardware, "distributed");

	set_text(x, x->to, "strategy", "horovod", e->value->pos);
	doc_set(x->a, x->to, STR("count"), doc_new_int(x->a, DEFAULT_INSTANCES));
	dialect_place_key(x->to, "count", e->key_pos);
	move(x, distributed, "num_instances", x->to, "count");
	take_processes(x, distributed);
	warn_of_others(x, distributed, "hardware.distributed", known);
}

static void take_strategy(struct anubis *x, const struct doc *hardware)
{
	const struct doc_entry *e = dialect_entry(hardware, "strategy");
	struct str name = doc_str(hardware, "strategy", STR(""));

	if (!e)
		return;
	x->inference = str_is(name, "inference");
	if (str_is(name, "horovod"))
		take_horovod(x, hardware, e);
	else if (x->inference)
		set_text(x, x->to, "strategy", "inference", e->value->pos);
	else if (!str_is(name, "single_node"))
		refuse(x, e, "hardware.strategy", "write single_node, horovod or inference");
}

static void take_hardware(struct anubis *x)
{
	static const char *const known[] = {"instance_type",	 "strategy",	"aws_zone_id",
					    "availability_zone", "distributed", NULL};
	const struct doc *hardware = doc_table(x->from, "hardware");
	const struct doc_entry *zone = dialect_entry(hardware, "availability_zone");
	const struct doc_entry *id = dialect_entry(hardware, "aws_zone_id");

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
	const struct doc_entry *image = dialect_entry(ec2, "image");
	const struct doc *of = image ? ec2 : env;

	if (!image)
		image = dialect_entry(env, "image");
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

/* from.code is a command line for a shell; from.args are appended to it. */
static void take_command(struct anubis *x, const struct doc *from, const char *code_key,
			 const char *args_key, struct doc *to)
{
	const struct doc_entry *code = dialect_entry(from, code_key);
	struct str text = doc_str(from, code_key, STR("")), args = doc_str(from, args_key, STR(""));
	struct doc *command = doc_new(x->a, DOC_ARRAY);

	if (!code)
		return;
	command->pos = code->value->pos;
	doc_append(x->a, command, doc_new_str(x->a, STR("sh")));
	doc_append(x->a, command, doc_new_str(x->a, STR("-c")));
	doc_append(x->a, command,
		   doc_new_str(x->a, str_from(arena_printf(x->a, "%.*s%s%.*s", STR_ARG(text),
							   args.n ? " " : "", STR_ARG(args)))));
	doc_set(x->a, to, STR("command"), command);
	dialect_place_key(to, "command", code->key_pos);
}

static void take_ml(struct anubis *x)
{
	static const char *const known[] = {"benchmark_code",	 "args",   "framework",
					    "framework_version", "script", NULL};
	const struct doc *ml = doc_table(x->from, "ml");

	take_command(x, ml, "benchmark_code", "args", x->to);
	move(x, doc_table(ml, "script"), "script", x->to, "source");
	warn_of_others(x, ml, "ml", known);
}

/* Below the home directory is below the work directory here; without slashes at the end. */
static struct str plain_path(const struct doc *source)
{
	struct str path = doc_str(source, "path", STR(""));

	if (str_starts(path, STR("~/")))
		path = (struct str){path.p + 2, path.n - 2};
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return path;
}

static bool is_shared(const struct doc *list, const struct doc *source)
{
	for (size_t i = 0; i < list->array.n; i++)
		if (list->array.v[i] != source &&
		    str_eq(plain_path(list->array.v[i]), plain_path(source)))
			return true;
	return false;
}

/* There `path` is where the source is mounted.  It is a directory that the source goes into, under its own name,
 * if a slash ends it or if several sources share it. */
static void take_path(struct anubis *x, const struct doc *list, const struct doc *source,
		      struct doc *data)
{
	const struct doc_entry *e = dialect_entry(source, "path");
	struct str src = doc_str(data, "src", STR("")), path = plain_path(source);
	bool shared = is_shared(list, source);

	if (!e || e->value->type != DOC_STRING) {
		move(x, source, "path", data, "path");
		return;
	}
	if (shared || (str_ends(e->value->s, STR("/")) && !str_ends(src, STR("/"))))
		path = str_from(arena_printf(x->a, "%.*s/%.*s", STR_ARG(path),
					     STR_ARG(path_source_name(src))));
	struct doc *made = doc_new_str(x->a, path);

	made->pos = e->value->pos;
	doc_set(x->a, data, STR("path"), made);
	dialect_place_key(data, "path", e->key_pos);
}

/* A table of the list `name` as one of the native list of data. */
static struct doc *take_source(struct anubis *x, const struct doc *list, size_t i, const char *name)
{
	const struct doc *source = list->array.v[i];
	static const char *const known[] = {"src", "uri", "path", "md5", "id", NULL};
	struct doc *data = doc_new(x->a, DOC_TABLE);

	data->pos = source->pos;
	move(x, source, "uri", data, "src");
	move(x, source, "src", data, "src");
	take_path(x, list, source, data);
	move(x, source, "md5", data, "md5");
	warn_of_others(x, source, name, known);
	return data;
}

static void take_sources(struct anubis *x)
{
	const struct doc_entry *e = dialect_entry(doc_table(x->from, "data"), "sources");
	struct doc *list = doc_new(x->a, DOC_ARRAY);

	if (!e || e->value->type != DOC_ARRAY)
		return;
	list->pos = e->value->pos;
	for (size_t i = 0; i < e->value->array.n; i++)
		doc_append(x->a, list, take_source(x, e->value, i, "data.sources"));
	doc_set(x->a, x->to, STR("data"), list);
	dialect_place_key(x->to, "data", e->key_pos);
}

static void take_metrics(struct anubis *x)
{
	static const char *const known[] = {"name", "units", "pattern", NULL};
	const struct doc_entry *e = dialect_entry(doc_table(x->from, "output"), "metrics");

	if (!e || e->value->type != DOC_ARRAY)
		return;
	for (size_t i = 0; i < e->value->array.n; i++) {
		const struct doc *given = e->value->array.v[i];
		struct str name = doc_str(given, "name", STR(""));
		struct doc *metric = doc_new(x->a, DOC_TABLE);

		if (given->type != DOC_TABLE)
			continue; /* the name of one that the benchmark emits by itself */
		metric->pos = given->pos;
		move(x, given, "pattern", metric, "pattern");
		warn_of_others(x, given, "output.metrics", known);
		doc_set(x->a, table_of(x, "metrics", e->key_pos), name, metric);
	}
}

/* ---- inference: the server, and the benchmark as its client ---- */

/* The port of the readiness probe, or the first, is probed; clients get the numbers of all. */
static void take_ports(struct anubis *x, const struct doc *env, struct doc *server,
		       struct doc *client)
{
	const struct doc_entry *ports = dialect_entry(env, "ports");
	const struct doc *probe = doc_table(env, "readiness_probe");
	const struct doc_entry *path = dialect_entry(probe, "path");
	struct doc *names = doc_new(x->a, DOC_TABLE);

	for (size_t i = 0; ports && ports->value->type == DOC_ARRAY && i < ports->value->array.n;
	     i++) {
		const struct doc *port = ports->value->array.v[i];

		if (i == 0) {
			doc_set(x->a, server, STR("port"), doc_copy(x->a, port));
			dialect_place_key(server, "port", ports->key_pos);
		}
		doc_set(x->a, names,
			str_from(arena_printf(x->a, "INFERENCE_SERVER_PORT_%zu", i + 1)),
			doc_copy(x->a, port));
	}
	move(x, probe, "port", server, "port");
	if (ports && ports->value->type == DOC_ARRAY && ports->value->array.n > 1)
		doc_set(x->a, client, STR("env"), names);
	if (path)
		problems_warn(
			x->ps, x->a, path->key_pos,
			"server.env.readiness_probe.path is not asked for: the server is ready when its "
			"port answers");
}

/* The models are data like the benchmark's own. */
static void take_models(struct anubis *x, const struct doc_entry *models)
{
	const struct doc_entry *data = dialect_entry(x->to, "data");

	if (!models || models->value->type != DOC_ARRAY)
		return;
	struct doc *list = data ? data->value : doc_new(x->a, DOC_ARRAY);

	if (!data)
		doc_set(x->a, x->to, STR("data"), list);
	for (size_t i = 0; i < models->value->array.n; i++)
		doc_append(x->a, list, take_source(x, models->value, i, "server.models"));
}

static void take_server(struct anubis *x, const struct doc_entry *e)
{
	static const char *const known[] = {"hardware", "env", "models", "output", NULL};
	const struct doc *env = doc_table(e->value, "env");
	struct doc *roles = table_of(x, "roles", e->key_pos), *server = doc_new(x->a, DOC_TABLE),
		   *client = doc_new(x->a, DOC_TABLE);

	server->pos = client->pos = e->value->pos;
	doc_set(x->a, roles, STR("server"), server);
	doc_set(x->a, roles, STR("client"), client);
	dialect_place_key(roles, "server", e->key_pos);
	move(x, doc_table(e->value, "hardware"), "instance_type", server, "instance_type");
	move(x, env, "docker_image", server, "image");
	move(x, env, "vars", server, "env");
	take_command(x, env, "start_command", "start_command_args", server);
	take_ports(x, env, server, client);
	take_models(x, dialect_entry(e->value, "models"));
	warn_of_others(x, e->value, "server", known);
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
	const struct doc_entry *aws = dialect_entry(x->from, "aws");

	for (size_t i = 0; aws && aws->value->type == DOC_TABLE && i < aws->value->table.n; i++) {
		const char *key = aws->value->table.v[i].key.p;

		if (!str_is(aws->value->table.v[i].key, "ec2"))
			move(x, aws->value, key, table_of(x, "aws", aws->key_pos), key);
	}
}

static struct doc *convert(const struct doc *doc, struct arena *a, struct problems *ps)
{
	static const char *const known[] = {
		"spec_version", "info",	  "hardware", "env",	     "ml",	 "data",   "output",
		"aws",		"master", "timeouts", "max_runtime", "max_cost", "server", NULL};
	struct anubis x = {.from = doc, .to = doc_new(a, DOC_TABLE), .a = a, .ps = ps};
	const struct doc_entry *server = dialect_entry(doc, "server");

	x.to->pos = doc->pos;
	take_info(&x);
	take_hardware(&x);
	take_env(&x);
	take_ml(&x);
	take_sources(&x);
	take_metrics(&x);
	take_aws(&x);
	take_native(&x);
	if (server && x.inference)
		take_server(&x, server);
	else if (server)
		refuse(&x, server, "server", "it is for hardware.strategy = \"inference\"");
	warn_of_others(&x, doc, "", known);
	return x.to;
}

const struct dialect dialect_anubis = {
	.name = "Anubis descriptor",
	.is = is_anubis,
	.convert = convert,
};
