"""What users and the accounts of pods have asked the API server, from its audit log (settings.audit_policy).

The log is written before the API server goes on, so that a test sees a request while it is being answered.
"""
import collections
import json

# resource: with its subresource, "pods/log"; code: None while it is not answered.
Call = collections.namedtuple("Call", "user verb group resource namespace name code")
CHANGES = {"create", "update", "patch", "delete"}


class Audit:
    """The requests since it was made."""

    def __init__(self, cluster):
        self.path, self.calls, self.rest = cluster.plane.own / "audit.log", {}, b""
        self.offset = self.path.stat().st_size if self.path.exists() else 0

    def read(self):
        """[Call], in the order in which they came."""
        if self.path.exists():
            with open(self.path, "rb") as log:
                log.seek(self.offset)
                text = log.read()
            self.offset += len(text)
            *lines, self.rest = (self.rest + text).split(b"\n")
            for line in lines:
                self.take(json.loads(line))
        return list(self.calls.values())

    def take(self, event):
        about = event.get("objectRef", {})
        resource = "/".join(filter(None, (about.get("resource", ""), about.get("subresource"))))
        self.calls[event["auditID"]] = Call(event["user"]["username"], event["verb"], about.get("apiGroup", ""), resource, about.get("namespace", ""),
                                            about.get("name", ""), event.get("responseStatus", {}).get("code"))

    def changes(self, user):
        """The requests of the user that change something, but questions about permissions."""
        return [c for c in self.read() if c.user == user and c.verb in CHANGES and c.group != "authorization.k8s.io"]
