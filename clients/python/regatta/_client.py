"""A master: one's own, or another one by its URL, pin and token."""
import fnmatch
import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
import uuid
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TYPE_CHECKING, Union

from ._errors import Invalid, NotFound, error_of
from ._run import Run
from ._transport import Transport, find_home, read_context, tree_names

if TYPE_CHECKING:
    from types import TracebackType

PASSED_HERE = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TERM", "LD_LIBRARY_PATH",
               "PYTHONPATH", "VIRTUAL_ENV", "CONDA_*", "CUDA_*", "NVIDIA_*")
PASSED_ANYWHERE = ("LANG", "LC_*", "TZ", "TERM")
EXIT_KINDS = {2: "invalid", 3: "not_found", 4: "denied", 5: "capacity", 6: "timeout", 7: "cancelled"}
PAGE = 200

Job = Union[Mapping[str, Any], str, "os.PathLike[str]"]


def connect(url: Optional[str] = None, pin: Optional[str] = None, token: Optional[str] = None,
            context: Optional[str] = None, home: Optional[str] = None, program: str = "regatta") -> "Master":
    """Without arguments one's own master, which `program` starts if none runs.  With `url` (https://...), `pin` and
    `token` another one; `context` is the name under which `regatta context add` has stored the three."""
    where = os.path.abspath(home) if home else find_home()
    if url is None and (context is None or context == "local"):
        return Master(Transport.local(where, program), where, program, None)
    if url is None:
        stored = read_context(where, str(context))
        url, pin, token = stored["url"], stored.get("pin"), stored["token"]
    # As they are read from a file, with a line break, they would be no header.
    return Master(Transport.https(url, pin and pin.strip(), token and token.strip()), where, program, context or url)


class Master:
    """As a context manager it does nothing but mark where it is used: connections are made for each call."""

    def __init__(self, transport: Transport, home: str, program: str, remote: Optional[str]) -> None:
        self._transport = transport
        self._home = home
        self._program = program
        self._remote = remote

    def __repr__(self) -> str:
        return f"<regatta.Master {self._transport.where}>"

    def __enter__(self) -> "Master":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: "Optional[TracebackType]") -> None:
        pass

    def version(self) -> str:
        return str(self._transport.call("GET", "/api/v1/version")["version"])

    def run(self, name: str) -> Run:
        """The run of this id, or of a unique beginning of one."""
        if not name:
            raise NotFound("the name of a run is empty", "not_found")
        run = Run(self._transport, {"id": name, "state": ""})
        return run.refresh()

    def runs(self, active: bool = False, state: Optional[str] = None, name: Optional[str] = None,
             tags: Sequence[str] = (), engine: Optional[str] = None, since: Optional[float] = None) -> Iterator[Run]:
        """All runs, the newest first; with `active` only those that have not ended.  `state` is one of a run or several
        joined by commas, `name` and `engine` are globs, `tags` must all be there, `since` is Unix time in seconds."""
        before: Optional[str] = None
        while True:
            page = self._transport.call("GET", "/api/v1/runs", query={
                "state": state or ("active" if active else "all"), "limit": PAGE, "before": before, "name": name,
                "engine": engine, "tag": list(tags), "since": None if since is None else int(since * 1000)})["runs"]
            for data in page:
                yield Run(self._transport, data)
            if len(page) < PAGE:
                return
            before = page[-1]["id"]

    def submit(self, job: Job, set: Optional[Mapping[str, Any]] = None, env: Optional[Mapping[str, str]] = None,
               base_dir: Optional[str] = None, tags: Sequence[str] = ()) -> Run:
        """Start a run and return at once.

        A mapping has the keys of a job file; a relative `source` in it is a path below `base_dir` (default: the current
        directory) and is uploaded.  A path is that of a job file, which the program reads, as `regatta run -d` would,
        with everything that it can upload or resolve; `set` changes keys of it, e.g. {"roles.trainer.count": 8}.
        `tags` are words on the run.  `env` adds variables to the job's.  What `pass` of the job names is taken from this process' environment.
        """
        if isinstance(job, Mapping):
            if set:
                raise Invalid("'set' is for a job file: change the mapping instead", "invalid")
            return self._submit_mapping(dict(job), env or {}, os.path.abspath(base_dir or "."), tags)
        if base_dir is not None:
            raise Invalid("'base_dir' is for a mapping: a job file has its own directory", "invalid")
        words: List[str] = []
        for key, value in (set or {}).items():
            words += ["--set", f"{key}={_toml(key, value)}"]
        for key, value in (env or {}).items():
            words += ["--env", f"{key}={value}"]
        for tag in tags:
            words += ["--tag", tag]
        path = os.fspath(job)
        return self._submit_file(os.path.join(".", path) if path.startswith("-") else path, words)

    def _submit_file(self, path: str, options: List[str]) -> Run:
        if self._remote and self._remote.startswith("https:"):
            raise Invalid("a job file is read by the regatta program, which knows this master by a context only: "
                          "connect(context=NAME), or submit a mapping", "invalid")
        words = [self._program, "run", "-d", "--output", "json", "--master", self._remote or "local", *options, path]
        try:
            done = subprocess.run(words, env={**os.environ, "REGATTA_HOME": self._home}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
        except OSError as e:
            raise error_of("unavailable", f"'{self._program}' cannot be started: {e}") from e
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["regatta run failed"]
            raise error_of(EXIT_KINDS.get(done.returncode, "unavailable"), lines[0].replace("regatta: ", "", 1), lines[1:])
        return self.run(json.loads(done.stdout)["id"])

    def _submit_mapping(self, job: Dict[str, Any], env: Mapping[str, str], base_dir: str, tags: Sequence[str]) -> Run:
        if env:
            job["env"] = {**job.get("env", {}), **env}
        asked = job.get("pass", ())
        passed = (PASSED_ANYWHERE if self._remote else PASSED_HERE) + tuple([asked] if isinstance(asked, str) else asked)
        body: Dict[str, Any] = {"request_id": uuid.uuid4().hex, "job": job, "base_dir": base_dir, "tags": list(tags),
                                "client_env": {k: v for k, v in os.environ.items() if _is_passed(k, v, passed)}}
        source = job.get("source")
        if isinstance(source, str) and "://" not in source:
            body["source_sha256"] = self._upload_source(os.path.join(base_dir, source))
        return Run(self._transport, self._transport.call("POST", "/api/v1/runs", body))

    def _upload_source(self, path: str) -> str:
        with tempfile.TemporaryFile() as file:
            digest, size = _pack(path, file)
            blob = f"/api/v1/blobs/{digest}"
            try:
                self._transport.close(self._transport.open("HEAD", blob))
            except NotFound:
                file.seek(0)
                self._transport.upload(blob, file, size)
            return digest


def _toml(key: str, value: Any) -> str:
    """A string stays one, whatever it looks like: what JSON writes for it TOML reads, but for DEL, and so it is with
    numbers of 64 bits.  What TOML does not read would arrive as a string, with its quotes and brackets."""
    if value is None:
        raise Invalid(f"'set': {key} is None: a key of a job always has a value", "invalid")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key, str(k))} = {_toml(f'{key}.{k}', v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(key, v) for v in value) + "]"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, int) and not -1 << 63 <= value < 1 << 63:
        raise Invalid(f"'set': {key}: {value} is no whole number of 64 bits", "invalid")
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
        return text.replace("\x7f", "\\u007f")
    except (TypeError, UnicodeEncodeError) as e:
        raise Invalid(f"'set': {key}: {e}", "invalid") from e


