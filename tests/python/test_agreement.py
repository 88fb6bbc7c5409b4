"""Ranks as threads compare entries through a store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch.distributed as dist  # noqa: E402
from nsp.agreement import Agreement, Entry, Stopped  # noqa: E402


def compare(entries: list[Entry | None], turns: int = 1, seconds: float = 20) -> tuple[list[Any], Any]:
    """What each rank gets (a count or an exception); None stands for a rank that never comes."""
    store = dist.HashStore()

    def rank(r: int) -> Any:
        channel = Agreement(store, "test", r, len(entries), timedelta(seconds=seconds), "do the same")
        try:
            return [channel.compare(entries[r]) for _ in range(turns)][-1]  # type: ignore[arg-type]
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(entries)) as pool:
        return list(pool.map(rank, [r for r, entry in enumerate(entries) if entry is not None])), store


def test_equal_entries_sum_their_counts() -> None:
    found, _ = compare([Entry({"a": 1}, count=r) for r in range(4)])
    assert found == [6, 6, 6, 6]


def test_the_odd_rank_is_named_with_field_and_remedy() -> None:
    found, _ = compare([Entry({"a": 1, "b": 2}), Entry({"a": 1, "b": 2}), Entry({"a": 1, "b": 3})])
    for error in found:
        assert str(error) == "rank 2 disagrees with the others: b is 3 on rank 2 and 2 elsewhere; do the same"


def test_a_failure_reaches_everyone() -> None:
    found, _ = compare([Entry({"a": 1}), Entry({}, failure="no disk")])
    assert [str(error) for error in found] == ["rank 1 failed: no disk"] * 2


def test_old_keys_are_deleted() -> None:
    _, store = compare([Entry({"a": 1})] * 3, turns=10)
    assert store.num_keys() <= 1


def test_a_rank_that_never_comes_is_named() -> None:
    found, _ = compare([Entry({"a": 1}), None], seconds=0.3)
    assert "no word from ['1']" in str(found[0])


def test_a_stopped_wait_ends() -> None:
    channel = Agreement(dist.HashStore(), "test", 1, 2, timedelta(seconds=20), "")
    channel.stop.set()
    with pytest.raises(Stopped):
        channel.compare(Entry({}))
