/* regatta plan - what a run would use, without running it. */
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"
#include "cli/show/terminal.h"
#include "driver/input_find.h"
#include "fmt/doc.h"

/* What nodes would fetch from other servers, asked now. */
struct planned_input {
	const struct data_spec *spec;
	struct input_found found;
	struct err err; /* why nothing is known of it */
};

static size_t find_inputs(const struct job_input *in, struct planned_input **ret)
{
	const struct data_spec *v;
	size_t all = job_data(in->job, in->a, &v), n = 0;

	*ret = arena_array(in->a, struct planned_input, all + 1);
	for (size_t i = 0; i < all; i++) {
		struct planned_input *p = &(*ret)[n];

		if (!input_is_fetched(v[i].src))
			continue;
		p->spec = &v[i];
		n++;
		(void)job_input_find(in, &v[i], -1, &p->found, &p->err);
	}
	return n;
}

/* Plans again with the sizes of source and data, by which the disks of machines are made. */
static void size_inputs(struct job_input *in, const struct planned_input *v, size_t n)
{
	const struct doc *sent = doc_array(plan_engine_options(in->job, in->a), "inputs");
	int64_t sum = 0;

	for (size_t i = 0; sent && i < sent->array.n; i++) {
		CLEANUP(freep) char *path = path_join(in->job->base_dir, sent->array.v[i]->s.p);

		sum += file_tree_bytes(path);
	}
	for (size_t i = 0; i < n; i++)
		sum += (int64_t)v[i].found.largest_shard;
	if (!in->facts)
		in->facts = doc_new(in->a, DOC_TABLE);
	doc_set(in->a, in->facts, STR("input_bytes"), doc_new_int(in->a, sum));
	plan_complete(&in->plan, in->facts, in->a);
}

static void inputs_to_text(const struct planned_input *v, size_t n, struct buf *out)
{
	if (n > 0)
		buf_addz(out, "\ninputs that nodes fetch\n");
	for (size_t i = 0; i < n; i++) {
		const struct input_found *f = &v[i].found;
		const char *path = strcmp(v[i].spec->path, ".") == 0 ? "source" : v[i].spec->path;

		buf_printf(out, "  %-12s  %s: ", path, v[i].spec->src);
		if (v[i].err.kind != ERR_NONE)
			buf_printf(out, "not known: %s", v[i].err.msg);
		else if (!f->sized)
			buf_addz(out, "size not known");
		else
			buf_printf(out, "%" PRIu64 " object%s, %" PRIu64 " bytes", f->objects,
				   f->objects == 1 ? "" : "s", f->bytes);
		if (v[i].err.kind == ERR_NONE && f->sized && f->largest_shard < f->bytes)
			buf_printf(out, ", at most %" PRIu64 " per node", f->largest_shard);
		buf_addc(out, '\n');
	}
}

static struct doc *inputs_doc(const struct planned_input *v, size_t n, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (size_t i = 0; i < n; i++) {
		const struct input_found *f = &v[i].found;
		struct doc *d = doc_new(a, DOC_TABLE);

		doc_set(a, d, STR("src"), doc_new_str(a, str_from(v[i].spec->src)));
		doc_set(a, d, STR("path"), doc_new_str(a, str_from(v[i].spec->path)));
		if (v[i].err.kind != ERR_NONE) {
			doc_set(a, d, STR("error"), doc_new_str(a, str_from(v[i].err.msg)));
		} else {
			doc_set(a, d, STR("objects"), doc_new_int(a, (int64_t)f->objects));
			doc_set(a, d, STR("bytes"),
				f->sized ? doc_new_int(a, (int64_t)f->bytes)
					 : doc_new(a, DOC_NULL));
			doc_set(a, d, STR("bytes_per_node"),
				f->sized ? doc_new_int(a, (int64_t)f->largest_shard)
					 : doc_new(a, DOC_NULL));
		}
		doc_append(a, list, d);
	}
	return list;
}

/* The plan's JSON with its inputs. */
static int print_json(const struct job_input *in, const char *id, const struct planned_input *v,
		      size_t n)
{
	CLEANUP(buf_release) struct buf text = {0}, out = {0};
	struct doc *root;

	buf_init(&text, CLI_MAX_TEXT);
	buf_init(&out, CLI_MAX_TEXT);
	plan_to_json(&in->plan, id, in->a, &text);
	if (n == 0 || json_parse_limited(buf_str(&text), PLAN_MAX_BYTES, PLAN_MAX_VALUES, in->a,
					 &root, NULL) < 0)
		return cli_print(&text);
	doc_set(in->a, root, STR("inputs"), inputs_doc(v, n, in->a));
	doc_to_json(root, &out);
	buf_addc(&out, '\n');
	return cli_print(&out);
}

static int print_text(const struct job_input *in, const char *id, const struct planned_input *v,
		      size_t n)
{
	CLEANUP(buf_release) struct buf text = {0}, fitted = {0};
	struct style st = style_detect(1);

	buf_init(&text, CLI_MAX_TEXT);
	buf_init(&fitted, CLI_MAX_TEXT);
	plan_to_text(&in->plan, id, in->a, &text);
	inputs_to_text(v, n, &text);
	text_fit(&fitted, buf_str(&text), &st);
	fitted.overflow = fitted.overflow || text.overflow;
	return cli_print(&fitted);
}

int command_plan(const struct cli_call *c)
{
	struct planned_input *inputs;
	struct job_input in;
	int code = job_input_read(c, &in);

	if (code != 0)
		return code;
	size_t n = find_inputs(&in, &inputs);
	size_inputs(&in, inputs, n);
	const char *id = arena_printf(in.a, "%s-xxxx", in.job->name);

	code = c->output == OUTPUT_JSON ? print_json(&in, id, inputs, n)
					: print_text(&in, id, inputs, n);
	job_input_release(&in);
	return code;
}
