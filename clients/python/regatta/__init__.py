"""Runs of a Regatta master: submit them, wait for them, read their logs, metrics and outputs.

    with regatta.connect() as master:
        run = master.submit({"name": "hello", "command": ["echo", "hi"]})
        for line in run.logs(follow=True):
            print(line)
        print(run.wait().verdict)

Standard library only.  docs/python.md has the whole of it.
"""
from ._client import Master, connect
from ._errors import (Conflict, Denied, Invalid, NotFound, RegattaError, RunFailed, Throttled, Unavailable)
from ._run import Event, Note, OutputFile, Point, Run, Sample

__all__ = ["Conflict", "Denied", "Event", "Invalid", "Master", "NotFound", "Note", "OutputFile", "Point", "RegattaError",
           "Run", "RunFailed", "Sample", "Throttled", "Unavailable", "connect"]
__version__ = "0.1.0"
