"""Who calls: keys, secrets and sessions, and the policies that hold for them."""
import datetime
import secrets
import string
import time

from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

LETTERS = string.ascii_uppercase + "234567"


class Caller:
    """Somebody who can sign.  kind: root, user or role; name: of the user or role."""

    def __init__(self, account, kind, name, key, secret, token=None, expires=None, session="", is_stage=False):
        self.account, self.kind, self.name, self.key, self.secret = account, kind, name, key, secret
        self.token, self.expires, self.session, self.is_stage = token, expires, session, is_stage

    @property
    def arn(self):
        if self.kind == "root":
            return f"arn:aws:iam::{self.account}:root"
        if self.kind == "user":
            return f"arn:aws:iam::{self.account}:user/{self.name}"
        return f"arn:aws:sts::{self.account}:assumed-role/{self.name}/{self.session}"

    @property
    def id(self):
        return self.account if self.kind == "root" else f"AROA{self.name.upper()[:16]}:{self.session}" if self.kind == "role" else f"AIDA{self.name.upper()[:17]}"

    def env(self):
        """As programs read it."""
        named = {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}
        return {**named, "AWS_SESSION_TOKEN": self.token} if self.token else named


def random_key(prefix):
    return prefix + "".join(secrets.choice(LETTERS) for _ in range(16))


def random_secret():
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(40))


class Callers:
    """Every key that this cloud knows: given out by it, made by IAM, or by STS."""

    def __init__(self):
        self.own = {}

    def make(self, account, kind="root", name="", is_stage=False):
        caller = Caller(account, kind, name, random_key("AKIA"), random_secret(), is_stage=is_stage)
        self.own[caller.key] = caller
        return caller

    def session(self, account, role, session, seconds=3600):
        """Temporary credentials of a role, as an instance gets them."""
        caller = Caller(account, "role", role, random_key("ASIA"), random_secret(), random_secret() * 4, time.time() + seconds, session)
        self.own[caller.key] = caller
        return caller

    def find(self, key):
        return self.own.get(key) or self.of_sts(key) or self.of_iam(key)

    @staticmethod
    def of_iam(key):
        for account, backends in list(iam_backends.items()):
            found = backends["aws"].access_keys.get(key)
            if found and found.user_name and found.status == "Active":
                return Caller(account, "user", found.user_name, key, found.secret_access_key)
        return None

    @staticmethod
    def of_sts(key):
        for account, backends in list(sts_backends.items()):
            role = backends["aws"].get_assumed_role_from_access_key(key)
            if role:
                expires = role.expiration.replace(tzinfo=datetime.timezone.utc).timestamp()
                return Caller(account, "role", role.role_arn.rpartition("/")[2], key, role.secret_access_key, role.session_token, expires,
                              role.session_name)
        return None


def documents_of(caller):
    """The policy documents that hold for a caller; None for the account's root."""
    if caller.kind == "root":
        return None
    backend = iam_backends[caller.account]["aws"]
    if caller.kind == "role":
        holders = [role for role in backend.roles.values() if role.name == caller.name]
    else:
        holders = [backend.users[caller.name], *backend.get_groups_for_user(caller.name)] if caller.name in backend.users else []
    found = []
    for holder in holders:
        found += list(holder.policies.values())
        found += [managed.default_version.document for managed in holder.managed_policies.values()]
    return found


def role_of_profile(account, name):
    for profile in iam_backends[account]["aws"].instance_profiles.values():
        if profile.name == name and profile.roles:
            return profile.roles[0]
    return None


def trusts(role, caller):
    """Whether the trust policy of a role names this caller, its account, or everybody."""
    import json
    document = json.loads(role.assume_role_policy_document)
    for statement in document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]:
        principals = statement.get("Principal", {})
        names = [principals] if isinstance(principals, str) else principals.get("AWS", [])
        names = [names] if isinstance(names, str) else names
        if statement.get("Effect") == "Allow" and {"*", caller.account, f"arn:aws:iam::{caller.account}:root", caller.arn} & set(names):
            return True
    return False
