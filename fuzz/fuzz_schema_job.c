/*
 * Any text as a job file: JSON if it starts with a bracket, YAML if with "---",
 * else TOML.  A job loads or has problems, never both; one that loads comes
 * back the same from its tree printed as JSON and as TOML, which is how it
 * travels to the master.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "spec/job.h"

#define INPUT_MAX (256 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(struct str text, struct arena *a, struct doc **ret_doc)
{
	if (str_starts(text, STR("{")) || str_starts(text, STR("[{")))
		return json_parse(text, a, ret_doc, NULL);
	if (str_starts(text, STR("---")))
		return yaml_parse(text, a, ret_doc, NULL);
	return toml_parse(text, a, ret_doc, NULL);
}

static int64_t nodes(const struct job *j)
{
	int64_t n = j->roles.n ? 0 : j->count;

	for (size_t i = 0; i < j->roles.n; i++)
		n += job_role(j, i)->count;
	return n;
}

static void check_job(const struct job *j)
{
	if (!j->name || !j->engine || !j->strategy || !j->data_prefix || nodes(j) < 1 ||
	    nodes(j) > JOB_MAX_NODES)
		abort();
	for (size_t i = 0; i < j->roles.n; i++)
		if (job_role(j, i)->command.n == 0 || job_role(j, i)->command.v[0][0] == '\0')
			abort();
	if (j->roles.n == 0 && j->command.n == 0)
		abort();
}

static void check_again(const struct job *was, struct str text, struct arena *a,
			int (*read)(struct str, struct arena *, struct doc **, struct err *))
{
	struct problems ps = {0};
	struct doc *doc;
	struct job j;

	if (read(text, a, &doc, NULL) < 0 || !job_load(doc, NULL, a, &j, &ps))
		abort();
	if (strcmp(j.name, was->name) != 0 || nodes(&j) != nodes(was) ||
	    j.command.n != was->command.n || j.env.n != was->env.n ||
	    j.metrics.n != was->metrics.n || j.data.n != was->data.n ||
	    j.max_runtime_ms != was->max_runtime_ms || j.max_cost != was->max_cost)
		abort();
}

static void check_problems(struct problems *ps)
{
	CLEANUP(buf_release) struct buf out;

	if (ps->n == 0)
		abort();
	buf_init(&out, 64 << 20);
	problems_print(ps, "job", &out);
	size_t lines = 0;
	for (size_t i = 0; i < out.n; i++)
		lines += out.p[i] == '\n';
	if (out.overflow || lines != ps->n + (ps->more > 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct str text = {(const char *)data, size};
	struct problems ps = {0};
	struct doc *doc;
	struct job j;

	if (size > INPUT_MAX || parse(text, a, &doc) < 0)
		return 0;
	if (!job_load(doc, NULL, a, &j, &ps)) {
		check_problems(&ps);
		return 0;
	}
	if (ps.n || ps.more)
		abort();
	check_job(&j);

	CLEANUP(buf_release) struct buf json;
	CLEANUP(buf_release) struct buf toml;
	buf_init(&json, 8 * INPUT_MAX);
	buf_init(&toml, 8 * INPUT_MAX);
	doc_to_json(doc, &json);
	doc_to_toml(doc, &toml);
	/* Escaping may grow a tree past what a parser takes; then there is nothing to compare. */
	if (json.n <= DOC_MAX_BYTES && !json.overflow)
		check_again(&j, buf_str(&json), a, json_parse);
	if (toml.n <= DOC_MAX_BYTES && !toml.overflow)
		check_again(&j, buf_str(&toml), a, toml_parse);
	return 0;
}
