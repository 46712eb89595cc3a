#include "base/exit_text.h"

#include <signal.h>
#include <string.h>

#include "base/buf.h"

#define OOM "out of memory"

static void add_signal(struct buf *out, int number)
{
	const char *name = number < NSIG ? sigabbrev_np(number) : NULL;

	if (name)
		buf_printf(out, "killed by SIG%s", name);
	else
		buf_printf(out, "killed by signal %d", number);
}

void exit_describe(struct buf *out, int code, int signal, bool oom, struct str reason)
{
	size_t start = out->n;

	if (signal > 0)
		add_signal(out, signal);
	else if (code >= 0)
		buf_printf(out, "exit code %d", code);
	/* The agent's reason may already say "out of memory". */
	if (oom && (!reason.n || !memmem(reason.p, reason.n, OOM, strlen(OOM))))
		buf_addz(out, out->n > start ? ", " OOM : OOM);
	if (reason.n == 0)
		return;
	buf_addz(out, out->n > start ? ": " : "");
	buf_addstr(out, reason);
}
