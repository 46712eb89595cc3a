/*
 * job - load a document into struct job and check what the rows of the schema
 * cannot express: names, references between roles, sums.
 *
 * Every check runs even when an earlier one found something, so that a file
 * shows all its problems at once.  A check therefore asks the document whether
 * a key was written at all: a value of a wrong type is reported by the schema
 * and must not be reported as missing too.
 */
#include "spec/job.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/map.h"
#include "base/path.h"
#include "base/suggest.h"
#include "fmt/http_url.h"
#include "metrics/extract.h"
#include "spec/params.h"
#include "spec/secret.h"
#include "spec/variable.h"

#define MIN_SAMPLE_MS 100
#define MAX_CYCLE_SHOWN 8

struct check {
	const struct doc *doc;
	const struct doc **tables; /* of the roles, in the order of job->roles */
	struct job *job;
	struct arena *a;
	struct problems *ps;
	const struct job_rules *rules; /* may be NULL */
};

#define problem(c, pos, ...) problems_add((c)->ps, (c)->a, (pos), __VA_ARGS__)

/* Where the key stands in the file; where the table starts if it has no such key. */
static struct doc_pos key_pos(const struct doc *table, const char *key)
{
	struct doc_pos pos = table->pos;

	for (size_t i = 0; i < table->table.n; i++)
		if (str_is(table->table.v[i].key, key))
			pos = table->table.v[i].key_pos;
	return pos;
}

/* Where entry i of a list of strings stands in the file; the key must exist.  A single string is a
 * list of one. */
static struct doc_pos item_pos(const struct doc *table, const char *key, size_t i)
{
	const struct doc *list = doc_get(table, key);

	return list->type == DOC_ARRAY ? list->array.v[i]->pos : list->pos;
}

static bool is_word(struct str s, const char *others, size_t max)
{
	if (s.n == 0 || s.n > max)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char ch = s.p[i];
		bool alnum = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			     (ch >= '0' && ch <= '9');
		if (!alnum && (ch == '\0' || !strchr(others, ch)))
			return false;
	}
	return true;
}

/* The schema has reported such a name already. */
static bool is_impossible(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f || name.p[i] == '=')
			return true;
	return name.n == 0;
}

/* `where` is "" or "roles.trainer.". */
static void check_env(struct check *c, const struct doc *table, const char *where)
{
	const struct doc *env = doc_table(table, "env");

	for (size_t i = 0; env && i < env->table.n; i++) {
		const struct doc_entry *e = &env->table.v[i];

		if (is_impossible(e->key))
			continue;
		const char *fault = variable_fault(
			e->key, e->value->type == DOC_STRING ? e->value->s : STR(""));

		if (fault)
			problem(c, variable_fault(e->key, STR("")) ? e->key_pos : e->value->pos,
				"%senv: '%.*s'%s", where, STR_ARG(e->key), fault);
		else if (e->value->type == DOC_STRING && str_is(e->value->s, SECRET_SHOWN) &&
			 secret_name(c->job, e->key))
			problem(c, e->value->pos,
				"%senv.%.*s: the value was masked when this file was written: set it anew",
				where, STR_ARG(e->key));
	}
}

static void check_secrets(struct check *c)
{
	const struct strs *names = &c->job->secrets;

	for (size_t i = 0; i < names->n; i++)
		if (!variable_name_ok(str_from(names->v[i])))
			problem(c, item_pos(c->doc, "secrets", i),
				"secrets: '%s' cannot be the name of a variable: list names of env, not values",
				names->v[i]);
}

static void check_pass(struct check *c)
{
	const struct strs *patterns = &c->job->pass;

	for (size_t i = 0; i < patterns->n; i++) {
		struct str pattern = str_from(patterns->v[i]);

		if (!variable_pattern_ok(pattern))
			problem(c, item_pos(c->doc, "pass", i),
				"pass: '%s' is no pattern of names: letters, digits and _, with * or ? "
				"for the rest, as in \"WANDB_*\"",
				patterns->v[i]);
		else if (str_starts(pattern, STR("REGATTA_")))
			problem(c, item_pos(c->doc, "pass", i),
				"pass: '%s': names that start with REGATTA_ are set by regatta itself",
				patterns->v[i]);
	}
}

static bool has_image(const struct job *job)
{
	bool any = job->image;

	for (size_t i = 0; i < job->roles.n; i++)
		any = any || job_role(job, i)->image;
	return any;
}

