"""Ranks compare what they are about to do through the c10d store: no collective, no device, any thread.

Each rank sets its entry; rank 0 reads all, judges, and publishes one verdict that everyone reads. A rank that
differs or failed is named on every rank. When all ranks have set entry n + 1 they have read verdict n, which
is then deleted.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any

_LONGEST_PAUSE = 0.05  # seconds


class Stopped(Exception):
    """The waiting thread was asked to end."""


@dataclass(frozen=True)
class Entry:
    """What one rank says: fields that must be equal, a count to be summed, and its own failure if any."""

    same: Mapping[str, Any]
    count: int = 0
    failure: str = ""


@dataclass
class Agreement:
    """One thread-safe channel among `world` ranks; all ranks use the same `name` and call `compare` equally
    often.
    """

    store: Any
    name: str
    rank: int
    world: int
    timeout: timedelta
    remedy: str
    stop: Event = field(default_factory=Event)
    _turn: int = 0

    def compare(self, entry: Entry) -> int:
        """Sum of all counts. RuntimeError on every rank when fields differ or a rank failed; Stopped after
        `stop`.
        """
        turn, self._turn = self._turn, self._turn + 1
        key = f"nsp/{self.name}/{turn}"
        mine = json.dumps({"same": dict(entry.same), "count": entry.count, "failure": entry.failure})
        self.store.set(f"{key}/{self.rank}", mine)
        if self.rank == 0:
            keys = [f"{key}/{rank}" for rank in range(self.world)]
            self._wait(keys)
            verdict = _judge([json.loads(value) for value in self.store.multi_get(keys)], self.remedy)
            self.store.set(f"{key}/verdict", json.dumps(verdict))
            for old in [*keys, f"nsp/{self.name}/{turn - 1}/verdict"]:
                self.store.delete_key(old)
        else:
            self._wait([f"{key}/verdict"])
            verdict = json.loads(self.store.get(f"{key}/verdict"))
        if verdict["error"]:
            raise RuntimeError(verdict["error"])
        return int(verdict["count"])

    def _wait(self, keys: list[str]) -> None:
        """Polls: a blocked wait on a TCP store warns at every timeout, and could not be stopped."""
        limit, pause = time.monotonic() + self.timeout.total_seconds(), 0.001
        while not self.store.check(keys):
            if self.stop.wait(pause):
                raise Stopped
            pause = min(2 * pause, _LONGEST_PAUSE)
            if time.monotonic() > limit:
                missing = [key.rsplit("/", 1)[1] for key in keys if not self.store.check([key])]
                raise RuntimeError(
                    f"{self.name}: no word from {missing} (ranks, or rank 0's verdict) within "
                    f"{self.timeout.total_seconds():.0f} s; look for an error on those ranks"
                )


def _judge(entries: list[dict[str, Any]], remedy: str) -> dict[str, Any]:
    failed = {rank: entry["failure"] for rank, entry in enumerate(entries) if entry["failure"]}
    if len(failed) == len(entries) > 1 and len(set(failed.values())) == 1:
        return {"error": f"on all ranks: {entries[0]['failure']}", "count": 0}
    if failed:
        return {"error": "; ".join(f"rank {rank} failed: {why}" for rank, why in failed.items()), "count": 0}
    texts = [json.dumps(entry["same"], sort_keys=True) for entry in entries]
    count = Counter(texts)
    usual = max(count, key=lambda text: (count[text], text == texts[0]))
    odd = [rank for rank, text in enumerate(texts) if text != usual]
    if not odd:
        return {"error": "", "count": sum(entry["count"] for entry in entries)}
    expected, found = json.loads(usual), entries[odd[0]]["same"]
    name = next(k for k in {**expected, **found} if expected.get(k) != found.get(k))
    who = f"rank {odd[0]} disagrees" if len(odd) == 1 else f"ranks {', '.join(map(str, odd))} disagree"
    return {
        "error": f"{who} with the others: {name} is {found.get(name)!r} on rank {odd[0]} and "
        f"{expected.get(name)!r} elsewhere; {remedy}",
        "count": 0,
    }
