"""The product's AWS layer, spoken to by tests: a line of JSON to tests/unit/driver/aws/aws_tool.c, a line back."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/meson/tests/unit/driver/aws/aws_tool"


class Refused(Exception):
    def __init__(self, said):
        super().__init__(said["error"])
        self.kind, self.code, self.said = said["kind"], said["code"], said


class AwsTool:
    def __init__(self, env):
        keep = {k: os.environ[k] for k in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS") if k in os.environ}
        self.process = subprocess.Popen([str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**keep, "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true", **env})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) == 0

    def send(self, command, **what):
        self.process.stdin.write(json.dumps({"do": command, **what}) + "\n")

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the program has ended"
        return json.loads(line)

    def call(self, command, **what):
        self.send(command, **what)
        self.process.stdin.flush()
        said = self.read()
        if not said["ok"]:
            raise Refused(said)
        return said

    def query(self, service, action, *params, **what):
        return self.call("query", service=service, action=action, params=[list(p) for p in params], **what)


def texts(node, name):
    """The texts of all elements of this name, wherever they are."""
    own = [node["text"]] if node["name"] == name else []
    return own + [text for child in node["children"] for text in texts(child, name)]
