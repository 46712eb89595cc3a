#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/escape.h"

/* A longer text is cut; each escaped byte takes at most four. */
#define LOG_TEXT_MAX 2048
#define LOG_LINE_MAX (4 * LOG_TEXT_MAX + LOG_ROLE_MAX + 256)

static struct {
	atomic_int fd, also;
	_Atomic(enum log_level) max;
	char role[LOG_ROLE_MAX];
} out = {.fd = STDERR_FILENO, .also = -1, .max = LOG_INFO, .role = "regatta"};

void log_setup(int fd, const char *role, enum log_level max)
{
	out.fd = fd;
	out.max = max;
	snprintf(out.role, sizeof(out.role), "%s", role);
}

void log_also(int fd)
{
	out.also = fd;
}

static void write_line(int fd, struct str line)
{
	ssize_t written;

	do {
		written = write(fd, line.p, line.n);
	} while (written < 0 && errno == EINTR);
}

void log_at(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	char text[LOG_TEXT_MAX], when[32];
	va_list ap;

	if (level > out.max)
		return;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : strlen(text);
	if (len && text[len - 1] == '\n')
		len--;

	struct buf line;
	buf_init(&line, LOG_LINE_MAX);
	clock_format(clock_wall_ms(), when);
	buf_printf(&line, "%s %s: ", when, out.role);
	escape_terminal(&line, (struct str){text, len});
	if (n >= (int)sizeof(text))
		buf_addz(&line, "...");
	buf_addc(&line, '\n');
	/* One write, so that lines of several threads do not mix.  A failed write is ignored. */
	write_line(out.fd, buf_str(&line));
	if (out.also >= 0)
		write_line(out.also, buf_str(&line));
	buf_release(&line);
	errno = saved;
}
