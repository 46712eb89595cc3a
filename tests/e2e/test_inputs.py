"""Inputs that nodes fetch by themselves from servers of https://, and sources that git fetches."""
import functools
import hashlib
import http.server
import io
import os
import ssl
import subprocess
import tarfile
import threading
import zipfile

import pytest

LOOK = "find . -type f | sort"


class Server:
    """Files in memory over TLS, with ETag and Range; `refuse` has what to answer instead, once each."""

    def __init__(self, directory):
        self.files, self.refuse, self.asked = {}, {}, []
        key, self.certificate = directory / "key.pem", directory / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.certificate],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, self))
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"https://localhost:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def downloads(self, path):
        return [headers for method, asked, headers in self.asked if method == "GET" and asked == path]


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, owner, *args):
        self.owner = owner
        super().__init__(*args)

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        return body if self.command != "HEAD" else b""

    def do_GET(self):
        path = self.path.split("?")[0]
        self.owner.asked.append((self.command, path, dict(self.headers)))
        status = self.owner.refuse.pop((self.command, path), None)
        body = self.owner.files.get(path)
        if callable(status):
            status(self)
        elif status or body is None:
            self.wfile.write(self.answer(status or 404))
        else:
            self.send_file(body)

    do_HEAD = do_GET

    def send_file(self, body, cut=None):
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if self.headers.get("If-Match", etag) != etag:
            self.answer(412)
            return
        more = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        self.wfile.write(self.answer(206 if start else 200, body[start:], ETag=etag, **more)[:cut])


@pytest.fixture
def server(regatta, tmp_path):
    made = Server(tmp_path)
    regatta.env["SSL_CERT_FILE"] = str(made.certificate)
    yield made
    made.http.shutdown()
    made.http.server_close()


