"""One run of a master."""
import codecs
import hashlib
import os
import socket
import time
from typing import (Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Type, TYPE_CHECKING)
from urllib.parse import quote

from ._errors import Conflict, Invalid, NotFound, RunFailed, Unavailable, RegattaError
from ._transport import AGAIN_SECONDS, CHUNK, LOST, Transport

if TYPE_CHECKING:
    from types import TracebackType
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

ENDED = ("succeeded", "failed", "cancelled")


class Point(NamedTuple):
    """One sample of a series; `time` is Unix time in seconds."""
    time: float
    step: Optional[int]
    value: float


class Sample(NamedTuple):
    """One sample with its origin, as stream_metrics() yields them."""
    node: str
    name: str
    time: float
    step: Optional[int]
    value: float


class Event(NamedTuple):
    """Something that happened in a run."""
    seq: int
    time: float
    kind: str
    node: Optional[str]
    text: Optional[str]


class Note(NamedTuple):
    """What somebody wrote on a run; `time` is Unix time in seconds."""
    time: float
    text: str


class OutputFile(NamedTuple):
    """A file that the run has kept; `sha256` is None while the run goes on, `link` is None but for symbolic links."""
    path: str
    size: int
    sha256: Optional[str]
    link: Optional[str]


class Run:
    """A run.  Its properties are those of the object that was last read: refresh() and wait() read it anew.

    As a context manager it cancels the run if the block is left before the run has ended, by an exception or not,
    and waits for its end.
    """

    def __init__(self, transport: Transport, data: Dict[str, Any]) -> None:
        self._transport = transport
        self.data = data

    def __repr__(self) -> str:
        return f"<regatta.Run {self.id} {self.state}>"

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: "Optional[TracebackType]") -> None:
        try:
            if not self.refresh().ended:
                self.cancel()
                self.wait()
        except NotFound:  # the block, or somebody else, has removed it: nothing of it is left
            pass

    # ---- what it is ----

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def state(self) -> str:
        return str(self.data["state"])

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def verdict(self) -> Optional[str]:
        """succeeded, failed or cancelled; None before it is decided."""
        verdict: Optional[str] = self.data.get("verdict")
        return verdict

    @property
    def cause(self) -> Optional[str]:
        cause: Optional[str] = self.data.get("cause")
        return cause

    @property
    def exit_code(self) -> Optional[int]:
        """As `regatta run` would have ended: 0, 1 the job failed, 6 timed out, 7 cancelled ..."""
        code: Optional[int] = self.data.get("exit_code")
        return code

    @property
    def nodes(self) -> List[str]:
        return [n["name"] for n in self.data.get("nodes", [])]

    @property
    def params(self) -> Dict[str, Any]:
        """The parameters of its job."""
        return dict(self.data.get("params") or {})

    @property
    def tags(self) -> List[str]:
        return list(self.data.get("tags") or [])

    @property
    def notes(self) -> List["Note"]:
        """The oldest first."""
        return [Note(n["time_ms"] / 1000, n["text"]) for n in self.data.get("notes") or []]

    def path(self, rest: str = "") -> str:
        return f"/api/v1/runs/{quote(self.id, safe='')}{rest}"

    def refresh(self) -> "Run":
        self.data = self._transport.call("GET", self.path())
        return self

    def tag(self, *add: str, remove: Sequence[str] = ()) -> "Run":
        """Put tags on it and take others off, at any time."""
        self.data = self._transport.call("POST", self.path("/tags"), {"add": list(add), "remove": list(remove)})
        return self

    def note(self, text: str) -> "Run":
        """Write a note on it, at any time. If the master is lost before it answers, the note may be there."""
        self.data = self._transport.call("POST", self.path("/notes"), {"text": text}, once=True)
        return self

    # ---- its end ----

    def wait(self, timeout: Optional[float] = None, check: bool = False) -> "Run":
        """Until the run has ended and nothing of it is left.  TimeoutError after `timeout` seconds; with `check`,
        RunFailed unless it has succeeded."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.ended:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"run {self.id} has not ended within {timeout:g} s")
            try:
                for data in self._transport.lines(self.path("/watch"), {"last": 1}, timeout=left):
                    self.data = data
            except socket.timeout:
                continue
            except LOST:
                self.refresh()
        if check and self.verdict != "succeeded":
            raise RunFailed(f"run {self.id} {self.verdict}: {self.cause}", self.data)
        return self

    def cancel(self, now: bool = False) -> "Run":
        """SIGTERM, and after the grace period SIGKILL; with `now` SIGKILL at once."""
        self.data = self._transport.call("POST", self.path("/cancel"), {"hurry": now})
        return self

    def cleanup(self) -> None:
        """Remove all files of a run that has ended."""
        for _ in range(500):
            try:
                self._transport.call("POST", self.path("/cleanup"))
                return
            except Conflict:  # somebody, perhaps this program, has just stopped watching it
                if not self.refresh().ended:
                    raise
                time.sleep(0.02)
        self._transport.call("POST", self.path("/cleanup"))

    # ---- what it says ----

    def _node(self, node: Optional[str]) -> str:
        if node:
            return node
        nodes = self.nodes or self.refresh().nodes
        if len(nodes) != 1:
            raise Invalid(f"run {self.id} has {len(nodes)} nodes: say which one of {', '.join(nodes[:8])}", "invalid")
        return nodes[0]

    def log_chunks(self, node: Optional[str] = None, stream: str = "out", follow: bool = False,
                   offset: int = 0, since: Optional[str] = None) -> Iterator[bytes]:
        """The bytes of a log (`stream`: out, err or metrics) as they come, from the offset, or what reached the master
        `since` a time: "5m" ago, or as in RFC 3339.  A lost connection is taken up again where it was, so that no byte is
        missed or seen twice."""
        path = self.path(f"/logs/{quote(self._node(node), safe='')}")
        until = time.monotonic() + AGAIN_SECONDS
        while True:
            try:
                response = self._transport.open("GET", path, {
                    "stream": stream, "offset": None if since else offset, "since": since, "follow": 1 if follow else None,
                }, timeout=None)
                try:
                    if since:  # only the first answer is asked for by time
                        offset, since = int(response.headers["Regatta-Offset"]), None
                    for chunk in iter(lambda: response.read1(CHUNK), b""):
                        offset += len(chunk)
                        until = time.monotonic() + AGAIN_SECONDS
                        yield chunk
                finally:
                    self._transport.close(response)
                return
            except LOST as e:
                if time.monotonic() > until:
                    raise Unavailable(f"the log of run {self.id} was cut off: {e}") from e

    def logs(self, node: Optional[str] = None, stream: str = "out", follow: bool = False,
             since: Optional[str] = None) -> Iterator[str]:
        """The lines of a log, without their ends; with `follow` until the node has ended; `since` as for log_chunks()."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        for chunk in self.log_chunks(node, stream, follow, since=since):
            *lines, rest = (rest + decoder.decode(chunk)).split("\n")
            yield from lines
        rest += decoder.decode(b"", True)
        if rest:
            yield rest

    def events(self, follow: bool = False) -> Iterator[Event]:
        """What happened, in order; with `follow` until the run has ended."""
        seq = 0
        while True:
            try:
                for e in self._transport.lines(self.path("/events"), {"after": seq, "follow": 1 if follow else None}):
                    seq = e["seq"]
                    yield Event(seq, e["time_ms"] / 1000, e["kind"], e.get("node"), e.get("text"))
                return
            except LOST:
                self.refresh()

    # ---- its figures ----

    def metrics(self, host: bool = False) -> Dict[str, Dict[str, Any]]:
        """Per metric `better`, `all` and `nodes` with first, last, best, mean, count; with `host` those of the machines."""
        got = self._transport.call("GET", self.path("/metrics"), query={"host": 1 if host else None})
        return dict(got["metrics"])

    def series(self, name: str, node: Optional[str] = None) -> List[Point]:
        """All samples of a metric, in the order of their time over all nodes, or those of one node."""
        found = [Point(t / 1000, step, value) for s in self._series(name, node) for t, step, value in s["points"]]
        return sorted(found, key=lambda p: p.time)

    def _series(self, name: str, node: Optional[str] = None) -> List[Dict[str, Any]]:
        got = self._transport.call("GET", self.path("/metrics"), query={"name": name, "node": node, "host": 1})
        return list(got.get("series", []))

    def stream_metrics(self, *names: str) -> Iterator[Sample]:
        """Every sample of these metrics (default: all of the job's) as they come, until the run has ended."""
        seen: Dict[str, int] = {}  # samples of each node and name
        counts: Dict[str, int] = {}
        for data in self._watch():
            for name, figures in (data.get("metrics") or {}).items():
                if (names and name not in names) or counts.get(name) == figures["count"]:
                    continue
                counts[name] = figures["count"]
                for s in self._series(name):
                    key = f"{s['node']} {name}"
                    for t, step, value in s["points"][seen.get(key, 0):]:
                        yield Sample(s["node"], name, t / 1000, step, value)
                    seen[key] = len(s["points"])

    def _watch(self) -> Iterator[Dict[str, Any]]:
        """The run's object, now and after each change; the last one when it has ended."""
        while True:
            try:
                for data in self._transport.lines(self.path("/watch")):
                    self.data = data
                    yield data
                    if self.ended:
                        return
            except LOST:
                pass
            self.refresh()

    def frame(self, *names: str) -> "pandas.DataFrame":
        """The samples of these metrics (default: all) as a pandas table: name, node, time, step, value."""
        try:
            import pandas as pd
        except ImportError as e:
            raise RegattaError("pandas is not installed: series() gives lists without it", "invalid") from e
        rows = [(name, s["node"], t, step, value) for name in (names or tuple(self.metrics()))
                for s in self._series(name) for t, step, value in s["points"]]
        table = pd.DataFrame(rows, columns=["name", "node", "time", "step", "value"])
        table["time"] = pd.to_datetime(table["time"], unit="ms", utc=True)
        return table

    # ---- its files ----

    def outputs(self) -> List[OutputFile]:
        """The files that the run has kept; each path begins with the node's name."""
        return [OutputFile(f["path"], f["size"], f.get("sha256"), f.get("link"))
                for f in self._transport.call("GET", self.path("/outputs"))["files"]]

    def download(self, path: str, to: str) -> str:
        """Copy one of these files to the path `to`; its SHA-256 is checked if it is known.  Returns `to`."""
        if os.path.lexists(to) and (os.path.islink(to) or not os.path.isfile(to)):
            raise Invalid(f"'{to}' is no regular file: choose another place", "invalid")
        want = {f.path: f.sha256 for f in self.outputs()}.get(path)
        part = f"{to}.{os.getpid()}.part"
        digest = hashlib.sha256()
        response = self._transport.open("GET", self.path("/outputs/file"), {"path": path})
        try:
            with open(part, "wb") as f:
                for chunk in iter(lambda: response.read(CHUNK), b""):
                    digest.update(chunk)
                    f.write(chunk)
            if want and digest.hexdigest() != want:
                raise Unavailable(f"'{path}' has another SHA-256 than the run's record says")
            os.replace(part, to)
        finally:
            self._transport.close(response)
            if os.path.exists(part):
                os.unlink(part)
        return to