static void check_registry(struct check *c)
{
	const struct registry_spec *r = &c->job->registry;
	const struct doc *given = doc_get(c->doc, "registry");

	/* In a stored job the table is there, and empty. */
	if (!given || (!r->user && !r->password_env && !r->login))
		return;
	if (r->login && strcmp(r->login, "ecr") != 0)
		problem(c, given->pos,
			"registry: there is no login '%s': \"ecr\", or a table with user and password_env",
			r->login);
	else if (r->login && (r->user || r->password_env))
		problem(c, given->pos,
			"registry: \"ecr\" brings its own user and password: give one of both");
	else if (!r->login && (!r->user || !r->password_env))
		problem(c, given->pos,
			"registry needs user and password_env, the name of the variable with the "
			"password");
	else if (!r->login && !variable_name_ok(str_from(r->password_env)))
		problem(c, given->pos,
			"registry: '%s' cannot be the name of a variable: give the variable's name, not the "
			"password",
			r->password_env);
	else if (!has_image(c->job))
		problem(c, given->pos, "registry is the login for image, and no image is given");
}

/* Names only: a package manager must not take one for an option. */
static void check_packages(struct check *c, const struct doc *table, const struct strs *names,
			   const char *where)
{
	for (size_t i = 0; i < names->n; i++)
		if (!is_word(str_from(names->v[i]), "+-._:=~*/@", 200) || names->v[i][0] == '-')
			problem(c, item_pos(table, "packages", i),
				"%spackages: '%s' cannot be the name of a package", where,
				names->v[i]);
}

static void check_command(struct check *c, const struct doc *table, const struct strs *command,
			  const char *where)
{
	const struct doc *given = doc_get(table, "command");

	if (!given)
		return;
	/* v is NULL if the value could not be read, which the schema has reported. */
	if (!command->v)
		return;
	if (command->n == 0)
		problem(c, given->pos, "%scommand is empty", where);
	else if (command->v[0][0] == '\0')
		problem(c, given->pos, "%scommand: the first word, the program, is empty", where);
	for (size_t i = 0; i < command->n; i++)
		if (strlen(command->v[i]) > VARIABLE_MAX)
			problem(c, given->pos,
				"%scommand: word %zu is longer than the %d bytes that Linux takes: put it in a file",
				where, i + 1, VARIABLE_MAX);
}

/* A string that is in the file must not be empty. */
static void check_filled(struct check *c, const struct doc *table, const char *key,
			 const char *where)
{
	const struct doc *given = doc_get(table, key);

	if (given && given->type == DOC_STRING && given->s.n == 0)
		problem(c, given->pos, "%s%s is empty", where, key);
}

/* Which role waits for which: `after` of role i is v[first[i]] .. v[first[i + 1] - 1]. */
struct waits {
	size_t *first, *v;
	size_t n;
};

static const char *nearest_role(const struct job *job, struct arena *a, const char *given)
{
	const char **names = arena_array(a, const char *, job->roles.n);

	for (size_t i = 0; i < job->roles.n; i++)
		names[i] = job_role(job, i)->name;
	return suggest_word(names, job->roles.n, str_from(given));
}

static void unknown_role(struct check *c, const struct role *r, struct doc_pos pos,
			 const char *given)
{
	/* Search for a suggestion only if it will be shown: a bad file with many roles would take seconds. */
	const char *near = c->ps->n < PROBLEMS_MAX ? nearest_role(c->job, c->a, given) : NULL;

	if (near)
		problem(c, pos, "roles.%s.after: there is no role '%s': did you mean '%s'?",
			r->name, given, near);
	else
		problem(c, pos, "roles.%s.after: there is no role '%s'", r->name, given);
}

static void read_waits(struct check *c, struct waits *ret)
{
	CLEANUP(map_freep) struct map *index = map_new();
	size_t n = c->job->roles.n, edges = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		map_put(index, str_from(job_role(c->job, i)->name), job_role(c->job, i));
		edges += job_role(c->job, i)->after.n;
	}
	ret->n = n;
	ret->first = arena_array(c->a, size_t, n + 1);
	ret->v = arena_array(c->a, size_t, edges + 1);
	for (size_t i = 0; i < n; i++) {
		const struct role *r = job_role(c->job, i);
		const struct doc *table = c->tables[i];

		ret->first[i] = at;
		for (size_t k = 0; k < r->after.n; k++) {
			const struct role *other = map_get(index, str_from(r->after.v[k]));
			if (!other)
				unknown_role(c, r, item_pos(table, "after", k), r->after.v[k]);
			else if (other == r)
				problem(c, item_pos(table, "after", k),
					"roles.%s.after: a role cannot wait for itself", r->name);
			else
				ret->v[at++] = (size_t)(other - job_role(c->job, 0));
		}
	}
	ret->first[n] = at;
}

