"""docs/openapi.yaml, and whether an answer is one that it describes."""
import json

import jsonschema
import yaml

from conftest import ROOT

SPEC = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
OPERATIONS = {o["operationId"]: (m.upper(), p, o) for p, item in SPEC["paths"].items() for m, o in item.items()
              if m != "parameters"}


def check_answer(operation, answer):
    """The answer is one that the OpenAPI file allows for this operation."""
    method, path, o = OPERATIONS[operation]
    response = o["responses"].get(str(answer.status)) or o["responses"].get("default")
    assert response, f"{method} {path}: {answer.status} is not described"
    while "$ref" in response:
        response = SPEC["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    for name, header in response.get("headers", {}).items():
        value = answer.headers.get(name)
        assert value is not None, f"{method} {path}: no header {name}"
        validate(value, header["schema"])
    content = response.get("content")
    if not content:
        assert not answer.body
        return answer
    assert answer.type in content, f"{method} {path}: {answer.type} is not one of {list(content)}"
    schema = content[answer.type]["schema"]
    if answer.type == "application/json":
        validate(answer.json, schema)
    elif answer.type == "application/x-ndjson":
        lines = answer.body.splitlines()
        assert lines
        for line in lines:
            validate(json.loads(line), schema)
    else:
        validate(answer.text, schema)
    return answer


def validate(value, schema):
    jsonschema.validate(value, {**schema, "components": SPEC["components"]}, cls=jsonschema.Draft202012Validator)
