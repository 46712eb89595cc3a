"""Operators of training jobs, and Argo's workflows: built from their modules, installed with their own manifests.

    install(cluster, "training-operator")

Their images and manifests are parts of the store; a kustomization over their own names our image and what must differ.
"""
import base64
import collections
import json
import os
import pathlib
import shutil
import stat
import tempfile

from . import images, pki, programs, store
from .cluster import wait_for

# module and version; package: what is built; manifests and overlay: directories in it, overlays with spaces between them; image: what
# the manifests call it; namespace and deployment: where it runs; secret and authority: the certificate of its webhooks, if it has some;
# files: (path, text) in its image; more: packages of which each has an image of its own; copies: (from, to) in the source; place: its
# manifests name no namespace.
Operator = collections.namedtuple("Operator", "module version package manifests overlay image namespace deployment secret authority patches "
                                  "files more copies place", defaults=[(), (), (), ()])
READY_SECONDS = 180


def drop(kind, name, version="apiextensions.k8s.io/v1"):
    return {"target": {"kind": kind, "name": name}, "patch": f"$patch: delete\napiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n"}


def change_deployment(*operations):
    return {"target": {"kind": "Deployment"}, "patch": json.dumps([dict(zip(("op", "path", "value"), o)) for o in operations])}


CONTAINER = "/spec/template/spec/containers/0"
QUICK_PROBE = ("replace", f"{CONTAINER}/readinessProbe", {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1})
# What PyTorchJob's workers wait with.  Debian's nslookup asks for every name of the search list and fails if one of them does not exist;
# that of alpine:3.10, for which the operator's own is written, stops at the first that does.
WAIT_FOR_MASTER = """- name: init-pytorch
  image: {{.InitContainerImage}}
  imagePullPolicy: IfNotPresent
  command: ["sh", "-c", "for i in $(seq {{.MaxTries}}); do nslookup {{.MasterAddr}} | grep '^Name:' && exit 0; sleep 1; done; exit 1"]
"""
OPERATORS = {
    # mpijobs are the other operator's: both claim the name.
    "training-operator": Operator(
        "github.com/kubeflow/training-operator", "v1.8.1", "./cmd/training-operator.v1", "manifests", "overlays/standalone",
        "kubeflow/training-operator", "kubeflow", "training-operator", "training-operator-webhook-cert", "training-operator-ca",
        [drop("CustomResourceDefinition", "mpijobs.kubeflow.org"),
         change_deployment(("add", f"{CONTAINER}/args", [
             f"--pytorch-init-container-image={images.BUSYBOX}",
             *[f"--enable-scheme={kind}" for kind in ("tfjob", "pytorchjob", "mxjob", "xgboostjob", "paddlejob")]]), QUICK_PROBE)],
        (("etc/config/initContainer.yaml", WAIT_FOR_MASTER),)),
    "mpi-operator": Operator(
        "github.com/kubeflow/mpi-operator", "v0.6.0", "./cmd/mpi-operator", "manifests", "overlays/standalone",
        "mpioperator/mpi-operator", "mpi-operator", "mpi-operator", None, None, []),
    "jobset": Operator(
        "sigs.k8s.io/jobset", "v0.8.0", ".", "config", "default", None, "jobset-system", "jobset-controller-manager",
        "jobset-webhook-server-cert", "jobset-ca",
        [change_deployment(("replace", f"{CONTAINER}/image", f"{images.REGISTRY}/jobset:1"),
                           ("add", "/spec/template/spec/securityContext/runAsUser", 65532), QUICK_PROBE)]),
    # Without its server, which is a web page.  The archive of the module lacks a symbolic link.
    "argo": Operator(
        "github.com/argoproj/argo-workflows/v3", "v3.7.0", "./cmd/workflow-controller", "manifests",
        "base/crds/minimal base/workflow-controller cluster-install-no-crds/workflow-controller-rbac",
        None, "argo", "workflow-controller", None, None,
        [change_deployment(("replace", f"{CONTAINER}/image", f"{images.REGISTRY}/argo:1"),
                           ("replace", f"{CONTAINER}/command", ["/manager"]),
                           ("replace", f"{CONTAINER}/args", ["--executor-image", f"{images.REGISTRY}/argoexec:1"]),
                           ("add", "/spec/template/spec/securityContext/runAsUser", 8737))],
        more=("./cmd/argoexec",),
        copies=(("workflow/executor/osspecific/signal_darwin.go", "workflow/executor/osspecific/signal_linux.go"),), place="argo"),
    # Without its own API server, for which the cluster would need another certificate.
    "kueue": Operator(
        "sigs.k8s.io/kueue", "v0.14.0", "./cmd/kueue", "config", "default", None, "kueue-system", "kueue-controller-manager",
        "kueue-webhook-server-cert", "kueue-ca",
        [drop("APIService", "v1beta1.visibility.kueue.x-k8s.io", "apiregistration.k8s.io/v1"),
         change_deployment(("replace", f"{CONTAINER}/image", f"{images.REGISTRY}/kueue:1"),
                           ("add", f"{CONTAINER}/args/-", "--feature-gates=VisibilityOnDemand=false"),
                           ("replace", f"{CONTAINER}/command", ["/manager"]),
                           ("replace", f"{CONTAINER}/imagePullPolicy", "IfNotPresent"),
                           ("add", "/spec/template/spec/securityContext/runAsUser", 65532), QUICK_PROBE)]),
}
# Whose webhooks have a certificate.
WEBHOOK_SERVICES = {"training-operator": "training-operator", "jobset": "jobset-webhook-service", "kueue": "kueue-webhook-service"}


