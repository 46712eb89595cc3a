"""What a person or a shell script may ask the cloud over HTTP: GET /cloud/truth, /cloud/left, /cloud/calls, /cloud/bill,
/cloud/console/INSTANCE; POST /cloud/fault with the arguments of Cloud.fault as JSON, POST /cloud/clear.
"""
import json


class Page:
    def __init__(self, cloud):
        self.cloud = cloud

    def __call__(self, environ, start_response):
        words = environ["PATH_INFO"].strip("/").split("/")[1:]
        try:
            status, value = "200 OK", self.answer(environ, words)
        except (KeyError, TypeError, ValueError) as e:
            status, value = "400 Bad Request", {"error": f"{type(e).__name__}: {e}"}
        body = value.encode() if isinstance(value, str) else (json.dumps(value, indent=1) + "\n").encode()
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def answer(self, environ, words):
        cloud = self.cloud
        if environ["REQUEST_METHOD"] == "POST":
            return self.change(words, environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        if words[:1] == ["console"]:
            return cloud.console(words[1])
        if words == ["calls"]:
            return cloud.calls
        if words == ["bill"]:
            return cloud.bill()
        found = {"truth": cloud.truth, "left": cloud.left}[words[0]]()
        return [{"kind": kind, "id": number, **facts} for (kind, number), facts in found.items()]

    def change(self, words, body):
        if words == ["fault"]:
            options = json.loads(body)
            self.cloud.fault(options.pop("action"), **options)
        elif words == ["clear"]:
            self.cloud.script.clear()
        else:
            raise KeyError("/".join(words))
        return {}
