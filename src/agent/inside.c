#include "agent/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "link/layout.h"
#include "sys/child.h"

#define CODE_NOT_RUN 126
#define CODE_NO_PROGRAM 127
#define CODE_SIGNAL 128

bool inside_is(const char *argv0)
{
	return argv0 && strcmp(path_base(argv0), LAYOUT_INSIDE) == 0;
}

static void __attribute__((noreturn)) run(char **argv)
{
	child_reset_signals();
	execvp(argv[0], argv);
	bool missing = errno == ENOENT;

	fprintf(stderr, "regatta: command '%s': %s\n", argv[0],
		missing ? "not found in the container" : strerror(errno));
	_exit(missing ? CODE_NO_PROGRAM : CODE_NOT_RUN);
}

/* The command is in the process group of this program, which must not be stopped: who would end the command then? */
static void give_signal(int signo)
{
	kill(0, signo == SIGSTOP ? SIGTSTP : signo);
}

static void take_signals(int fifo)
{
	unsigned char numbers[16];
	ssize_t n = read(fifo, numbers, sizeof(numbers));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	for (ssize_t i = 0; i < n; i++)
		give_signal(numbers[i]);
	if (n <= 0)
		kill(0, SIGKILL);
}

static int wait_for(pid_t pid, int fifo, int ended)
{
	struct pollfd p[] = {{.fd = ended, .events = POLLIN}, {.fd = fifo, .events = POLLIN}};
	struct signalfd_siginfo ignored;
	int status = 0;

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents && read(ended, &ignored, sizeof(ignored)) > 0 &&
		    waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) ? CODE_SIGNAL + WTERMSIG(status)
						   : WEXITSTATUS(status);
		if (p[1].revents)
			take_signals(fifo);
	}
}

int inside_main(int argc, char **argv)
{
	CLEANUP(close_fdp) int fifo = -1, ended = -1;
	unsigned char early[16]; /* signals that came before the command runs */
	sigset_t all, child;

	if (argc < 3) {
		fprintf(stderr, "usage: " LAYOUT_INSIDE " FIFO COMMAND...\n");
		return CODE_NOT_RUN;
	}
	/* What is for the command, from a terminal or by way of the FIFO, must not end this program at any time. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	fifo = open(argv[1], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ended = signalfd(-1, &child, SFD_CLOEXEC);
	if (fifo < 0 || ended < 0) {
		fprintf(stderr, "regatta: '%s': %s\n", argv[1], strerror(errno));
		return CODE_NOT_RUN;
	}
	/* Nobody has the other end if the agent was killed meanwhile, and poll() would not say so. */
	ssize_t n = read(fifo, early, sizeof(early));

	if (n == 0) {
		fprintf(stderr, "regatta: nobody waits for the command any more\n");
		return CODE_NOT_RUN;
	}
	setsid(); /* fails where it leads a session already */
	pid_t pid = fork();

	if (pid == 0)
		run(argv + 2);
	if (pid < 0) {
		fprintf(stderr, "regatta: fork: %s\n", strerror(errno));
		return CODE_NOT_RUN;
	}
	for (ssize_t i = 0; i < n; i++)
		give_signal(early[i]);
	return wait_for(pid, fifo, ended);
}
