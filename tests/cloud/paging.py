"""Describe calls come in pages, whatever moto does: by MaxResults, or by the size that a test sets.

Instances are counted one by one, as EC2 does, not by the reservation that they came with.
"""
import base64
import copy
import urllib.parse
import xml.etree.ElementTree as ET

from .errors import Answer, Refused

NAMESPACE = "{http://ec2.amazonaws.com/doc/2016-11-15/}"
ET.register_namespace("", NAMESPACE[1:-1])


def local(element):
    return element.tag.rpartition("}")[2]


def token_of(offset):
    return base64.b64encode(f"page:{offset}".encode()).decode()


def offset_of(token):
    try:
        return int(base64.b64decode(token, validate=True).decode().removeprefix("page:"))
    except ValueError as e:
        raise Refused("InvalidParameterValue", "Unable to parse pagination token") from e


def single_instances(reservations):
    """Reservations with one instance each, in order."""
    found = []
    for reservation in reservations:
        whole = next(child for child in reservation if local(child) == "instancesSet")
        for instance in list(whole):
            one = copy.copy(reservation)
            one[:] = [child for child in reservation if child is not whole]
            ET.SubElement(one, whole.tag).append(instance)
            found.append(one)
    return found


def slice_answer(done, offset, size):
    root = ET.fromstring(done.body)
    items = next((child for child in root if local(child) not in ("requestId", "nextToken")), None)
    if items is None:
        return done
    every = single_instances(items) if local(items) == "reservationSet" else list(items)
    items[:] = every[offset:offset + size]
    for old in [child for child in root if local(child) == "nextToken"]:
        root.remove(old)
    if offset + size < len(every):
        ET.SubElement(root, items.tag.removesuffix(local(items)) + "nextToken").text = token_of(offset + size)
    return Answer(done.status, done.headers, b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root))


def paged(call, page_size, ask):
    """page_size: the most that a page may hold; None: as the caller says."""
    asked = call.params.get("MaxResults")
    size = min(int(asked) if asked else 1 << 30, page_size or 1 << 30)
    if call.service != "ec2" or not call.action.startswith("Describe") or (size == 1 << 30 and "NextToken" not in call.params):
        return ask(call)
    offset = offset_of(call.params["NextToken"]) if call.params.get("NextToken") else 0
    pairs = [(k, v) for k, v in urllib.parse.parse_qsl(call.body.decode(), keep_blank_values=True) if k not in ("MaxResults", "NextToken")]
    call.moto_body = urllib.parse.urlencode(pairs).encode()
    done = ask(call)
    return slice_answer(done, offset, size) if done.status == 200 else done
