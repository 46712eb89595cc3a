"""tools/kube-bench build [PART...]    make what is not there yet: kubernetes dns machine images; all by default
tools/kube-bench up [--nodes N]      start a cluster, say what to export, remove everything when interrupted
tools/kube-bench sweep               remove what clusters left whose starter was killed
"""
import argparse
import sys
import time

from stopped import Stopped, stop_on_signals

from . import Cluster, cluster, images, programs, store

PARTS = {"machine": images.machine, "images": images.basic, "kubernetes": programs.control_plane, "dns": programs.dns}


def build(names):
    for name in names or PARTS:
        began = time.monotonic()
        path = PARTS[name]()
        print(f"{name}: {path} ({time.monotonic() - began:.0f} s)", flush=True)


def up(nodes):
    with Cluster(nodes=nodes) as made:
        print(f"export KUBECONFIG={made.kubeconfig}\n\n"
              f"# A Kubernetes of {nodes} nodes at {made.at.server}, for this machine only.  kubectl for it: {made.kubectl_path}\n"
              f"# Images on its nodes: {images.PYTHON}, and {images.BUSYBOX} for agent = false; storage class: bench\n"
              f"# Its pods reach this machine at {made.at.here}.  Logs of its programs: {made.directory}/*/log\n"
              "# Ctrl-C removes it with everything in it.", flush=True)
        while True:
            time.sleep(0.2)  # and not pause(): a signal that another thread took would not end it


def main(argv):
    parser = argparse.ArgumentParser(prog="tools/kube-bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("part", nargs="*", choices=[[], *PARTS])
    commands.add_parser("up").add_argument("--nodes", type=int, default=3)
    commands.add_parser("sweep")
    options = parser.parse_args(argv)
    stop_on_signals()
    why = cluster.missing() if options.command == "up" else ""
    try:
        if why:
            raise store.Unavailable(why)
        if options.command == "build":
            build(options.part)
        elif options.command == "sweep":
            cluster.sweep()
        else:
            up(options.nodes)
    except store.Unavailable as e:
        print(f"kube-bench: {e}", file=sys.stderr)
        return 1
    except Stopped:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
