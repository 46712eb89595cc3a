"""What is really in a cluster, of whatever kind, and things of somebody else that nobody may touch."""
import json

from .cluster import wait_for

RUN = "regatta/run"
# Made by the cluster in every namespace, or records of what was there.
OWN = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
PASSING = ("Event", "Lease")
# Labels and names that look like those of a run of ours, and are another install's.
LOOKALIKES = {"app": "regatta", "regatta": "yes", RUN: "0000000000", "regatta/install": "somebody", "regatta/role": "trainer"}
GONE_SECONDS = 60


def kinds(cluster):
    """[(path of the group and version, plural, is it namespaced)] of everything that can be listed, each kind once."""
    found = {}
    groups = [("/api/v1", "")]
    groups += [(f"/apis/{g['preferredVersion']['groupVersion']}", g["name"]) for g in cluster.api("GET", "/apis")["groups"]]
    for path, group in groups:
        for resource in cluster.api("GET", path)["resources"]:
            if "list" in resource["verbs"] and "/" not in resource["name"] and resource["kind"] not in PASSING:
                found.setdefault((group, resource["name"]), (path, resource["name"], resource["namespaced"]))
    return list(found.values())


def things(cluster, namespace):
    """{(kind, name): object} of a namespace, except what the cluster itself puts there."""
    found = {}
    for path, plural, namespaced in kinds(cluster):
        if namespaced:
            listed = cluster.api("GET", f"{path}/namespaces/{namespace}/{plural}")
            kind = listed["kind"].removesuffix("List")
            found.update({(kind, o["metadata"]["name"]): o for o in listed["items"] if (kind, o["metadata"]["name"]) not in OWN})
    return found


def of_runs(cluster, run=None):
    """{(kind, namespace, name)} of all objects anywhere that carry the label of a run, except those of the decoys."""
    wanted = f"{RUN}={run}" if run else f"{RUN},{RUN}!={LOOKALIKES[RUN]}"
    found = set()
    for path, plural, _ in kinds(cluster):
        listed = cluster.api("GET", f"{path}/{plural}?labelSelector={wanted.replace('=', '%3D').replace(',', '%2C').replace('!', '%21')}")
        found |= {(listed["kind"].removesuffix("List"), o["metadata"].get("namespace"), o["metadata"]["name"]) for o in listed["items"]}
    return found


def nothing_left(cluster, namespace, before):
    """before: what things() said when the namespace was new.  What the cluster itself collects later, such as the end
    points of a service, may take a moment."""
    def is_clean():
        left = {key: o["metadata"]["uid"] for key, o in things(cluster, namespace).items()}
        return left == {key: o["metadata"]["uid"] for key, o in before.items()}
    try:
        wait_for(is_clean, f"nothing to be left in {namespace}", GONE_SECONDS)
    except TimeoutError as e:
        left = set(things(cluster, namespace)) - set(before)
        raise AssertionError(f"{e}: {sorted(left)}, of before and gone: {sorted(set(before) - set(things(cluster, namespace)))}") from e


def place_decoys(cluster, namespace):
    """Objects of somebody else, some of which look like ours; what untouched() compares."""
    def of(kind, version, **body):
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "regatta-somebody", "namespace": namespace, "labels": LOOKALIKES}, **body}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "bench.test/busybox:1", "command": ["sleep", "86400"]}],
           "terminationGracePeriodSeconds": 0}
    objects = [of("ConfigMap", "v1", data={"key": "of somebody else"}), of("Secret", "v1", stringData={"token": "of somebody else"}),
               of("Service", "v1", spec={"clusterIP": "None", "selector": {"app": "regatta"}}), of("ServiceAccount", "v1"),
               of("Job", "batch/v1", spec={"suspend": True, "template": {"spec": pod}}), of("Pod", "v1", spec=pod),
               of("PersistentVolumeClaim", "v1", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}})]
    cluster.kubectl("apply", "--server-side", "-f", "-", input="\n---\n".join(json.dumps(o) for o in objects))
    wait_for(lambda: cluster.api("GET", f"/api/v1/namespaces/{namespace}/pods/regatta-somebody")["status"]["phase"] == "Running", "the pod of somebody")
    return identities(cluster, namespace)


def identities(cluster, namespace):
    """What changes when somebody touches an object, and not when the cluster notes its state.  The end points of a service
    are nothing but such notes."""
    return {key: (o["metadata"]["uid"], o["metadata"].get("generation"), o["metadata"].get("deletionTimestamp"), o["metadata"].get("labels"),
                  o.get("data"), o.get("status", {}).get("phase"))
            for key, o in things(cluster, namespace).items() if key[0] not in ("EndpointSlice", "Endpoints")}
