#pragma once
/*
 * errors - what an error of AWS means: its kind, and whether the call is tried again.
 */
#include <stdbool.h>
#include "base/err.h"

struct aws_fault {
	enum err_kind kind;
	bool again;	 /* worth another try of the same bytes */
	bool sure;	 /* the service did nothing */
	bool by_clock;	 /* perhaps our clock is wrong */
	bool by_expiry;	 /* perhaps the credentials have expired */
	bool permission; /* an action is not allowed: the text should name it */
};

/* `code` may be "" (then the status decides), and `message` too. */
struct aws_fault aws_fault_of(int status, const char *code, const char *message);
/* "CODE: message (request id ID)"; the request id stays whole, the message is cut if need be.
 * `action` is "ec2:RunInstances". */
int aws_fault_err(struct err *err, const struct aws_fault *f, const char *code, const char *message,
		  const char *request_id, const char *action);
