"""What can go wrong, by the kinds of the service (docs/api.md)."""
from typing import Dict, List, Optional, Type


class RegattaError(Exception):
    """An error of the service: `kind` is a word for programs, the text is for people."""

    def __init__(self, message: str, kind: str = "unavailable", details: Optional[List[str]] = None) -> None:
        super().__init__("\n".join([message, *(details or [])]))
        self.kind = kind
        self.message = message
        self.details: List[str] = details or []


class Invalid(RegattaError):
    """The job or the request is wrong; `details` has every problem with its place."""


class NotFound(RegattaError):
    """There is no such run, node or file."""


class Denied(RegattaError):
    """The token is missing, wrong, or may not do this."""


class Conflict(RegattaError):
    """Not now: the word means several runs, or the run has not ended."""


class Throttled(RegattaError):
    """Too many calls or streams."""


class Unavailable(RegattaError):
    """No master answers."""


class RunFailed(RegattaError):
    """The run has ended otherwise than succeeded; `run` is its object."""

    def __init__(self, message: str, run: Dict[str, object]) -> None:
        super().__init__(message, "failed")
        self.run = run


KINDS: Dict[str, Type[RegattaError]] = {
    "invalid": Invalid, "not_found": NotFound, "denied": Denied, "conflict": Conflict, "throttled": Throttled,
    "unavailable": Unavailable,
}


def error_of(kind: str, message: str, details: Optional[List[str]] = None) -> RegattaError:
    return KINDS.get(kind, RegattaError)(message, kind, details)
