"""A gateway before the API server that spoils answers, as proxies, load balancers and cables do.

It speaks plain HTTP on this machine and passes requests on with the administrator's certificate.  `fault(method, path)`
says what becomes of each: a name of FAULTS, ABSENT, or None.
"""
import contextlib
import http.client
import http.server
import ssl
import threading

FAULTS = ("500", "lost", "503 though done", "429", "410", "half", "half of a document", "login page", "404 of a proxy", "another document", "huge")
ABSENT = "no such API"  # as the API server itself says it
LOGIN = b"<html><title>Please log in</title></html>"
HUGE = 40 << 20
STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","code":%d}'


class Gateway:
    """with Gateway(cluster, fault) as gateway: gateway.url"""

    def __init__(self, cluster, fault):
        self.address, self.fault, self.calls = cluster.at.control_plane, fault, []
        self.context = ssl.create_default_context(cafile=cluster.authority.path("ca.crt"))
        self.context.load_cert_chain(cluster.authority.path("admin.crt"), cluster.authority.path("admin.key"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, namespace):
        return (f"current-context: gateway\nclusters:\n- name: c\n  cluster: {{server: \"{self.url}\"}}\n"
                f"contexts:\n- name: gateway\n  context: {{cluster: c, namespace: {namespace}}}\n")


def handler_of(gateway):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def pass_on(self):
            """(the connection, which the caller closes; the answer)"""
            upstream = http.client.HTTPSConnection(gateway.address, 6443, context=gateway.context, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() in ("accept", "content-type")}
            upstream.request(self.command, self.path, self.body, headers)
            return upstream, upstream.getresponse()

        def say(self, status, body, kind="application/json", length=None, **more):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            for name, value in more.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def relay(self, answer, most=None):
            """As it comes; most: so many bytes of it, and then the connection is cut."""
            self.send_response(answer.status)
            for name in ("Content-Type", "Retry-After"):
                if answer.headers[name]:
                    self.send_header(name, answer.headers[name])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            while piece := answer.read1(65536):
                if most is not None:
                    piece, most = piece[:most], most - len(piece)
                if piece:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                if most is not None and most <= 0:
                    self.close_connection = True
                    return
            self.wfile.write(b"0\r\n\r\n")

        def spoil(self, how):
            """True: answered, or not."""
            if how == "500":
                self.say(500, STATUS % (b"an internal error", 500))
            elif how == "429":
                self.say(429, STATUS % (b"too many requests", 429), Retry_After="1")
            elif how == "410":
                self.say(410, STATUS % (b"the provided continue parameter is too old", 410))
            elif how == "404 of a proxy":
                self.say(404, b"<html>no such site</html>", "text/html")
            elif how == ABSENT:
                self.say(404, b"404 page not found\n", "text/plain")
            else:
                return False
            return True

        def spoil_answer(self, how, answer):
            text = answer.read()
            if how == "503 though done":
                self.say(503, STATUS % (b"the server is currently unable to handle the request", 503))
            elif how == "half":
                self.say(answer.status, text[:len(text) // 2], length=len(text))
                self.close_connection = True
            elif how == "half of a document":
                self.say(answer.status, text[:len(text) // 2])
            elif how == "login page":
                self.say(200, LOGIN, "text/html")
            elif how == "another document":
                self.say(200, b'{"welcome":true}')
            elif how == "huge":
                self.say(200, b" " * HUGE)
            else:  # lost
                self.close_connection = True

        def answer(self):
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            how = gateway.fault(self.command, self.path)
            gateway.calls.append((self.command, self.path, how))
            with contextlib.suppress(OSError):
                if isinstance(how, str) and self.spoil(how):
                    return
                upstream, answer = self.pass_on()
                with contextlib.closing(upstream):
                    if isinstance(how, str):
                        self.spoil_answer(how, answer)
                    else:
                        self.relay(answer, how)
                return
            self.close_connection = True

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer
    return Handler
