#include "sys/nest_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sys/child.h"
#include "sys/title.h"

#define LOG_MAX_BYTES (8 * 1024 * 1024)
#define YARD_FD 3 /* the only descriptor a child has of the nest */

bool nest_request_parse(char *text, size_t n, struct nest_child *ret)
{
	const char **words[] = {&ret->mark, &ret->arg, &ret->log};
	struct str rest = {text, n};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *end = memchr(rest.p, '\0', rest.n);

		if (!end)
			return false;
		*words[i] = rest.p;
		rest.n -= (size_t)(end + 1 - rest.p);
		rest.p = end + 1;
	}
	return rest.n == 0 && strlen(ret->mark) == NEST_MARK_LEN;
}

/* One log for all, so it must not grow for ever: the last full one is kept beside it. */
int nest_open_log(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < LOG_MAX_BYTES)
		return fd;
	CLEANUP(freep) char *old = xasprintf("%s.old", path);

	if (rename(path, old) < 0)
		return fd;
	close(fd);
	return open(path, flags, 0600);
}

static bool say(int64_t answer)
{
	struct nest_word w = {getpid(), answer};

	return send(YARD_FD, &w, sizeof(w), MSG_NOSIGNAL) == (ssize_t)sizeof(w);
}

/* Take the next request and answer it.  False: there is none for us any more. */
static bool next(const struct nest_home *home, char *text, struct nest_child *ret)
{
	while (say(0)) {
		ssize_t got;

		do {
			got = recv(YARD_FD, text, NEST_REQUEST_MAX, 0);
		} while (got < 0 && errno == EINTR);
		if (got <= 0 || !nest_request_parse(text, (size_t)got, ret))
			return false;
		CLEANUP(close_fdp) int log = nest_open_log(ret->log);

		if (log >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0) {
			/* Before the answer: from its first moment it can be found by its mark. */
			memcpy(home->mark, ret->mark, NEST_MARK_LEN);
			return say(getpid());
		}
		if (!say(-errno))
			return false;
	}
	return false;
}

/* Nothing of what it was may be seen in one that waits. */
static void rest(const struct nest_home *home)
{
	memcpy(home->mark, NEST_MARK_NONE, NEST_MARK_LEN);
	title_words("nest", home->name);
	prctl(PR_SET_NAME, "regatta-nest");
}

void nest_child_main(const struct nest_home *home, const struct nest_child *first, int log)
{
	char *text = xmalloc(NEST_REQUEST_MAX);
	struct nest_child c = *first;
	int rc;

	setsid();
	child_reset_signals();
	if (dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
	    (home->yard != YARD_FD && dup3(home->yard, YARD_FD, O_CLOEXEC) < 0))
		_exit(errno);
	child_close_from(YARD_FD + 1);
	for (int turn = 1;; turn++) {
		bool stay = false;

		title_words("agent", c.arg);
		rc = home->role->run(c.arg, &stay);
		if (!stay || turn == NEST_TURNS)
			break;
		rest(home);
		if (!next(home, text, &c))
			break;
	}
	free(text);
	exit(rc);
}
