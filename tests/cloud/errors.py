"""Answers that are errors, in the words of each of AWS' protocols."""
import json
import uuid
from xml.sax.saxutils import escape

# Which protocol a service speaks; JSON for those that are not named.
XML_QUERY = ("iam", "sts", "autoscaling", "monitoring", "elasticloadbalancing", "cloudformation", "sns", "sqs")


class Refused(Exception):
    """A call that gets an error for an answer."""

    def __init__(self, code, message, status=400, headers=()):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status, self.headers = code, message, status, list(headers)


class Answer:
    """What goes back: all of it, so that it can be kept, changed or lost."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, list(headers), body
        self.cut = None  # after how many bytes the connection is reset


def request_id():
    return str(uuid.uuid4())


def answer(service, refused, method="POST"):
    """The error as the service would write it."""
    number = request_id()
    code, message = escape(refused.code), escape(refused.message)
    kind = "text/xml;charset=UTF-8"
    if service == "ec2":
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>{code}</Code>'
                f"<Message>{message}</Message></Error></Errors><RequestID>{number}</RequestID></Response>")
    elif service == "s3":
        kind = "application/xml"
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message>'
                f"<RequestId>{number}</RequestId></Error>")
    elif service in XML_QUERY:
        fault = "Sender" if refused.status < 500 else "Receiver"
        body = (f"<ErrorResponse><Error><Type>{fault}</Type><Code>{code}</Code><Message>{message}</Message></Error>"
                f"<RequestId>{number}</RequestId></ErrorResponse>")
    else:
        kind = "application/x-amz-json-1.1"
        body = json.dumps({"__type": refused.code, "message": refused.message})
    headers = [("Content-Type", kind), ("x-amzn-RequestId", number), ("x-amz-request-id", number), *refused.headers]
    return Answer(refused.status, headers, b"" if method == "HEAD" else body.encode())
