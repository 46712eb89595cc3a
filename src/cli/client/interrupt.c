#include "cli/client/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/err.h"

#define PATIENCE_S 1 /* for the master's answer after the first signal */

static const int numbers[] = {SIGINT, SIGTERM};
#define NSIGNALS (sizeof(numbers) / sizeof(numbers[0]))

static volatile sig_atomic_t came; /* the first of the signals, 0 = none */
static volatile int stopped;
static timer_t timer;
static struct sigaction before[NSIGNALS], timer_before;

const volatile int *const interrupt_flag = &stopped;

static void on_signal(int signo)
{
	const struct itimerspec at = {.it_value = {.tv_sec = PATIENCE_S}};
	int saved = errno;

	if (came)
		stopped = 1;
	else
		timer_settime(timer, 0, &at, NULL);
	came = signo;
	errno = saved;
}

static void on_timer(int signo)
{
	(void)signo;
	stopped = 1;
}

static void set_blocked(bool blocked)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaddset(&set, numbers[i]);
	pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int interrupt_begin(struct err *err)
{
	struct sigaction on = {.sa_handler = on_signal}, at_time = {.sa_handler = on_timer};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};

	came = 0;
	stopped = 0;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return err_errno(err, errno, "make a timer");
	sigaction(SIGRTMIN, &at_time, &timer_before);
	for (size_t i = 0; i < NSIGNALS; i++) {
		sigaction(numbers[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(numbers[i], &on, NULL);
	}
	set_blocked(false);
	return 0;
}

void interrupt_end(void)
{
	set_blocked(true);
	timer_delete(timer);
	sigaction(SIGRTMIN, &timer_before, NULL);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaction(numbers[i], &before[i], NULL);
	if (came && !stopped)
		raise(came);
}
