"""The command lines and configuration files of a cluster's programs.

A cluster has a network 10.x.0.0/16 of its own: 10.x.0.1 is the control plane, 10.x.0.2 this machine, nodes follow from
10.x.0.11; pods of node N are in 10.x.(128+N).0/24, services in 10.x.240.0/20.
"""
import json

from . import images, programs

DOMAIN = "cluster.local"
# What has no meaning when nodes share a kernel and a disk.
UNPLUGGED = ("aufs", "btrfs", "devmapper", "zfs")


class Addresses:
    def __init__(self, second):
        self.second = second
        self.control_plane, self.here = f"10.{second}.0.1", f"10.{second}.0.2"
        self.whole, self.all_pods, self.services = f"10.{second}.0.0/16", f"10.{second}.128.0/18", f"10.{second}.240.0/20"
        self.first_service = f"10.{second}.240.1"
        self.server = f"https://{self.control_plane}:6443"

    def node(self, number):
        return f"10.{self.second}.0.{10 + number}"

    @staticmethod
    def hardware(number):
        """Of the control plane (0) or a node, for as long as the cluster lives.  Else a node that comes back has another one, and a
        switch that of one of its ports: while neighbours know only the old one nobody answers."""
        return f"02:00:00:00:00:{number:02x}"

    def pods(self, number):
        return f"10.{self.second}.{128 + number}.0/24"


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1))


def write_arguments(own, program, argv):
    (own / "arguments").mkdir(parents=True, exist_ok=True)
    (own / "arguments" / program).write_text("".join(f"{word}\n" for word in argv))


def options(**values):
    return [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]


def audit_policy():
    """The requests of users and of the accounts of pods are recorded (audit.py), not those of the cluster itself."""
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
        {"level": "None", "userGroups": ["system:masters", "system:nodes", "system:serviceaccounts:kube-system", "system:unauthenticated"]},
        {"level": "None", "users": ["system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy", "system:apiserver"]},
        {"level": "Metadata"}]}


def control_plane(own, at, authority, packages):
    """Files of the control plane's machine."""
    kube, key = programs.control_plane(), authority.path
    names = ",".join([f"IP:{at.control_plane}", f"IP:{at.first_service}", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
                      f"DNS:kubernetes.default.svc.{DOMAIN}"])
    authority.sign("apiserver", "/CN=kube-apiserver", names)
    authority.sign("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    store = "http://127.0.0.1:2379"
    write_arguments(own, "etcd", [packages / "usr/bin/etcd", *options(
        data_dir=own / "etcd", listen_client_urls=store, advertise_client_urls=store, listen_peer_urls="http://127.0.0.1:2380"),
        "--unsafe-no-fsync"])
    write_arguments(own, "kube-apiserver", [kube / "kube-apiserver", *options(
        etcd_servers=store, bind_address="0.0.0.0", advertise_address=at.control_plane, secure_port=6443,
        tls_cert_file=key("apiserver.crt"), tls_private_key_file=key("apiserver.key"), client_ca_file=key("ca.crt"),
        service_account_key_file=key("accounts.pub"), service_account_signing_key_file=key("accounts.key"),
        service_account_issuer=f"https://kubernetes.default.svc.{DOMAIN}",
        kubelet_client_certificate=key("kubelet-client.crt"), kubelet_client_key=key("kubelet-client.key"),
        kubelet_preferred_address_types="InternalIP", service_cluster_ip_range=at.services,
        authorization_mode="Node,RBAC", enable_admission_plugins="NodeRestriction", allow_privileged="true",
        audit_policy_file=own / "audit.json", audit_log_path=own / "audit.log", audit_log_mode="blocking")])
    write_json(own / "audit.json", audit_policy())
    for program, more in [("kube-controller-manager", options(
            root_ca_file=key("ca.crt"), service_account_private_key_file=key("accounts.key"), use_service_account_credentials="true",
            cluster_signing_cert_file=key("ca.crt"), cluster_signing_key_file=key("ca.key"), enable_hostpath_provisioner="true")),
            ("kube-scheduler", [])]:
        config = authority.kubeconfig(program, f"/CN=system:{program}")
        write_arguments(own, program, [kube / program, *options(kubeconfig=config, authentication_kubeconfig=config,
                                                                authorization_kubeconfig=config, leader_elect="false"), *more])
    config = authority.kubeconfig("dns", "/O=system:masters/CN=dns")
    (own / "Corefile").write_text(f". {{\n bind {at.control_plane}\n errors\n kubernetes {DOMAIN} in-addr.arpa {{\n  kubeconfig {config}\n"
                                  "  ttl 1\n }\n}\n")
    write_arguments(own, "coredns", [programs.dns() / "coredns", "-conf", own / "Corefile"])


def node(own, name, number, at, authority, packages, cgroup, resolv_conf, log_size):
    """Files of a node's machine."""
    kube, key = programs.control_plane(), authority.path
    authority.sign(name, f"/O=system:nodes/CN=system:node:{name}", f"DNS:{name},IP:{at.node(number)}")
    write_json(own / "kubelet.json", {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": str(key("ca.crt"))}},
        "authorization": {"mode": "Webhook"}, "tlsCertFile": str(key(f"{name}.crt")), "tlsPrivateKeyFile": str(key(f"{name}.key")),
        "clusterDNS": [at.control_plane], "clusterDomain": DOMAIN, "resolvConf": str(resolv_conf),
        "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup, "failSwapOn": False, "failCgroupV1": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "containerLogMaxSize": log_size,
        "makeIPTablesUtilChains": False, "imageGCHighThresholdPercent": 100, "serializeImagePulls": False, "registryPullQPS": 0,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"}})
    config = authority.kubeconfig(f"{name}-kubelet", f"/O=system:nodes/CN=system:node:{name}")
    write_arguments(own, "kubelet", [kube / "kubelet", *options(config=own / "kubelet.json", kubeconfig=config, hostname_override=name,
                                                                node_ip=at.node(number))])
    write_json(own / "proxy.json", {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables", "clusterCIDR": at.all_pods,
        "clientConnection": {"kubeconfig": str(authority.kubeconfig(f"{name}-proxy", "/CN=system:kube-proxy"))}, "hostnameOverride": name,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}})
    write_arguments(own, "kube-proxy", [kube / "kube-proxy", *options(config=own / "proxy.json")])
    write_json(own / "network.conflist", {"cniVersion": "0.4.0", "name": "pods", "plugins": [{
        "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": at.pods(number)}]], "routes": [{"dst": "0.0.0.0/0"}]}}]})
    (own / "containerd.toml").write_text(containerd_config())
    write_arguments(own, "containerd", [packages / "usr/bin/containerd", "--config", own / "containerd.toml"])


def containerd_config():
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    unplugged = ", ".join(f'"io.containerd.snapshotter.v1.{name}"' for name in UNPLUGGED)
    return f"""version = 2
disabled_plugins = [{unplugged}]
[{cri}]
sandbox_image = "{images.PAUSE}"
restrict_oom_score_adj = true
disable_apparmor = true
disable_hugetlb_controller = true
tolerate_missing_hugetlb_controller = true
[{cri}.containerd]
default_runtime_name = "runc"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
"""