def archive(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def zipped(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, body in files.items():
            z.writestr(name, body)
    return out.getvalue()


def run_with(regatta, text, command=LOOK):
    run = regatta.submit(regatta.job(f'command = ["sh", "-c", "{command}"]\n{text}'))
    return run, regatta.wait(run)


def files_of(regatta, run):
    return {line.removeprefix("./") for line in regatta.log(run, "worker-0").decode().splitlines()}


def test_source_and_data_come_from_https_servers(regatta, server):
    server.files = {"/code.tgz": archive(**{"train.py": b"1", "lib/x.py": b"2"}), "/d/one.csv": b"1,2\n", "/more.zip": zipped(**{"in/it": b"3"})}
    digest = hashlib.sha256(b"1,2\n").hexdigest()
    run, end = run_with(regatta, f'''
        source = "{server.url}/code.tgz"
        [[data]]
        src = "{server.url}/d/one.csv?version=2"
        sha256 = "{digest}"
        [[data]]
        src = "{server.url}/more.zip"
        path = "in"
        unpack = true
    ''')
    assert end["verdict"] == "succeeded", end
    assert files_of(regatta, run) == {"train.py", "lib/x.py", "one.csv", "in/in/it"}


def test_a_source_that_is_one_file_keeps_its_name(regatta, server):
    server.files = {"/a/train.py": b"print(1)"}
    run, end = run_with(regatta, f'source = "{server.url}/a/train.py?token=1"')
    assert end["verdict"] == "succeeded" and files_of(regatta, run) == {"train.py"}


def test_a_download_goes_on_where_it_was_cut(regatta, server):
    body = os.urandom(3_000_000)
    server.files = {"/big": body}
    server.refuse[("GET", "/big")] = lambda handler: handler.send_file(body, cut=1_000_000)
    run, end = run_with(regatta, f'[[data]]\nsrc = "{server.url}/big"', "sha256sum big")
    assert end["verdict"] == "succeeded" and hashlib.sha256(body).hexdigest() in regatta.log(run, "worker-0").decode()
    assert [int(h.get("Range", "bytes=0-")[6:-1]) > 0 for h in server.downloads("/big")] == [False, True]


@pytest.mark.parametrize("fault, says, code", [
    (lambda s: s.files.pop("/x"), "404", 3),
    (lambda s: s.files.update({"/x": b"other"}), "changed since the job was submitted", 2),
    (lambda s: s.refuse.update({("GET", "/x"): 410}), "410", 3),
])
def test_what_is_wrong_with_a_download_is_the_cause(regatta, server, fault, says, code):
    server.files = {"/x": b"first"}

    def strike(handler):
        fault(server)
        handler.do_GET()

    server.refuse[("GET", "/x")] = strike
    _, end = run_with(regatta, f'[[data]]\nsrc = "{server.url}/x"')
    assert end["verdict"] == "failed" and f"data 'x': {server.url}/x" in end["cause"] and says in end["cause"], end
    assert end["exit_code"] == code


def test_a_server_that_has_no_such_file_is_said_before_anything_starts(regatta, server):
    said = regatta("run", regatta.job(f'command = "true"\nsource = "{server.url}/none.tar"'), code=3).err
    assert said.count("\n") == 1 and f"source '{server.url}/none.tar': the server answers 404" in said


@pytest.fixture
def repository(tmp_path):
    path = tmp_path / "code"

    def git(*args):
        return subprocess.run(["git", "-C", path, "-c", "user.name=a", "-c", "user.email=a@b", *args], check=True, capture_output=True, text=True).stdout

    path.mkdir()
    git("init", "-q", "-b", "main")
    for number in (1, 2):
        (path / f"{number}.py").write_text(str(number))
        git("add", ".")
        git("commit", "-q", "-m", str(number))
        git("tag", f"v{number}")
    git("update-server-info")
    return git, path


def test_git_fetches_a_source_and_the_run_keeps_the_commit(regatta, repository):
    git, path = repository
    for revision, files in (("@v1", {"1.py"}), ("", {"1.py", "2.py"}), (f"@{git('rev-parse', 'v1').strip()}", {"1.py"})):
        run, end = run_with(regatta, f'source = "git+file://{path}{revision}"')
        assert end["verdict"] == "succeeded" and files_of(regatta, run) == files
        commit = git("rev-parse", revision[1:] or "HEAD").strip()
        assert f"git+file://{path}@{commit}" in (regatta.home / "runs" / run / "job.toml").read_text()
    assert not list(regatta.home.glob("source-git-*"))


def test_git_finds_a_short_commit_also_on_the_branch_that_new_repositories_have(regatta, repository):
    git, path = repository
    regatta.env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "init.defaultBranch", "GIT_CONFIG_VALUE_0": "main"}
    run, end = run_with(regatta, f'source = "git+file://{path}@{git("rev-parse", "--short", "v1").strip()}"')
    assert end["verdict"] == "succeeded" and files_of(regatta, run) == {"1.py"}


def test_git_fetches_over_https_from_a_server_without_git(regatta, repository, server):
    _, path = repository
    server.files = {f"/r/{p.relative_to(path / '.git')}": p.read_bytes() for p in (path / ".git").rglob("*") if p.is_file()}
    regatta.env["GIT_SSL_CAINFO"] = str(server.certificate)
    run, end = run_with(regatta, f'source = "git+{server.url}/r@v1"')
    assert end["verdict"] == "succeeded" and files_of(regatta, run) == {"1.py"}


@pytest.mark.parametrize("source, says, path", [
    ("git+file:///nowhere@v1", "git fetch: fatal: '/nowhere' does not appear to be a git repository", None),
    ("git+file://{}@v9", "git fetch: fatal: couldn't find remote ref v9", None),
    ("git+file://{}@v1", "this machine has no git to fetch it with: install git", "/nowhere"),
    ("git+ftp://host/x@v1", "write git+https://HOST/REPOSITORY@REVISION", None),
])
def test_a_source_that_git_cannot_have_is_one_line(regatta, repository, source, says, path):
    job = regatta.job(f'command = "/bin/true"\nsource = "{source.format(repository[1])}"')
    said = regatta("run", job, code=None, env={"PATH": path} if path else None)
    assert said.returncode in (2, 3) and said.err.count("\n") == 1 and says in said.err, said.err
    assert not list(regatta.home.glob("source-git-*"))
