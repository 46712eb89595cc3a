"""python -m cloud up [--address N|loopback] [--boot real|none] [--port N] [--output json]

Starts the cloud, says what to export, and removes everything when it is interrupted.

python -m cloud sweep

Removes what clouds left that were killed.
"""
import argparse
import json
import sys
import time

from stopped import Stopped, stop_on_signals

from . import Cloud, network


def say(cloud, output):
    if output == "json":
        print(json.dumps({"endpoint": cloud.endpoint, "env": cloud.env(), "caller": cloud.network.caller if cloud.network else "127.0.0.1"}), flush=True)
        return
    for name, value in cloud.env().items():
        print(f"export {name}={value}")
    if cloud.network:
        print(f"\n# Its instances reach this machine at {cloud.network.caller}; for jobs with master = \"here\":"
              f" regatta master --listen {cloud.network.caller}:5436")
    print(f"\n# A small AWS at {cloud.endpoint}, for this machine only.  What is there: curl {cloud.endpoint}/cloud/left\n"
          "# Ctrl-C removes it with everything in it.", flush=True)


def up(options):
    stop_on_signals()
    boot = options.boot
    if boot == "real" and options.address != "loopback":
        why = network.missing()
        if why:
            print(f"{why}: instances will only be rows in a table", file=sys.stderr)
            boot = "none"
    if boot == "real":
        print("the first start makes the root file system of the instances, which takes a minute or two", file=sys.stderr)
    try:
        with Cloud(boot=boot, address=options.address, port=options.port) as cloud:
            say(cloud, options.output)
            while True:
                time.sleep(0.2)  # and not pause(): a signal that another thread took would not end it
    except Stopped:
        return 0


def main(argv):
    parser = argparse.ArgumentParser(prog="python -m cloud", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    begin = commands.add_parser("up")
    begin.add_argument("--address", help="loopback, or the second number of 10.x.0.0/16")
    begin.add_argument("--boot", choices=("real", "none"), default="real")
    begin.add_argument("--port", type=int, default=0)
    begin.add_argument("--output", choices=("text", "json"), default="text")
    commands.add_parser("sweep")
    options = parser.parse_args(argv)
    if options.command == "sweep":
        network.sweep()
        return 0
    return up(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
