/*
 * s3.object - the program in the bucket, for the machines of runs.
 *
 * Its key names its SHA-256, so that an object of the right size is the right one; machines check the
 * sum.  It is shared: every run of this version uses it.
 *
 * Spec: bucket, key, sha256, size.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "driver/aws/s3_kind.h"
#include "driver/own_program.h"
#include "fmt/doc.h"

/* This program or the one for another machine, which must be the one that the run was planned with. */
static int open_program(const struct aws_work *w, int *ret_fd, uint64_t *ret_size, struct err *err)
{
	const char *wanted = aws_spec(w, "sha256");

	if (!wanted || own_program_open(wanted, ret_fd, ret_size, err) < 0)
		return err_set(err, ERR_CONFLICT,
			       "the master is of another version of regatta than the command that "
			       "submitted the run: use the same one");
	return 0;
}

static int upload(struct aws_work *w, const struct s3_place *at, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	uint64_t size;

	if (open_program(w, &fd, &size, err) < 0)
		return -1;
	return s3_upload(w->s, at, fd, size, NULL, &w->d, err);
}

/* ERR_NOT_FOUND also if it has another size. */
static int check(struct aws_work *w, const struct s3_place *at, struct err *err)
{
	int64_t size = doc_int(w->spec, "size", 0);
	struct s3_object o;

	if (s3_head(w->s, at, &w->d, &o, err) < 0)
		return -1;
	if (size > 0 && o.size != (uint64_t)size)
		return err_set(err, ERR_NOT_FOUND, "%s has another size than the program", at->key);
	return 0;
}

static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	struct s3_place at = s3_kind_place(w);
	int rc = check(w, &at, &row->err);

	if (rc < 0 && row->err.kind == ERR_NOT_FOUND) {
		row->err = (struct err){0};
		rc = upload(w, &at, &row->err);
	}
	if (rc < 0)
		return s3_kind_failed(AWS_CREATE, row);
	aws_take_id(row, at.key);
	return OUTCOME_DONE;
}

static enum outcome look(struct aws_work *w, struct driver_row *row, enum aws_question question)
{
	struct s3_place at = s3_kind_place(w);

	if (check(w, &at, &row->err) < 0)
		return s3_kind_failed(question, row);
	aws_take_id(row, at.key);
	return OUTCOME_DONE;
}

static enum outcome do_find(struct aws_work *w, struct driver_row *row)
{
	return look(w, row, AWS_FIND);
}

static enum outcome do_observe(struct aws_work *w, struct driver_row *row)
{
	return look(w, row, AWS_OBSERVE);
}

static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	struct s3_place at = s3_kind_place(w);

	if (s3_delete(w->s, &at, &w->d, &row->err) < 0)
		return s3_kind_failed(AWS_DESTROY, row);
	return OUTCOME_DONE;
}

AWS_DRIVER(s3_object_driver, "s3.object", NULL);
