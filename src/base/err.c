#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* err.h wraps these in macros that tell the compiler that the result is -1; this file defines the functions
 * themselves. */
#undef err_set
#undef err_errno
#undef err_wrap

#define MSG_SIZE sizeof(((struct err *)0)->msg)

static const struct {
	const char *name;
	int exit_code;
} kinds[ERR_KINDS] = {
	[ERR_NONE] = {"none", 0},	    [ERR_INVALID] = {"invalid", 2},
	[ERR_NOT_FOUND] = {"not_found", 3}, [ERR_CONFLICT] = {"conflict", 2},
	[ERR_DENIED] = {"denied", 4},	    [ERR_CAPACITY] = {"capacity", 5},
	[ERR_QUOTA] = {"quota", 5},	    [ERR_THROTTLED] = {"throttled", 8},
	[ERR_TIMEOUT] = {"timeout", 6},	    [ERR_UNAVAILABLE] = {"unavailable", 8},
	[ERR_PROTOCOL] = {"protocol", 8},   [ERR_IO] = {"io", 8},
	[ERR_CANCELLED] = {"cancelled", 7}, [ERR_PREEMPTED] = {"preempted", 5},
};

static const struct {
	int errnum;
	enum err_kind kind;
} errnos[] = {
	{ENOENT, ERR_NOT_FOUND},
	{ESRCH, ERR_NOT_FOUND},
	{ENXIO, ERR_NOT_FOUND},
	{ENODEV, ERR_NOT_FOUND},
	{EACCES, ERR_DENIED},
	{EPERM, ERR_DENIED},
	{EROFS, ERR_DENIED},
	{ENOSPC, ERR_CAPACITY},
	{EFBIG, ERR_CAPACITY},
	{ENOMEM, ERR_CAPACITY},
	{EMFILE, ERR_CAPACITY},
	{ENFILE, ERR_CAPACITY},
	{EDQUOT, ERR_QUOTA},
	{EEXIST, ERR_CONFLICT},
	{ENOTEMPTY, ERR_CONFLICT},
	{EBUSY, ERR_CONFLICT},
	{ETXTBSY, ERR_CONFLICT},
	{EADDRINUSE, ERR_CONFLICT},
	{EINVAL, ERR_INVALID},
	{ENAMETOOLONG, ERR_INVALID},
	{ELOOP, ERR_INVALID},
	{ENOTDIR, ERR_INVALID},
	{EISDIR, ERR_INVALID},
	{E2BIG, ERR_INVALID},
	{ENOEXEC, ERR_INVALID},
	{EADDRNOTAVAIL, ERR_INVALID},
	{ETIMEDOUT, ERR_TIMEOUT},
	{EAGAIN, ERR_UNAVAILABLE},
	{ECONNREFUSED, ERR_UNAVAILABLE},
	{ECONNRESET, ERR_UNAVAILABLE},
	{ECONNABORTED, ERR_UNAVAILABLE},
	{EHOSTUNREACH, ERR_UNAVAILABLE},
	{ENETUNREACH, ERR_UNAVAILABLE},
	{ENETDOWN, ERR_UNAVAILABLE},
	{ENOTCONN, ERR_UNAVAILABLE},
	{EPIPE, ERR_UNAVAILABLE},
	{EPROTO, ERR_PROTOCOL},
	{EBADMSG, ERR_PROTOCOL},
	{ECANCELED, ERR_CANCELLED},
};

/* A text that was cut says so, and is not cut inside a UTF-8 sequence. */
static void mark_cut(char *msg, size_t size)
{
	size_t n = size - sizeof("...");

	while (n > 0 && ((unsigned char)msg[n] & 0xc0) == 0x80)
		n--;
	memcpy(msg + n, "...", sizeof("..."));
}

/*
 * The arguments may point into err itself ("%s", err->msg), so the text is
 * made aside and copied when it is complete.
 */
__attribute__((format(printf, 3, 0))) static void compose(struct err *err, const char *tail,
							  const char *fmt, va_list ap)
{
	char msg[MSG_SIZE];
	int n = vsnprintf(msg, sizeof(msg), fmt, ap);

	/* Formatting failed: the format string itself is the message. */
	if (n < 0)
		n = snprintf(msg, sizeof(msg), "%s", fmt);
	if (tail && *tail && (size_t)n < sizeof(msg)) {
		size_t at = (size_t)n;
		n += snprintf(msg + at, sizeof(msg) - at, "%s%s", at ? ": " : "", tail);
	}
	if ((size_t)n >= sizeof(msg))
		mark_cut(msg, sizeof(msg));
	memcpy(err->msg, msg, sizeof(msg));
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	compose(err, NULL, fmt, ap);
	va_end(ap);
	err->kind = kind;
	err->code = 0;
	return -1;
}

static enum err_kind kind_of_errno(int errnum)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (errnos[i].errnum == errnum)
			return errnos[i].kind;
	return ERR_IO;
}

int err_errno(struct err *err, int errnum, const char *fmt, ...)
{
	const char *what = strerrordesc_np(errnum);
	char number[32];
	va_list ap;

	if (!err)
		return -1;
	if (!what) {
		snprintf(number, sizeof(number), "error %d", errnum);
		what = number;
	}
	va_start(ap, fmt);
	compose(err, what, fmt, ap);
	va_end(ap);
	err->kind = kind_of_errno(errnum);
	err->code = errnum;
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char was[MSG_SIZE];
	va_list ap;

	if (!err)
		return -1;
	memcpy(was, err->msg, sizeof(was));
	was[sizeof(was) - 1] = '\0';
	va_start(ap, fmt);
	compose(err, was, fmt, ap);
	va_end(ap);
	return -1;
}

const char *err_kind_name(enum err_kind kind)
{
	return (unsigned)kind < ERR_KINDS ? kinds[kind].name : "io";
}

enum err_kind err_kind_from_name(const char *name)
{
	for (int i = 0; i < ERR_KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return (enum err_kind)i;
	return ERR_NONE;
}

int err_exit_code(enum err_kind kind)
{
	return (unsigned)kind < ERR_KINDS ? kinds[kind].exit_code : kinds[ERR_IO].exit_code;
}
