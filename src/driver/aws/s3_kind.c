#include "driver/aws/s3_kind.h"

struct s3_place s3_kind_place(const struct aws_work *w)
{
	return (struct s3_place){
		.bucket = aws_spec(w, "bucket"),
		.key = aws_spec(w, "key"),
		.owner = aws_spec(w, "account"),
	};
}

static bool is_open(enum err_kind kind)
{
	return kind == ERR_UNAVAILABLE || kind == ERR_TIMEOUT || kind == ERR_IO ||
	       kind == ERR_PROTOCOL || kind == ERR_CANCELLED || kind == ERR_THROTTLED;
}

enum outcome s3_kind_failed(enum aws_question question, struct driver_row *row)
{
	if (is_open(row->err.kind))
		return OUTCOME_UNSURE;
	switch (question) {
	case AWS_CREATE:
		return OUTCOME_REFUSED;
	case AWS_DESTROY:
		return row->err.kind == ERR_NOT_FOUND ? OUTCOME_ABSENT : OUTCOME_HELD;
	case AWS_FIND:
	case AWS_OBSERVE:
	case AWS_EXTEND:
		break;
	}
	return row->err.kind == ERR_NOT_FOUND ? OUTCOME_ABSENT : OUTCOME_UNSURE;
}
