"""A real Kubernetes on this machine, for tests and for a person who wants to try the engine without a cluster.

    with Cluster() as cluster:                 # as root: a control plane and three nodes, in seconds
        cluster.env()                          # what a program needs to find it: KUBECONFIG
        cluster.kubectl("get", "nodes")
        cluster.kill_node("node3"); cluster.start_node("node3")

Its programs are built once (store.py), which takes some ten minutes.
"""
from .cluster import Cluster  # noqa: F401