/* Strikes out the roles that can start, one after the other; the roles left are in a circle, or wait for
 * one in a circle.  left[i] is how many roles i still waits for. */
static size_t *strike_out(struct arena *a, const struct waits *w, size_t *ret_struck)
{
	size_t *left = arena_array(a, size_t, w->n + 1), *queue = arena_array(a, size_t, w->n + 1);
	size_t *head = arena_array(a, size_t, w->n + 2),
	       *waiters = arena_array(a, size_t, w->first[w->n] + 1);
	size_t in = 0, out = 0;

	/* The reverse: the roles that wait for i are waiters[head[i]] .. waiters[head[i + 1] - 1]. */
	for (size_t k = 0; k < w->first[w->n]; k++)
		head[w->v[k] + 2]++;
	for (size_t i = 2; i < w->n + 2; i++)
		head[i] += head[i - 1];
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = w->first[i]; k < w->first[i + 1]; k++)
			waiters[head[w->v[k] + 1]++] = i;
	for (size_t i = 0; i < w->n; i++) {
		left[i] = w->first[i + 1] - w->first[i];
		if (left[i] == 0)
			queue[in++] = i;
	}
	while (out < in) {
		size_t done = queue[out++];
		for (size_t k = head[done]; k < head[done + 1]; k++)
			if (--left[waiters[k]] == 0)
				queue[in++] = waiters[k];
	}
	*ret_struck = out;
	return left;
}

static void check_cycle(struct check *c, const struct waits *w)
{
	size_t struck, *left = strike_out(c->a, w, &struck);
	bool *seen = arena_array(c->a, bool, w->n + 1);
	size_t at = 0;

	if (struck == w->n)
		return;
	while (left[at] == 0)
		at++;
	/* Each role that is left waits for one that is left: walk until a role comes up again. */
	while (!seen[at]) {
		seen[at] = true;
		size_t k = w->first[at];
		while (left[w->v[k]] == 0)
			k++;
		at = w->v[k];
	}
	CLEANUP(buf_release) struct buf text = {0};
	buf_init(&text, 4096);
	size_t start = at, shown = 0;
	do {
		if (shown++ < MAX_CYCLE_SHOWN)
			buf_printf(&text, "%s -> ", job_role(c->job, at)->name);
		size_t k = w->first[at];
		while (left[w->v[k]] == 0)
			k++;
		at = w->v[k];
	} while (at != start);
	if (shown > MAX_CYCLE_SHOWN)
		buf_printf(&text, "(%zu more) -> ", shown - MAX_CYCLE_SHOWN);
	const char *name = job_role(c->job, start)->name;
	problem(c, key_pos(c->tables[start], "after"),
		"roles wait for each other in a circle: %.*s%s: none could ever start",
		STR_ARG(buf_str(&text)), name);
}

/* Settles count, min and max; `where` is "" or "roles.trainer.". */
static void check_bounds(struct check *c, const struct doc *table, int64_t *count, struct policy *p,
			 const char *where)
{
	bool has_min = doc_get(table, "min"), has_max = doc_get(table, "max");

	if (has_min && !doc_get(table, "count"))
		*count = p->min;
	if (!p->min)
		p->min = *count;
	if (!p->max)
		p->max = *count;
	if (has_min && has_max && p->min > p->max)
		problem(c, key_pos(table, "min"), "%smin is %lld, but %smax is only %lld", where,
			(long long)p->min, where, (long long)p->max);
	else if (*count < p->min)
		problem(c, key_pos(table, "count"), "%scount is %lld, but %smin is %lld", where,
			(long long)*count, where, (long long)p->min);
	else if (*count > p->max)
		problem(c, key_pos(table, "count"), "%scount is %lld, but %smax is only %lld",
			where, (long long)*count, where, (long long)p->max);
	if (p->retry_on.n > 0 && p->retries == 0)
		problem(c, key_pos(table, "retry_on"),
			"%sretry_on says when to try again, but not how often: add retries = 1, say",
			where);
}

