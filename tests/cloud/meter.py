"""What the run has cost, from the ground truth's times: per second of running, sixty seconds at least for each start.

Written apart from the product, which must come to the same sum; the list of prices is the same.
"""
import csv
import functools
import pathlib

PRICES = pathlib.Path(__file__).resolve().parents[2] / "src/plan/ec2_types.csv"
LEAST_SECONDS = 60
SPOT_SHARE = 0.4  # of the on-demand price, here


def read_prices(path=PRICES):
    """{type: USD per hour}"""
    with open(path, newline="", encoding="utf-8") as f:
        return {row["type"]: float(row["usd_per_hour"]) for row in csv.DictReader(f) if row["usd_per_hour"]}


@functools.cache
def read_vcpus(path=PRICES):
    """{type: vCPUs}"""
    with open(path, newline="", encoding="utf-8") as f:
        return {row["type"]: int(row["vcpus"]) for row in csv.DictReader(f)}


def billed_seconds(history, now):
    """history: [(time, state)] of one instance."""
    total, since = 0.0, None
    for at, state in history:
        if state == "running" and since is None:
            since = at
        elif state != "running" and since is not None:
            total, since = total + max(LEAST_SECONDS, at - since), None
    return total + (max(LEAST_SECONDS, now - since) if since is not None else 0)


def bill(instances, now, prices):
    """instances: {id: {type, spot, history, tags}} -> {total, instances: {id: {seconds, usd}}}"""
    lines = {}
    for number, one in instances.items():
        seconds = billed_seconds(one["history"], now)
        price = prices.get(one["type"], 0.0) * (SPOT_SHARE if one["spot"] else 1)
        lines[number] = {"type": one["type"], "seconds": seconds, "usd": seconds * price / 3600, "tags": one["tags"]}
    return {"total": sum(line["usd"] for line in lines.values()), "instances": lines}
