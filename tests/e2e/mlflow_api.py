"""The part of MLflow's REST API that `regatta export --to mlflow` uses, as strict as the server of MLflow 3.17: its answers,
limits and errors were taken from there.  `make export-check` runs the same tests with the real one."""
import base64
import http.server
import json
import re
import threading
import urllib.parse
import urllib.request
import uuid

ENTITY = {"metrics": ({"key", "value", "timestamp", "step"}, 1000), "params": ({"key", "value"}, 100),
          "tags": ({"key", "value"}, 100)}


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.body = status, {"error_code": code, "message": message}


def invalid(message):
    return Refused(400, "INVALID_PARAMETER_VALUE", message)


def missing(message):
    return Refused(404, "RESOURCE_DOES_NOT_EXIST", message)


def check(body, required, optional=()):
    for key in required:
        if key not in body:
            raise invalid(f"Missing value for required parameter '{key}'.")
    for key in body:
        if key not in required and key not in optional:
            raise AssertionError(f"unknown key {key}")


class State:
    def __init__(self):
        self.experiments, self.runs, self.calls, self.tokens = {}, {}, [], []
        self.fail = {}  # path -> number of calls that succeed before one fails with 500
        self.token = None
        self.page = 25000  # values of a history in one answer, at most

    def run(self, body):
        run = self.runs.get(body.get("run_id"))
        if not run:
            raise missing(f"Run with id={body.get('run_id')} not found")
        return run

    def entities(self, body, kind):
        keys, most = ENTITY[kind]
        given = body.get(kind, [])
        if len(given) > most:
            raise invalid(f"A batch logging request can contain at most {most} {kind}. Got {len(given)} {kind}. "
                          f"Please split up {kind} across multiple requests and try again.")
        for one in given:
            check(one, keys)
        return given

    # ---- routes ----

    def get_by_name(self, query):
        name = query["experiment_name"]
        if name not in self.experiments:
            raise missing(f"Could not find experiment with name '{name}'")
        return {"experiment": {"experiment_id": self.experiments[name], "name": name, "lifecycle_stage": "active"}}

    def create_experiment(self, body):
        check(body, ["name"])
        if body["name"] in self.experiments:
            raise Refused(400, "RESOURCE_ALREADY_EXISTS", f"Experiment(name={body['name']}) already exists.")
        self.experiments[body["name"]] = str(len(self.experiments) + 1)
        return {"experiment_id": self.experiments[body["name"]]}

    def search(self, body):
        check(body, ["experiment_ids"], ["filter", "max_results"])
        where = re.fullmatch(r"tags\.`([\w.]+)` = '([\w-]+)'", body["filter"]) if "filter" in body else None
        assert where or "filter" not in body
        runs = [run for run in self.runs.values() if run["info"]["experiment_id"] in body["experiment_ids"]
                and (not where or run["tags"].get(where[1]) == where[2])]
        return {"runs": [self.shown(run) for run in runs[:body.get("max_results", 1000)]]} if runs else {}

    def shown(self, run):
        last = {}
        for one in run["metrics"]:
            last[one["key"]] = one
        return {"info": run["info"], "data": {
            "metrics": list(last.values()),
            "params": [{"key": key, "value": value} for key, value in run["params"].items()],
            "tags": [{"key": key, "value": value} for key, value in run["tags"].items()]}}

    def create_run(self, body):
        check(body, ["experiment_id", "run_name", "start_time", "tags"])
        if body["experiment_id"] not in self.experiments.values():
            raise missing(f"No Experiment with id={body['experiment_id']} exists")
        run_id = uuid.uuid4().hex
        self.runs[run_id] = {
            "info": {"run_id": run_id, "experiment_id": body["experiment_id"], "run_name": body["run_name"],
                     "status": "RUNNING", "start_time": body["start_time"]},
            "metrics": [], "params": {}, "tags": {tag["key"]: tag["value"] for tag in self.entities(body, "tags")}}
        return {"run": self.shown(self.runs[run_id])}

    def log_batch(self, body):
        check(body, ["run_id"], list(ENTITY))
        run = self.run(body)
        for one in self.entities(body, "params"):
            if run["params"].setdefault(one["key"], one["value"]) != one["value"]:
                raise invalid("Changing param values is not allowed.")
        for one in self.entities(body, "metrics"):
            assert isinstance(one["value"], (int, float)) and isinstance(one["timestamp"], int)
            run["metrics"].append(one)
        return {}

    def update(self, body):
        check(body, ["run_id", "status"], ["end_time"])
        if body["status"] not in ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"):
            raise invalid("Invalid value for parameter 'status'")
        info = self.run(body)["info"]
        info.update({key: body[key] for key in ("status", "end_time") if key in body})
        return {"run_info": info}

    def history(self, query):
        values = [one for one in self.run(query)["metrics"] if one["key"] == query["metric_key"]]
        most = min(int(query["max_results"]), self.page)
        first = json.loads(base64.b64decode(query["page_token"]))["offset"] if "page_token" in query else 0
        answer = {"metrics": values[first:first + most]} if values[first:] else {}
        if len(values) > first + most:
            answer["next_page_token"] = base64.b64encode(json.dumps({"offset": first + most}).encode()).decode()
        return answer


ROUTES = {"GET": {"experiments/get-by-name": State.get_by_name, "metrics/get-history": State.history},
          "POST": {"experiments/create": State.create_experiment, "runs/search": State.search,
                   "runs/create": State.create_run, "runs/log-batch": State.log_batch, "runs/update": State.update}}


class FakeMlflow:
    """A server on a port of its own; `state` is what it has."""

    def __init__(self):
        fake, self.state = self, State()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self, body):
                url = urllib.parse.urlsplit(self.path)
                name = url.path.removeprefix("/proxy").removeprefix("/api/2.0/mlflow/")
                state = fake.state
                state.calls.append(name)
                state.tokens.append(self.headers["Authorization"])
                try:
                    if state.token and self.headers["Authorization"] != f"Bearer {state.token}":
                        raise Refused(401, "UNAUTHENTICATED", "You are not authenticated.")
                    if name in state.fail:
                        state.fail[name] -= 1
                        if state.fail[name] < 0:
                            del state.fail[name]
                            raise Refused(500, "INTERNAL_ERROR", "the database is away")
                    route = ROUTES[self.command].get(name)
                    if not route:
                        raise Refused(404, "ENDPOINT_NOT_FOUND", f"no {name}")
                    if body is None:
                        body = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
                    status, answer = 200, route(state, body)
                except Refused as e:
                    status, answer = e.status, e.body
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):
                self.serve(None)

            def do_POST(self):
                assert self.headers["Content-Type"] == "application/json"
                self.serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Reader:
    """What a server has, asked over its API: of the fake and of the real one."""

    def __init__(self, url):
        self.url = url

    def ask(self, what, body=None):
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/{what}", json.dumps(body).encode() if body else None,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def runs(self, experiment):
        found = self.ask("experiments/get-by-name?" + urllib.parse.urlencode({"experiment_name": experiment}))
        return self.ask("runs/search", {"experiment_ids": [found["experiment"]["experiment_id"]]}).get("runs", [])

    def history(self, run, key):
        query = {"run_id": run["info"]["run_id"], "metric_key": key, "max_results": 20000}
        return self.ask("metrics/get-history?" + urllib.parse.urlencode(query)).get("metrics", [])