def _is_passed(name: str, value: str, passed: "tuple[str, ...]") -> bool:
    """A variable that is not UTF-8 cannot be sent: it stays here, as with the command line."""
    return (not name.startswith("REGATTA_") and any(fnmatch.fnmatchcase(name, p) for p in passed) and
            not any("\ud800" <= c <= "\udfff" for c in name + value))


def _check_packable(source: str, path: str, name: str) -> None:
    """Content of files is packed, also through links; what would be missing there is refused."""
    if os.path.islink(path) and os.path.isdir(path):
        raise Invalid(f"source '{source}': '{name}' is a link to a directory", "invalid")
    if not os.path.exists(path):
        raise Invalid(f"source '{source}': '{name}' is a link that leads nowhere", "invalid")
    if not os.path.isfile(path) and not os.path.isdir(path):
        raise Invalid(f"source '{source}': '{name}' is a device, socket or pipe: only files and directories are packed", "invalid")


def _pack(path: str, file: BinaryIO) -> "tuple[str, int]":
    """A file or directory as an archive whose bytes depend on names, modes and contents only."""
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = 0
        return info

    if not os.path.exists(path):
        raise Invalid(f"source '{path}': there is no such file or directory", "invalid")
    names: List[str] = tree_names(path) if os.path.isdir(path) else [os.path.basename(path)]
    top = path if os.path.isdir(path) else os.path.dirname(path)
    for name in names:
        _check_packable(path, os.path.join(top, name), name)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
        for name in names:
            archive.add(os.path.join(top, name), name, recursive=False, filter=plain)
    size = file.tell()
    file.seek(0)
    digest = hashlib.sha256()
    for chunk in iter(lambda: file.read(1 << 20), b""):
        digest.update(chunk)
    return digest.hexdigest(), size
