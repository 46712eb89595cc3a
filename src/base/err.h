#pragma once
/*
 * err - one error value on the caller's stack.
 *
 * The kind drives behaviour (retry, exit code, HTTP status); the text is for
 * people and gets context on the way up.  Building an error cannot fail.
 * Every function returns -1 so that "return err_set(...)" works.  A NULL err
 * is allowed and means that the caller does not care.
 */
enum err_kind {
	ERR_NONE,
	ERR_INVALID,
	ERR_NOT_FOUND,
	ERR_CONFLICT,
	ERR_DENIED,
	ERR_CAPACITY,
	ERR_QUOTA,
	ERR_THROTTLED,
	ERR_TIMEOUT,
	ERR_UNAVAILABLE,
	ERR_PROTOCOL,
	ERR_IO,
	ERR_CANCELLED,
	ERR_PREEMPTED, /* the provider took the machine back, as it may */
};
#define ERR_KINDS (ERR_PREEMPTED + 1)

struct err {
	enum err_kind kind;
	int code; /* errno or a service's own number, 0 if none */
	char msg[240];
};

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The kind follows from errnum (ENOENT: not found, EACCES: denied, ENOSPC: capacity, ...). */
int err_errno(struct err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Put context in front: "context: old text". */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "denied", "capacity", ...; stable names, used in the database and the API. */
const char *err_kind_name(enum err_kind kind);
/* The kind of that name, or ERR_NONE when there is none. */
enum err_kind err_kind_from_name(const char *name);
/* The exit code of the command line for an error of this kind (2..8). */
int err_exit_code(enum err_kind kind);

/* Tells the compiler, which sees one file at a time, that the result is always -1. */
static inline int err_minus_one(int answer)
{
	(void)answer;
	return -1;
}
#define err_set(...) err_minus_one(err_set(__VA_ARGS__))
#define err_errno(...) err_minus_one(err_errno(__VA_ARGS__))
#define err_wrap(...) err_minus_one(err_wrap(__VA_ARGS__))
