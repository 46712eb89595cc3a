"""Tests that a table generates by the hundred: `make test` runs a sample of them, `make cloud-sweep` all."""
import os

IS_WHOLE = bool(os.environ.get("REGATTA_CLOUD_SWEEP"))


def points(table, count, stratum=lambda point: point, without=()):
    """All of the table in a sweep; else `count` of it, evenly from each stratum, the same ones every time, and none of `without`."""
    table = [point for point in table if IS_WHOLE or point not in without]
    if IS_WHOLE or len(table) <= count:
        return table
    strata = {}
    for point in table:
        strata.setdefault(stratum(point), []).append(point)
    chosen = []
    for turn in range(len(table)):
        for rows in strata.values():
            # from both ends and the middle of a stratum
            place = [0, len(rows) - 1, len(rows) // 2][turn] if turn < 3 else turn - 2
            if place < len(rows) and rows[place] not in chosen and len(chosen) < count:
                chosen.append(rows[place])
    return [point for point in table if point in chosen]
