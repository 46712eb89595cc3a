"""A small AWS on this machine, for tests and for a person who wants to try the EC2 engine without an account.

    with Cloud() as cloud:                     # strict moto on loopback, instances without machines
    with Cloud(boot="real") as cloud:          # as root: instances boot in namespaces of their own
        boto3.client("ec2", **cloud.client_options())
        cloud.env()                            # what a program needs to find it
        cloud.fault("RunInstances", lost="after")
        cloud.truth()                          # what is really there

One cloud at a time in a process: moto's tables are the process's.
"""
from .core import Cloud  # noqa: F401
