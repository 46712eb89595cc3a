"""Servers that machines of the cloud and their users know from elsewhere: a mirror of packages, files and git over HTTPS."""
import contextlib
import functools
import hashlib
import http.server
import os
import ssl
import subprocess
import threading


@contextlib.contextmanager
def serving(handler, address, tls=None):
    """Its port, while it answers."""
    server = http.server.ThreadingHTTPServer((address, 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def add_package(directory, name, script):
    """A package of Debian that has one command of its own name, in the lists of the directory."""
    tree = directory / f"{name}-tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n")
    (tree / "usr/bin" / name).write_text(script)
    (tree / "usr/bin" / name).chmod(0o755)
    path = directory / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, path], check=True, capture_output=True)
    fields = subprocess.run(["dpkg-deb", "--field", path], check=True, capture_output=True, text=True).stdout
    body = path.read_bytes()
    with open(directory / "Packages", "a", encoding="utf-8") as lists:
        lists.write(f"{fields}Filename: ./{path.name}\nSize: {len(body)}\nSHA256: {hashlib.sha256(body).hexdigest()}\n\n")


@contextlib.contextmanager
def mirror(directory, address):
    """The line of /etc/apt/sources.list for the packages of a directory."""
    with serving(functools.partial(Files, directory=directory), address) as port:
        yield f"deb [trusted=yes] http://{address}:{port}/ ./"


class Git(http.server.BaseHTTPRequestHandler):
    """`git http-backend` for the repositories below a directory, as the servers of git companies speak."""

    def __init__(self, root, *args):
        self.root = root
        super().__init__(*args)

    def log_message(self, *_):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        said = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True).stdout
        head, _, answer = said.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in {**headers, "Content-Length": str(len(answer))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET


def certificate(directory, address):
    """TLS of a server at this address, and the file of the CA that vouches for it."""
    key, ca = directory / "key.pem", directory / "ca.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out", ca], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca, key)
    return tls, ca


@contextlib.contextmanager
def https(directory, address, tls):
    """URLs of the files and of the git repositories below a directory."""
    with serving(functools.partial(Files, directory=directory), address, tls) as files, serving(functools.partial(Git, directory), address, tls) as git:
        yield f"https://{address}:{files}", f"https://{address}:{git}"
