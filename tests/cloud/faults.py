"""The fault script: what goes wrong, at which call, for how long.

    cloud.fault("RunInstances", error="InsufficientInstanceCapacity", status=500)     the next one
    cloud.fault("ec2:*", nth=3, lost="after")                                         the third: applied, answer lost (RST)
    cloud.fault("DescribeInstances", times=None, delay=2)                             every one
    cloud.fault("TerminateInstances", hook=kill_master, when="after")                 a crash point
    cloud.fault("RunInstances", times=None, rate=(5, 2))                              a bucket of 5, 2 a second
    cloud.fault("DescribeInstances", cut=100)                                         100 bytes of the answer, then a reset
"""
import fnmatch
import threading
import time

from .errors import Answer, Refused

HTML = b"<!DOCTYPE html><html><head><meta charset=utf-8><title>Sign in</title></head><body>Please sign in to this network.<br></body></html>"
THROTTLED = {"ec2": ("RequestLimitExceeded", 503), "s3": ("SlowDown", 503)}
DENIED = {"ec2": ("UnauthorizedOperation", 403), "s3": ("AccessDenied", 403)}


class Lost(Exception):
    """The connection ends with a reset."""


class Fault:
    """One line of the script.  nth: from which matching call on (1 is the next); times: for how many (None: for ever)."""

    def __init__(self, action, nth=1, times=1, when="before", delay=0, lost=None, error=None, status=400, message="as the test wants it",
                 throttle=False, server_error=False, html=False, denied=False, rate=None, cut=None, change=None, hook=None, where=None):
        self.action, self.nth, self.times, self.where = action, nth, times, where
        self.when = lost or when
        assert self.when in ("before", "after"), self.when
        self.delay, self.is_lost, self.error, self.status, self.message = delay, bool(lost), error, status, message
        self.throttle, self.server_error, self.html, self.denied, self.hook = throttle, server_error, html, denied, hook
        self.rate, self.cut, self.change = rate, cut, change
        self.level, self.filled = rate[0] if rate else 0, time.monotonic()
        self.seen, self.hits = 0, 0

    def fits(self, call):
        pattern = self.action if ":" in self.action else f"*:{self.action}"
        return fnmatch.fnmatch(f"{call.service}:{call.action}", pattern) and (not self.where or self.where(call))

    def take(self):
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True

    def is_empty(self):
        """Takes one from the bucket, as EC2 does with each call."""
        now = time.monotonic()
        self.level, self.filled = min(self.rate[0], self.level + (now - self.filled) * self.rate[1]), now
        if self.level < 1:
            return True
        self.level -= 1
        return False

    def reshape(self, done):
        """Of an answer: cut off, or made another by the test (change: Answer -> Answer)."""
        if self.cut is not None:
            done.cut = self.cut
        return self.change(done) if self.change else done

    def strike(self, call):
        """Answer: this instead; None: go on.  Lost and Refused are raised."""
        if self.hook:
            self.hook(call)
        if self.delay:
            time.sleep(self.delay)
        if self.is_lost:
            raise Lost
        if self.html:
            return Answer(200, [("Content-Type", "text/html")], HTML)
        if self.server_error:
            raise Refused("InternalError" if call.service in ("ec2", "s3") else "InternalFailure", "An internal error has occurred", 500)
        if self.throttle or (self.rate and self.is_empty()):
            raise Refused(*self.named(THROTTLED, call, ("Throttling", 400), "Rate exceeded"))
        if self.denied:
            raise Refused(*self.named(DENIED, call, ("AccessDenied", 403), f"not authorized to perform: {call.service}:{call.action}"))
        if self.error:
            raise Refused(self.error, self.message, self.status)
        return None

    @staticmethod
    def named(table, call, otherwise, text):
        code, status = table.get(call.service, otherwise)
        return code, text, status


class Script:
    def __init__(self):
        self.lock, self.faults = threading.Lock(), []

    def add(self, action, **options):
        fault = Fault(action, **options)
        with self.lock:
            self.faults.append(fault)
        return fault

    def clear(self):
        with self.lock:
            self.faults.clear()

    def of(self, call):
        """Those that strike this call."""
        with self.lock:
            return [fault for fault in self.faults if fault.fits(call) and fault.take()]