/* "gpus" and "cpus" are those of `resources`, or what the machine has: then their number is not known yet. */
static void settle_processes(struct check *c, int64_t *processes, enum processes_by *by,
			     const struct resources_spec *res, struct doc_pos pos,
			     const char *where)
{
	const struct resources_spec none = {0};

	if (*processes > 0)
		return;
	if (!res)
		res = &none;
	*by = *processes == -1 ? PROCESSES_GPUS : PROCESSES_CPUS;
	*processes = *by == PROCESSES_GPUS ? res->gpus : (int64_t)res->cpus;
	if (*processes > JOB_MAX_PROCESSES)
		problem(c, pos, "%sprocesses_per_node would be %lld: %d are possible", where,
			(long long)*processes, JOB_MAX_PROCESSES);
	if (*processes > 0)
		*by = PROCESSES_NUMBER;
	else
		*processes = 1;
}

/* One terminal cannot be shared by several processes. */
static void check_terminal(struct check *c, int64_t processes, struct doc_pos pos, bool pty,
			   const char *where)
{
	if (processes > 1 && pty)
		problem(c, pos,
			"%sprocesses_per_node is %lld, but pty = true is for one process: leave one of "
			"them out",
			where, (long long)processes);
}

static void check_role(struct check *c, const struct doc *table, struct role *r)
{
	char *where = arena_printf(c->a, "roles.%s.", r->name);

	check_env(c, table, where);
	check_command(c, table, &r->command, where);
	check_filled(c, table, "image", where);
	r->image = job_image(c->job, r);
	if (!r->resources)
		r->resources = c->job->resources;
	check_packages(c, table, &r->packages, where);
	check_bounds(c, table, &r->count, &r->policy, where);
	if (!doc_get(table, "command")) {
		bool brought = c->rules && c->rules->brings_command &&
			       c->rules->brings_command(c->job, r->name);

		if (!doc_get(c->doc, "command") && !brought)
			problem(c, r->pos,
				"roles.%s has no command, and the job has none for it either: write command "
				"= [\"program\", \"argument\"]",
				r->name);
		r->command = c->job->command;
	}
	settle_processes(c, &r->processes, &r->processes_by, r->resources, r->processes_pos, where);
	check_terminal(c, r->processes, r->processes_pos, r->pty_set ? r->pty : c->job->pty, where);
	if (r->ready_when == READY_PORT && !doc_get(table, "port"))
		problem(c, item_pos(table, "ready_when", 0),
			"roles.%s.ready_when = \"port\" needs a port: write port = 5436, say",
			r->name);
}

/* job->roles has the entries that are tables, in the order of the document. */
static void find_tables(struct check *c, const struct doc *roles)
{
	size_t n = 0;

	c->tables = arena_array(c->a, const struct doc *, c->job->roles.n);
	for (size_t i = 0; i < roles->table.n; i++)
		if (roles->table.v[i].value->type == DOC_TABLE)
			c->tables[n++] = roles->table.v[i].value;
}

