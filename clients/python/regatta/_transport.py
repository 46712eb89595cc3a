"""Requests to a master: over its unix socket, or over HTTPS with the pin of its key and a token."""
import base64
import hashlib
import hmac
import http.client
import json
import os
import socket
import ssl
import subprocess
import time
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple, Union
from urllib.parse import urlencode, urlsplit

from ._errors import Denied, Invalid, Unavailable, error_of

CALL_SECONDS = 60.0
CONNECT_SECONDS = 10.0
AGAIN_SECONDS = 30.0  # how long a lost master is looked for
CHUNK = 256 * 1024
STATUS_KINDS = {400: "invalid", 401: "denied", 403: "denied", 404: "not_found", 409: "conflict", 429: "throttled"}
LOST = (http.client.HTTPException, ConnectionError, ssl.SSLError)

Query = Dict[str, Union[None, str, int, List[str]]]


def _der_next(data: bytes, at: int) -> Tuple[int, int, int]:
    """Tag, start and end of the content of the element at this place."""
    tag, length, at = data[at], data[at + 1], at + 2
    if length & 0x80:
        n = length & 0x7F
        length, at = int.from_bytes(data[at:at + n], "big"), at + n
    return tag, at, at + length


def pin_of(certificate: bytes) -> str:
    """The pin of a certificate (DER): base64 of the SHA-256 of its public key."""
    _, at, _ = _der_next(certificate, 0)
    _, at, _ = _der_next(certificate, at)
    tag, _, end = _der_next(certificate, at)
    fields = 5 if tag == 0xA0 else 4  # after the version: serial, algorithm, issuer, validity, subject
    at = end
    for _ in range(fields):
        _, _, at = _der_next(certificate, at)
    _, _, end = _der_next(certificate, at)
    return "sha256//" + base64.b64encode(hashlib.sha256(certificate[at:end]).digest()).decode()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CALL_SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_SECONDS)
        # A path may be longer than a socket address: the directory is opened, and the name below it used.
        directory = os.open(os.path.dirname(self.path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(self.path)}")
        finally:
            os.close(directory)
        self.sock.settimeout(self.timeout)


class _PinnedConnection(http.client.HTTPConnection):
    """The pin is checked before anything is sent; without one the certificate must be of a trusted CA."""

    def __init__(self, host: str, port: int, pin: Optional[str]) -> None:
        super().__init__(host, port, timeout=CALL_SECONDS)
        self.pin = pin

    def connect(self) -> None:
        context = ssl.create_default_context()
        if self.pin:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        try:
            tls = context.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise
        seen = pin_of(tls.getpeercert(binary_form=True) or b"") if self.pin else ""
        if self.pin and not hmac.compare_digest(seen, self.pin):
            tls.close()
            raise Denied(f"the master at {self.host}:{self.port} has another key than the pin says", "denied")
        tls.settimeout(self.timeout)
        self.sock = tls


class Transport:
    """Makes one connection for each call and stream; any thread may use it."""

    def __init__(self, make: Callable[[], http.client.HTTPConnection], where: str, token: Optional[str] = None,
                 start: Optional[Callable[[], None]] = None) -> None:
        self._make = make
        self._token = token
        self._start = start
        self.where = where

    @classmethod
    def local(cls, home: str, program: str) -> "Transport":
        path = os.path.join(home, "api.sock")

        def start() -> None:
            """Any command starts the user's master."""
            try:
                done = subprocess.run([program, "ps", "--output", "json"], env={**os.environ, "REGATTA_HOME": home,
                                      "REGATTA_MASTER": "local"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            except OSError as e:
                raise Unavailable(f"no master runs in '{home}', and '{program}' cannot start one: {e}") from e
            if done.returncode:
                raise Unavailable(done.stderr.decode(errors="replace").strip())

        return cls(lambda: _UnixConnection(path), path, start=start)

    @classmethod
    def https(cls, url: str, pin: Optional[str], token: Optional[str]) -> "Transport":
        at = urlsplit(url)
        try:
            host, port = at.hostname, at.port or 443
        except ValueError:  # a port of more than 65535
            host = None
        if at.scheme != "https" or not host:
            raise Invalid(f"'{url}' is not the https URL of a master", "invalid")
        return cls(lambda: _PinnedConnection(host, port, pin), url, token=token)

    def _open(self, method: str, path: str, query: Optional[Query], body: Union[None, bytes, BinaryIO], length: int,
              timeout: Optional[float], once: bool = False) -> http.client.HTTPResponse:
        asked = {k: v for k, v in (query or {}).items() if v is not None}
        connection, sent = self._make(), False
        connection.timeout = timeout
        headers = {"Content-Type": "application/json", "Content-Length": str(length)} if body is not None else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.connect()
            sent = once
            connection.request(method, path + ("?" + urlencode(asked, doseq=True) if asked else ""), body, headers)
            response = connection.getresponse()
        except BaseException as e:
            connection.close()
            if sent and isinstance(e, LOST):
                raise Unavailable(f"the master at {self.where} was lost before it answered: look whether it has done it") from e
            raise
        # The response owns the connection from here on: closing it closes both.
        response._regatta_connection = connection  # type: ignore[attr-defined]
        return response

    def open(self, method: str, path: str, query: Optional[Query] = None, body: Optional[bytes] = None,
             timeout: Optional[float] = CALL_SECONDS, once: bool = False) -> http.client.HTTPResponse:
        """The answer to a request; a lost or missing master is looked for again, and started if it is one's own. What would
        be done twice is sent `once`."""
        until = time.monotonic() + AGAIN_SECONDS
        pause, started = 0.05, False
        while True:
            try:
                response = self._open(method, path, query, body, len(body or b""), timeout, once)
                break
            except socket.timeout:
                raise
            except (OSError, http.client.HTTPException) as e:
                if isinstance(e, ssl.SSLCertVerificationError):
                    raise Denied(f"the certificate of the master at {self.where} is not of a CA that is trusted here: give its "
                                 f"pin ('regatta master' prints it): {e.verify_message}", "denied") from e
                if time.monotonic() > until:
                    raise Unavailable(f"the master at {self.where} does not answer: {e}") from e
                if self._start and not started:
                    started = True
                    self._start()
                elif not self._start and isinstance(e, (ConnectionRefusedError, socket.gaierror)):
                    raise Unavailable(f"the master at {self.where} does not answer: {e}") from e
                else:
                    time.sleep(pause)
                    pause = min(2 * pause, 1.0)
        if response.status >= 300:
            raise self._error(response)
        return response

    def _error(self, response: http.client.HTTPResponse) -> Exception:
        text = response.read(1 << 20)
        self.close(response)
        try:
            said = json.loads(text)["error"]
            return error_of(said["kind"], said["message"], said.get("details"))
        except (ValueError, KeyError, TypeError):
            # An answer without a body, to a HEAD say.
            return error_of(STATUS_KINDS.get(response.status, "unavailable"),
                            f"the master at {self.where} answered {response.status}")

    def call(self, method: str, path: str, body: Any = None, query: Optional[Query] = None, once: bool = False) -> Any:
        text = None if body is None and method == "GET" else json.dumps(body if body is not None else {}).encode()
        try:
            response = self.open(method, path, query, text, once=once)
            try:
                return json.loads(response.read())
            finally:
                self.close(response)
        except socket.timeout as e:
            raise Unavailable(f"the master at {self.where} does not answer: {e}") from e

    def upload(self, path: str, file: BinaryIO, size: int) -> None:
        response = self._open("PUT", path, None, file, size, None)
        if response.status >= 300:
            raise self._error(response)
        response.read()
        self.close(response)

    def lines(self, path: str, query: Optional[Query] = None, timeout: Optional[float] = None) -> Iterator[Dict[str, Any]]:
        """JSON lines of a stream, until its end."""
        response = self.open("GET", path, query, timeout=timeout)
        try:
            for line in iter(response.readline, b""):
                yield json.loads(line)
        finally:
            self.close(response)

    @staticmethod
    def close(response: http.client.HTTPResponse) -> None:
        connection: http.client.HTTPConnection = response._regatta_connection  # type: ignore[attr-defined]
        response.close()
        connection.close()


def find_home() -> str:
    """$REGATTA_HOME, else where the command line has its state."""
    home = os.environ.get("REGATTA_HOME")
    if home:
        return os.path.abspath(home)
    state = os.environ.get("XDG_STATE_HOME", "")
    return os.path.join(state if state.startswith("/") else os.path.expanduser("~/.local/state"), "regatta")


def read_context(home: str, name: str) -> Dict[str, str]:
    path = os.path.join(home, "contexts", name + ".json")
    try:
        with open(path, encoding="utf-8") as f:
            got: Dict[str, str] = json.load(f)
        got["url"], got["token"]
    except FileNotFoundError as e:
        raise error_of("not_found", f"there is no context '{name}': 'regatta context list' lists them") from e
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise Invalid(f"'{path}' is no context: 'regatta context add {name}' writes it anew", "invalid") from e
    return got


def tree_names(top: str) -> List[str]:
    """Every file and directory below `top`, sorted, relative to it."""
    found = []
    for directory, folders, files in os.walk(top):
        folders.sort()
        at = os.path.relpath(directory, top)
        found += [os.path.normpath(os.path.join(at, n)) for n in files + folders]
    return sorted(found)
