#include "agent/shim/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/environ.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sys/child.h"
#include "sys/title.h"

#define WIDTH 80
#define HEIGHT 24
#define MASTER_FD 3
#define FIFO_FD 4
#define COPY_BYTES 65536

/* ---- the reader's process ---- */

static bool write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno != EINTR)
			return false;
		p += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return true;
}

static void __attribute__((noreturn)) reader_main(int master, int fifo)
{
	static char bytes[COPY_BYTES];

	setsid();
	prctl(PR_SET_NAME, "regatta-term");
	title_role("term");
	/* Moved to high numbers first: each may have the other's target number. */
	if ((master = fcntl(master, F_DUPFD, FIFO_FD + 1)) < 0 ||
	    (fifo = fcntl(fifo, F_DUPFD, FIFO_FD + 1)) < 0 || dup2(master, MASTER_FD) < 0 ||
	    dup2(fifo, FIFO_FD) < 0)
		_exit(1);
	child_close_from(FIFO_FD + 1);
	for (;;) {
		ssize_t n = read(MASTER_FD, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		/* EIO: the slave side is closed, and everything written to it was read. */
		if (n <= 0 || !write_all(FIFO_FD, bytes, (size_t)n))
			_exit(0);
	}
}

/* ---- opening the terminal ---- */

static unsigned short size_from(const char *const *env, const char *name, unsigned short fallback)
{
	long n = strtol(environ_get(env, name), NULL, 10);

	return n > 0 && n <= UINT16_MAX ? (unsigned short)n : fallback;
}

/* Raw mode: bytes are not changed.  VMIN and VTIME 0: a read returns end of file. */
static int set_modes(int slave, const char *const *env)
{
	struct winsize size = {.ws_row = size_from(env, "LINES", HEIGHT),
			       .ws_col = size_from(env, "COLUMNS", WIDTH)};
	struct termios modes;

	if (tcgetattr(slave, &modes) < 0)
		return -1;
	cfmakeraw(&modes);
	modes.c_cc[VMIN] = modes.c_cc[VTIME] = 0;
	if (tcsetattr(slave, TCSANOW, &modes) < 0)
		return -1;
	return ioctl(slave, TIOCSWINSZ, &size);
}

int terminal_start(int out_fifo, const char *const *env, int *ret_slave, struct proc_id *ret_reader,
		   struct err *err)
{
	CLEANUP(close_fdp) int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	CLEANUP(close_fdp) int slave = -1;
	char name[64];

	if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
		return err_errno(err, errno, "open a terminal for the job");
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || set_modes(slave, env) < 0)
		return err_errno(err, errno, "open the job's terminal '%s'", name);
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(err, errno, "fork the reader of the job's terminal");
	if (pid == 0)
		reader_main(master, out_fifo);
	*ret_reader = proc_id_of(pid);
	*ret_slave = TAKE_FD(slave);
	return 0;
}

int terminal_attach(int slave)
{
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		return -1;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(slave, fd) < 0)
			return -1;
	return 0;
}