/* Keys of the job that have no effect in a job with roles. */
static void refuse_beside_roles(struct check *c)
{
	static const char *const keys[] = {
		"count", "min", "max", "retries", "retry_on", "on_lost", "processes_per_node"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (doc_get(c->doc, keys[i]))
			problem(c, key_pos(c->doc, keys[i]),
				"%s has no effect beside roles: write it in the role, as in roles.%s.%s",
				keys[i], job_role(c->job, 0)->name, keys[i]);
}

static void check_roles(struct check *c)
{
	size_t n = c->job->roles.n;
	int64_t total = 0;
	struct waits waits;

	if (n == 0)
		return;
	refuse_beside_roles(c);
	find_tables(c, doc_table(c->doc, "roles"));
	for (size_t i = 0; i < n; i++) {
		struct role *r = job_role(c->job, i);
		check_role(c, c->tables[i], r);
		total += r->policy.max;
	}
	if (total > JOB_MAX_NODES)
		problem(c, key_pos(c->doc, "roles"),
			"the roles have %lld nodes together: at most %d", (long long)total,
			JOB_MAX_NODES);
	read_waits(c, &waits);
	check_cycle(c, &waits);
}

/* "criteo.tar.gz" is unpacked to criteo.  A name without such an ending is returned as it is. */
static struct str without_ending(struct str name)
{
	static const char *const endings[] = {".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz",
					      ".tgz",	 ".tar",     ".zip",	 NULL};

	for (size_t i = 0; endings[i]; i++) {
		struct str end = str_from(endings[i]);

		if (name.n > end.n && str_eq((struct str){name.p + name.n - end.n, end.n}, end))
			return (struct str){name.p, name.n - end.n};
	}
	return name;
}

static bool is_place(struct str path)
{
	return path_is_below(path) && !str_is(path, ".");
}

bool input_is_fetched(const char *src)
{
	return str_starts(str_from(src), STR("https://")) ||
	       str_starts(str_from(src), STR("s3://"));
}

int web_url_check(const char *url, struct err *err)
{
	struct http_url u;

	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return -1;
	return u.user.n == 0 ? 0
			     : err_set(err, ERR_INVALID,
				       "a user or password in a URL would be shown with the job: "
				       "write it without");
}

bool input_is_git(const char *src)
{
	return str_starts(str_from(src), STR("git+"));
}

const char *input_in_image(const char *src)
{
	static const char scheme[] = "docker://";

	return strncmp(src, scheme, strlen(scheme)) == 0 ? src + strlen(scheme) : NULL;
}

bool input_is_packed(const char *src)
{
	return !input_is_fetched(src) && !input_in_image(src);
}

size_t job_data(const struct job *j, struct arena *a, const struct data_spec **ret)
{
	struct data_spec *v = arena_array(a, struct data_spec, j->data.n + 1);
	size_t n = 0;

	if (j->source && input_is_fetched(j->source)) {
		struct str name = path_source_name(str_from(j->source));

		v[n++] = (struct data_spec){
			.src = j->source,
			.pos = j->source_pos,
			.path = ".",
			.unpack = without_ending(name).n < name.n,
		};
	}
	for (size_t i = 0; i < j->data.n; i++)
		v[n++] = ((const struct data_spec *)j->data.v)[i];
	*ret = v;
	return n;
}

static void check_web_url(struct check *c, struct doc_pos pos, const char *key, const char *url)
{
	struct err err = {0};

	if (web_url_check(url, &err) < 0)
		problem(c, pos, "%s: %s", key, err.msg);
}

/* What may be a URL: a source, an input, the place of outputs.  Names of objects may have blanks. */
static void check_place(struct check *c, struct doc_pos pos, const char *key, const char *place)
{
	const char *url = input_is_git(place) ? place + strlen("git+") : place;
	bool bad = input_is_git(place) && strchr(place, ' ');

	if (!strstr(place, "://"))
		return;
	for (const char *p = place; *p; p++)
		bad = bad || (unsigned char)*p < ' ' || *p == 0x7f;
	if (bad)
		problem(c, pos, "%s: a URL cannot have blanks or control characters", key);
	else if (str_starts(str_from(url), STR("https://")))
		check_web_url(c, pos, key, url);
}

static void check_digest(struct check *c, const struct data_spec *d, const char *key,
			 const char *digest, size_t digits)
{
	if (digest && (strlen(digest) != digits || strspn(digest, "0123456789abcdef") != digits))
		problem(c, d->pos, "data: %s must be %zu digits 0-9 and a-f", key, digits);
	else if (digest && d->shard)
		problem(c, d->pos, "data: %s is for one file, and a file cannot be sharded", key);
}

static void check_data(struct check *c)
{
	CLEANUP(map_freep) struct map *paths = map_new();
	struct data_spec *v = c->job->data.v;

	for (size_t i = 0; i < c->job->data.n; i++) {
		struct data_spec *d = &v[i];

		if (!d->src)
			continue;
		if (d->src[0] == '\0') {
			problem(c, d->pos, "data: src is empty");
			continue;
		}
		check_place(c, d->pos, "data: src", d->src);
		check_digest(c, d, "sha256", d->sha256, 64);
		check_digest(c, d, "md5", d->md5, 32);
		if (d->unpack && d->shard)
			problem(c, d->pos, "data: an archive that is unpacked cannot be sharded");
		if (!d->path) {
			struct str name = path_source_name(str_from(d->src));

			if (d->unpack)
				name = without_ending(name);
			d->path = arena_strndup(c->a, name.p, name.n);
			if (!is_place(name)) {
				problem(c, d->pos,
					"data: src '%s' has no name of its own: give a path",
					d->src);
				continue;
			}
		}
		if (!is_place(str_from(d->path + (d->path[0] == '/'))))
			problem(c, d->pos,
				"data: path '%s' must be a place below the work directory, as in \"data\"",
				d->path);
		else if (map_put(paths, str_from(d->path), d))
			problem(c, d->pos, "data: path '%s' is used twice", d->path);
	}
}

static int count_sources(const struct volume_spec *v)
{
	const char *const names[] = {v->efs, v->nfs, v->pvc, v->host, v->config_map, v->secret};
	int n = v->empty;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		n += names[i] != NULL;
	return n;
}

static void check_volumes(struct check *c)
{
	CLEANUP(map_freep) struct map *paths = map_new();
	struct volume_spec *v = c->job->volumes.v;

	for (size_t i = 0; i < c->job->volumes.n; i++) {
		struct volume_spec *volume = &v[i];

		if (!volume->path)
			continue;
		if (count_sources(volume) != 1)
			problem(c, volume->pos,
				"volumes: '%s' needs exactly one of pvc, nfs, efs, host, config_map, "
				"secret and empty",
				volume->path);
		if (volume->nfs && !strstr(volume->nfs, ":/"))
			problem(c, volume->pos, "volumes: nfs = \"%s\": write server:/path",
				volume->nfs);
		if (volume->path[0] != '/')
			problem(c, volume->pos, "volumes: path '%s' must be absolute",
				volume->path);
		else if (map_put(paths, str_from(volume->path), volume))
			problem(c, volume->pos, "volumes: path '%s' is used twice", volume->path);
	}
}

/* Compiles the pattern only to report a bad one now, instead of on the node. */
static void check_pattern(struct check *c, const struct metric_spec *m)
{
	struct metric_pattern pattern = {.name = m->name, .pattern = m->pattern};
	struct extract *ex = NULL;
	struct err err = {0};

	if (!m->pattern)
		return;
	if (m->pattern[0] == '\0')
		problem(c, m->pos, "metrics.%s: the pattern is empty", m->name);
	else if (metric_name_ok(str_from(m->name)) && extract_new(&pattern, 1, NULL, &ex, &err) < 0)
		problem(c, m->pos, "%s", err.msg);
	extract_free(ex);
}

static void check_metrics(struct check *c)
{
	const struct doc *metrics = doc_table(c->doc, "metrics");
	const struct metric_spec *v = c->job->metrics.v;

	for (size_t i = 0; metrics && i < metrics->table.n; i++) {
		const struct doc_entry *e = &metrics->table.v[i];
		if (!metric_name_ok(e->key))
			problem(c, e->key_pos,
				"metrics: '%.*s' cannot be the name of a metric: use up to %d letters, digits and _ . / -",
				STR_ARG(e->key), EXTRACT_MAX_NAME);
	}
	for (size_t i = 0; i < c->job->metrics.n; i++)
		check_pattern(c, &v[i]);
}

static void check_output(struct check *c)
{
	const struct doc *output = doc_table(c->doc, "output");
	const struct output_spec *o = &c->job->output;

	for (size_t i = 0; i < o->keep.n; i++)
		if (!path_is_below(str_from(o->keep.v[i])))
			problem(c, item_pos(output, "keep", i),
				"output.keep: '%s' must be a glob below the work directory; a whole "
				"directory is \"model/**\"",
				o->keep.v[i]);
	if (o->s3 && (!str_starts(str_from(o->s3), STR("s3://")) || !o->s3[5] || o->s3[5] == '/'))
		problem(c, item_pos(output, "s3", 0),
			"output.s3: '%.80s' is no place in a bucket, such as s3://my-bucket/results/",
			o->s3);
	else if (o->s3)
		check_place(c, o->s3_pos, "output.s3", o->s3);
}

static void check_finish(struct check *c)
{
	const struct finish_hook *f = &c->job->on_finish;

	if (f->url)
		check_web_url(c, f->url_pos, "on_finish.url", f->url);
}

static void check_top(struct check *c)
{
	const struct doc *roles = doc_get(c->doc, "roles");
	bool has_roles = roles && !(roles->type == DOC_TABLE && roles->table.n == 0);

	check_env(c, c->doc, "");
	check_secrets(c);
	check_pass(c);
	params_check(c->job, c->job->params, c->a, c->ps);
	check_command(c, c->doc, &c->job->command, "");
	check_filled(c, c->doc, "source", "");
	if (c->job->source)
		check_place(c, c->job->source_pos, "source", c->job->source);
	check_filled(c, c->doc, "metric_prefix", "");
	check_filled(c, c->doc, "image", "");
	check_packages(c, c->doc, &c->job->packages, "");
	if (!has_roles)
		check_bounds(c, c->doc, &c->job->count, &c->job->policy, "");
	settle_processes(c, &c->job->processes, &c->job->processes_by, c->job->resources,
			 c->job->processes_pos, "");
	check_terminal(c, c->job->processes, c->job->processes_pos, c->job->pty, "");
	if (!has_roles && !doc_get(c->doc, "command"))
		problem(c, c->doc->pos,
			"nothing to run: write command = [\"program\", \"argument\"], or a table "
			"[roles.<name>] with a command");
	if (c->job->sample_ms > 0 && c->job->sample_ms < MIN_SAMPLE_MS)
		problem(c, item_pos(c->doc, "sample_every", 0),
			"sample_every is below %dms: write %dms or more, or 0 for never",
			MIN_SAMPLE_MS, MIN_SAMPLE_MS);
}

/* metrics.loss = 'regex' is short for metrics.loss.pattern = 'regex'.  The caller's tree stays as it
 * is: a copy is made of the two tables that change. */
static struct doc *copy_table(struct arena *a, const struct doc *from)
{
	struct doc *to = doc_new(a, DOC_TABLE);

	to->pos = from->pos;
	to->table.v = arena_array(a, struct doc_entry, from->table.n + 1);
	to->table.n = from->table.n;
	to->table.cap = from->table.n + 1;
	for (size_t i = 0; i < from->table.n; i++)
		to->table.v[i] = from->table.v[i];
	return to;
}

static const struct doc *widen_metrics(const struct doc *doc, struct arena *a)
{
	const struct doc *metrics = doc_table(doc, "metrics");
	bool any = false;

	for (size_t i = 0; metrics && i < metrics->table.n; i++)
		any = any || metrics->table.v[i].value->type == DOC_STRING;
	if (!any)
		return doc;

	struct doc *root = copy_table(a, doc), *wide = copy_table(a, metrics);
	for (size_t i = 0; i < wide->table.n; i++) {
		struct doc_entry *e = &wide->table.v[i];
		if (e->value->type != DOC_STRING)
			continue;
		struct doc *table = doc_new(a, DOC_TABLE);
		table->pos = e->value->pos;
		doc_set(a, table, STR("pattern"), e->value);
		table->table.v[0].key_pos = e->key_pos;
		e->value = table;
	}
	doc_set(a, root, STR("metrics"), wide);
	return root;
}

bool job_sets_up(const struct job *j)
{
	bool any = j->setup.n + j->packages.n > 0;

	for (size_t i = 0; i < j->roles.n; i++)
		any = any || job_role(j, i)->setup.n + job_role(j, i)->packages.n > 0;
	return any;
}

const char *job_image(const struct job *j, const struct role *role)
{
	return role && role->image ? role->image : j->image;
}

struct role job_worker(const struct job *j)
{
	return (struct role){.name = "worker",
			     .count = j->count,
			     .command = j->command,
			     .policy = j->policy,
			     .processes = j->processes,
			     .processes_by = j->processes_by,
			     .machine = j->machine,
			     .resources = j->resources,
			     .image = j->image};
}

bool job_load(const struct doc *doc, const struct job_rules *rules, struct arena *a,
	      struct job *ret_job, struct problems *ps)
{
	size_t before = ps->n + ps->more, unknown = ps->unknown;

	if (doc->type != DOC_TABLE) {
		problems_add(ps, a, doc->pos, "a job file is a table of keys, not a %s",
			     doc_type_name(doc->type));
		return false;
	}
	doc = widen_metrics(params_expand(doc, a, ps), a);
	struct job job;
	struct check c = {.doc = doc, .job = &job, .a = a, .ps = ps, .rules = rules};
	schema_load(job_schema_with(rules, a), doc, &job, a, ps);
	if (!job.strategy)
		job.strategy = "";
	check_top(&c);
	check_roles(&c);
	check_registry(&c);
	check_data(&c);
	check_volumes(&c);
	check_metrics(&c);
	check_output(&c);
	check_finish(&c);
	size_t found = ps->n + ps->more - before;
	bool names_only = found > ps->unknown - unknown;
	if (!names_only && rules && rules->complete)
		rules->complete(&job, a);
	if (found > 0 && rules && rules->check)
		rules->check(&job, names_only, a, ps);
	if (found > 0)
		return false;
	*ret_job = job;
	return true;
}
