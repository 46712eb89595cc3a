#pragma once
/*
 * aws_kind - what the drivers of AWS resources have in common: how a call begins and what an error
 * means, tags, and whose a resource is.
 */
#include "driver/aws/api/aws.h"
#include "driver/aws/aws_session.h"

enum aws_question { AWS_CREATE, AWS_FIND, AWS_OBSERVE, AWS_EXTEND, AWS_DESTROY };

/* One question about one row; err of the answer goes to *err. */
typedef enum outcome aws_kind_fn(struct aws_work *w, struct driver_row *row);
/* Opens the session, sets identity_checked, asks.  Without a session nothing was done. */
enum outcome aws_kind_ask(struct driver_row *row, enum aws_question question, aws_kind_fn *fn);

/* What a failed call of AWS means for the question. */
enum outcome aws_kind_failed(enum aws_question question, const struct aws_answer *ans,
			     struct driver_row *row);
/* The resource is not there. */
enum outcome aws_kind_absent(struct driver_row *row);
/* Did AWS answer the last try with this error code?  An earlier try may have got no answer. */
bool aws_code_is(const struct aws_answer *ans, const char *code);

/* Sends one request and releases it. */
int aws_kind_call(const struct aws_work *w, struct aws_request *r, struct aws_answer *ret,
		  struct err *err);

void aws_take_id(struct driver_row *row, const char *id);

/* "regatta-<install>-<run>", of the arena; not of_run: "regatta-<install>". */
const char *aws_kind_name(const struct aws_work *w, bool of_run);
/* The id of what the row needs, by its name in the plan; NULL if it needs none. */
const char *aws_need(const struct driver_row *row, const char *name);

struct aws_tag {
	const char *key, *value;
};
#define AWS_TAG_EXPIRES "regatta:expires" /* when anybody may remove it; aws_utc() */
const char *aws_utc(struct arena *a, int64_t wall_ms);
#define AWS_MAX_TAGS 50
/* The value of the tag regatta:role; NULL: what the row makes has none. */
const char *aws_role(const struct driver_row *row);
/* Tags of a new resource: the install's and the user's; if it is of a run also the run's, and those of
 * the old tool if spec has task_name. */
size_t aws_tags(const struct aws_work *w, bool of_run, struct aws_tag out[static AWS_MAX_TAGS]);
/* TagSpecification.<n> with all of them. */
void aws_tag_specification(struct aws_request *r, const struct aws_work *w, int n,
			   const char *resource_type);
/* Does an element with a tagSet have the tags of this install, and of this run? */
bool aws_is_ours(const struct xml *x, const struct driver_row *row, bool of_run);
/* Answers HELD: a resource with that id exists, but without the tags of this install. */
enum outcome aws_kind_foreign(struct driver_row *row, const char *what);

/* A driver of one row per call, made of do_create, do_find, do_observe and do_destroy of its file.
 * extend_: NULL for kinds of the install. */
#define AWS_DRIVER(driver_, kind_, extend_)                                                        \
	static enum outcome create(struct driver_row *row)                                         \
	{                                                                                          \
		return aws_kind_ask(row, AWS_CREATE, do_create);                                   \
	}                                                                                          \
	static enum outcome find(struct driver_row *row)                                           \
	{                                                                                          \
		return aws_kind_ask(row, AWS_FIND, do_find);                                       \
	}                                                                                          \
	static enum outcome observe(struct driver_row *row)                                        \
	{                                                                                          \
		return aws_kind_ask(row, AWS_OBSERVE, do_observe);                                 \
	}                                                                                          \
	static enum outcome destroy(struct driver_row *row)                                        \
	{                                                                                          \
		return aws_kind_ask(row, AWS_DESTROY, do_destroy);                                 \
	}                                                                                          \
	const struct driver driver_ = {                                                            \
		.kind = (kind_),                                                                   \
		.pool = "aws",                                                                     \
		.create = create,                                                                  \
		.find = find,                                                                      \
		.observe = observe,                                                                \
		.extend = (extend_),                                                               \
		.destroy = destroy,                                                                \
	}
