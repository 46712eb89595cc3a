"""The cluster's own certificate authority, who is signed by it, and kubeconfig files."""
import base64
import subprocess

DAYS = "3650"
EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("rsa:2048",)


def openssl(*args):
    done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr}")


class Authority:
    """Files in one directory: ca.crt, and NAME.crt, NAME.key of everybody."""

    def __init__(self, directory, server, name="bench", key=EC):
        self.directory, self.server, self.key = directory, server, key
        directory.mkdir()
        openssl("req", "-x509", *self.new_key("ca"), "-subj", f"/CN={name}", "-days", DAYS, "-addext", f"subjectAltName=DNS:{name}",
                "-addext", "keyUsage=critical,keyCertSign,digitalSignature,cRLSign", "-out", self.path("ca.crt"))
        # Tokens of service accounts are signed with a key that is nobody's certificate.
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.path("accounts.key"))
        openssl("pkey", "-in", self.path("accounts.key"), "-pubout", "-out", self.path("accounts.pub"))

    def path(self, name):
        return self.directory / name

    def new_key(self, name):
        return ["-newkey", *self.key, "-noenc", "-keyout", self.path(f"{name}.key")]

    def sign(self, name, subject, names=""):
        """names: as in subjectAltName; a server has some."""
        openssl("req", "-x509", *self.new_key(name), "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"), "-subj", subject, "-days", DAYS,
                "-addext", "basicConstraints=critical,CA:false", "-addext", "keyUsage=digitalSignature",
                "-addext", "extendedKeyUsage=serverAuth,clientAuth", *(["-addext", f"subjectAltName={names}"] if names else []),
                "-out", self.path(f"{name}.crt"))

    def kubeconfig(self, name, subject, target=None):
        """Its path; everything is in the one file, as kubectl writes it with --flatten."""
        self.sign(name, subject)
        ca, certificate, key = (base64.b64encode(self.path(f).read_bytes()).decode() for f in ("ca.crt", f"{name}.crt", f"{name}.key"))
        target = target or self.path(f"{name}.kubeconfig")
        target.write_text(f"""apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {self.server}
  name: bench
contexts:
- context:
    cluster: bench
    user: {name}
  name: bench
current-context: bench
preferences: {{}}
users:
- name: {name}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
""")
        target.chmod(0o600)
        return target