def kustomization(name, operator):
    made = {"resources": [f"../{operator.manifests}/{overlay}" for overlay in operator.overlay.split()], "patches": operator.patches}
    if operator.place:
        made["namespace"] = operator.place
    if operator.image:
        made["images"] = [{"name": operator.image, "newName": f"{images.REGISTRY}/{name}", "newTag": "1"}]
    return made


def part(name):
    """A directory with its images, the operator's manifests, and bench/ for kubectl apply -k."""
    operator = OPERATORS[name]

    def make(path, run):
        source = path / "source"
        shutil.copytree(programs.download(run, operator.module, operator.version)["Dir"], source)
        make_writable(source)
        for from_, to in operator.copies:
            shutil.copy(source / from_, source / to)
        programs.build(run, source, path / "manager", operator.package, ["-ldflags", "-s -w"])
        for package in operator.more:
            write_on_path(run, source, path, package)
        images.write_program(path / f"{name}.tar", f"{images.REGISTRY}/{name}:1", path / "manager", operator.files)
        shutil.move(source / operator.manifests, path / operator.manifests)
        shutil.rmtree(source)
        (path / "manager").unlink()
        (path / "bench").mkdir()
        (path / "bench/kustomization.yaml").write_text(json.dumps(kustomization(name, operator), indent=1))
    return store.make(f"{name}-{operator.version}", tuple(fact for fact in operator if fact != ()), make)


def write_on_path(run, source, path, package):
    """An image with a program that is found by its name."""
    name, root = pathlib.Path(package).name, path / "root"
    (root / "tmp").mkdir(parents=True)
    programs.build(run, source, root / "bin" / name, package, ["-ldflags", "-s -w"])
    images.write(path / f"{name}.tar", f"{images.REGISTRY}/{name}:1", root, [f"/bin/{name}"])
    shutil.rmtree(root)


def make_writable(root):
    for folder, _, names in os.walk(root):
        for path in [folder, *(os.path.join(folder, n) for n in names)]:
            os.chmod(path, os.stat(path).st_mode | stat.S_IWUSR)


def certificates(operator, service):
    """The secret of its webhooks, as the operator would make it."""
    with tempfile.TemporaryDirectory() as place:
        own = pki.Authority(pathlib.Path(place) / "own", "", operator.authority, pki.RSA)
        pki.openssl("rsa", "-in", own.path("ca.key"), "-traditional", "-out", own.path("ca.key"))  # the one form that it reads
        own.sign("tls", f"/CN={service}", f"DNS:{service}")
        data = {name: base64.b64encode(own.path(name).read_bytes()).decode() for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": operator.secret, "namespace": operator.namespace}, "data": data}


def install(cluster, name):
    operator = OPERATORS[name]
    made = part(name)
    for archive in made.glob("*.tar"):
        cluster.load_image(archive)
    things = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}}]
    if operator.secret:
        # Before the operator: one that finds none makes its own, and what changes then is mounted a minute later.
        things.append(certificates(operator, f"{WEBHOOK_SERVICES[name]}.{operator.namespace}.svc"))
    for thing in things:
        cluster.kubectl("apply", "--server-side", "--field-manager=bench", "-f", "-", input=json.dumps(thing))
    cluster.kubectl("apply", "--server-side", "-k", made / "bench")
    wait_for(lambda: is_available(cluster, operator), name, READY_SECONDS)


def is_available(cluster, operator):
    path = f"/apis/apps/v1/namespaces/{operator.namespace}/deployments/{operator.deployment}"
    return cluster.api("GET", path)["status"].get("availableReplicas")
