"""For programs that run until they are interrupted, and then remove what they have made."""
import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    pass


def stop(number, _frame):
    """A second signal does not disturb the removal."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(signal.Signals(number).name)


def stop_on_signals():
    """From now on they raise Stopped."""
    for number in SIGNALS:
        signal.signal(number, stop)
