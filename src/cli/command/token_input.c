#include "cli/command/token_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"

#define MAX_TOKEN 4096

/* Reads a token, one line, from a file or standard input. */
static int read_token(const char *path, struct arena *a, const char **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	bool from_stdin = strcmp(path, "-") == 0;

	buf_init(&text, MAX_TOKEN);
	CLEANUP(close_fdp)
	int fd = from_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "read the token from '%.120s'", path);
	for (;;) {
		char *p = buf_reserve(&text, MAX_TOKEN / 4);
		ssize_t n = p ? read(fd, p, MAX_TOKEN / 4) : 0;
		if (n < 0)
			return err_errno(err, errno, "read the token from '%.120s'", path);
		if (n == 0)
			break;
		buf_commit(&text, (size_t)n);
	}
	*ret = arena_str(a, str_trim(buf_str(&text))).p;
	explicit_bzero(text.p, text.n);
	return 0;
}

int token_input(const struct cli_call *c, struct arena *a, const char **ret, struct err *err)
{
	const char *token = call_text(c, "token"), *file = call_text(c, "token-file");

	if (token && file)
		return err_set(err, ERR_INVALID, "--token and --token-file exclude each other");
	if (file || (token && strcmp(token, "-") == 0))
		return read_token(file ? file : "-", a, ret, err);
	if (!token)
		return err_set(
			err, ERR_INVALID,
			"a token is needed: --token-file FILE, --token-file - or --token TOKEN "
			"(that master's user makes one with 'regatta token new')");
	*ret = token;
	return 0;
}
