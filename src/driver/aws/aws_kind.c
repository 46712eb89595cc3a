#include "driver/aws/aws_kind.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fmt/doc.h"

enum outcome aws_kind_ask(struct driver_row *row, enum aws_question question, aws_kind_fn *fn)
{
	struct aws_work w;
	enum outcome outcome;

	if (aws_work_open(row, &w, &row->err) < 0)
		return question == AWS_CREATE ? OUTCOME_REFUSED : OUTCOME_UNSURE;
	row->identity_checked = true;
	outcome = fn(&w, row);
	aws_work_close(&w);
	return outcome;
}

/* A delete that AWS refuses leaves the resource there. */
enum outcome aws_kind_failed(enum aws_question question, const struct aws_answer *ans,
			     struct driver_row *row)
{
	if (ans->refused && row->err.kind == ERR_NOT_FOUND && question != AWS_CREATE)
		return OUTCOME_ABSENT;
	if (!ans->refused)
		return OUTCOME_UNSURE;
	switch (question) {
	case AWS_CREATE:
		return OUTCOME_REFUSED;
	case AWS_DESTROY:
		return OUTCOME_HELD;
	case AWS_FIND:
	case AWS_OBSERVE:
	case AWS_EXTEND:
		break;
	}
	return OUTCOME_UNSURE;
}

enum outcome aws_kind_absent(struct driver_row *row)
{
	err_set(&row->err, ERR_NOT_FOUND, "%s '%s' is not there", row->kind, row->name);
	return OUTCOME_ABSENT;
}

enum outcome aws_kind_foreign(struct driver_row *row, const char *what)
{
	err_set(&row->err, ERR_CONFLICT,
		"%s does not carry the tag regatta:install=%s: it is not touched", what,
		row->install);
	return OUTCOME_HELD;
}

bool aws_code_is(const struct aws_answer *ans, const char *code)
{
	return strcmp(ans->code, code) == 0;
}

int aws_kind_call(const struct aws_work *w, struct aws_request *r, struct aws_answer *ret,
		  struct err *err)
{
	int rc = aws_query(w->s, r, &w->d, ret, err);

	aws_request_release(r);
	return rc;
}

void aws_take_id(struct driver_row *row, const char *id)
{
	snprintf(row->id, sizeof(row->id), "%s", id);
}

const char *aws_kind_name(const struct aws_work *w, bool of_run)
{
	return arena_printf(w->a, "regatta-%s%s%s", w->row->install, of_run ? "-" : "",
			    of_run ? w->row->run : "");
}

const char *aws_need(const struct driver_row *row, const char *name)
{
	for (size_t i = 0; i < row->nneeds; i++)
		if (strcmp(row->needs[i].name, name) == 0)
			return row->needs[i].id;
	return NULL;
}

const char *aws_utc(struct arena *a, int64_t wall_ms)
{
	char text[32];

	clock_format(wall_ms, text);
	return arena_strdup(a, text);
}

struct tag_list {
	struct aws_tag *v;
	size_t n;
};

static void add_tag(struct tag_list *l, const char *key, const char *value)
{
	if (value && l->n < AWS_MAX_TAGS)
		l->v[l->n++] = (struct aws_tag){key, value};
}

/* "trainer" -> "TRAINER". */
static const char *upper(struct arena *a, const char *word)
{
	char *text = arena_strdup(a, word);

	for (char *p = text; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return text;
}

/* The tags of the old tool, in both of its spellings.  IAM ignores case in tag keys, so IAM resources get none. */
static void add_old_tags(struct tag_list *l, const struct aws_work *w, const char *role)
{
	const char *task = aws_spec(w, "task_name");

	if (!task || strncmp(w->row->kind, "ec2.", 4) != 0)
		return;
	if (strcmp(w->row->kind, "ec2.master") == 0)
		task = arena_printf(w->a, "%s_master", task);
	add_tag(l, "Task_name", task);
	add_tag(l, "TASK_NAME", task);
	if (!role)
		return;
	add_tag(l, "Role", upper(w->a, role));
	add_tag(l, "ROLE", upper(w->a, role));
}

const char *aws_role(const struct driver_row *row)
{
	if (row->role && *row->role)
		return row->role;
	return strcmp(row->kind, "ec2.master") == 0 ? "master" : NULL;
}

static void add_run_tags(struct tag_list *l, const struct aws_work *w)
{
	const struct driver_row *row = w->row;
	const char *role = aws_role(row);

	add_tag(l, "regatta:run", row->run);
	add_tag(l, "regatta:role", role);
	add_tag(l, "regatta:attempt", arena_printf(w->a, "%d", row->attempt));
	add_tag(l, AWS_TAG_EXPIRES, aws_utc(w->a, row->expires_ms));
	if (row->batch > 0)
		add_tag(l, "regatta:batch", arena_printf(w->a, "%d", row->batch));
	add_old_tags(l, w, role);
}

size_t aws_tags(const struct aws_work *w, bool of_run, struct aws_tag out[static AWS_MAX_TAGS])
{
	const struct doc *given = doc_table(w->spec, "tags");
	struct tag_list l = {.v = out};

	add_tag(&l, "regatta:install", w->row->install);
	if (of_run)
		add_run_tags(&l, w);
	for (size_t i = 0; given && i < given->table.n; i++)
		if (given->table.v[i].value->type == DOC_STRING)
			add_tag(&l, given->table.v[i].key.p, given->table.v[i].value->s.p);
	return l.n;
}

void aws_tag_specification(struct aws_request *r, const struct aws_work *w, int n,
			   const char *resource_type)
{
	struct aws_tag tags[AWS_MAX_TAGS];
	size_t ntags = aws_tags(w, true, tags);

	aws_param(r, resource_type, "TagSpecification.%d.ResourceType", n);
	for (size_t i = 0; i < ntags; i++) {
		aws_param(r, tags[i].key, "TagSpecification.%d.Tag.%zu.Key", n, i + 1);
		aws_param(r, tags[i].value, "TagSpecification.%d.Tag.%zu.Value", n, i + 1);
	}
}

static bool has_tag(const struct xml *x, const char *key, const char *value)
{
	for (const struct xml *t = xml_at(x, "tagSet/item"); t; t = xml_next(t))
		if (strcmp(xml_text(t, "key"), key) == 0)
			return strcmp(xml_text(t, "value"), value) == 0;
	return false;
}

bool aws_is_ours(const struct xml *x, const struct driver_row *row, bool of_run)
{
	return has_tag(x, "regatta:install", row->install) &&
	       (!of_run || has_tag(x, "regatta:run", row->run));
}
