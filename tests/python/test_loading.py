"""Plans ahead and the loader on one rank: order, faults, early ends, resume. No process group."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("nsp._core", reason="nsp._core is not built")

import one_rank  # noqa: E402
import torch.distributed as dist  # noqa: E402
from nsp.agreement import Agreement  # noqa: E402
from nsp.loading import REMEDY, Loader  # noqa: E402
from nsp.plans_ahead import PlansAhead  # noqa: E402
from one_rank import Rank, Tokens  # noqa: E402

import nsp  # noqa: E402


class Broken(nsp.PlannedSteps):
    """Batch 2 is one that nothing can plan."""

    broken: list[int] = []

    def lengths(self, k: int) -> list[int]:
        return self.broken if k == 2 else super().lengths(k)


def make_steps(kind: Any = nsp.PlannedSteps) -> Any:
    return kind(Tokens([7, 30, 12, 3, 25, 18, 31, 9, 14, 22]), Rank(0, one_rank.settings(1)), 40)


def taken(loader: Loader) -> list[tuple[int, str]]:
    return [(step.index, step.plan.hash) for step in loader]


def test_plans_come_in_the_order_of_the_steps() -> None:
    steps = make_steps()
    with PlansAhead(steps, 0, ahead=2, threads=2) as plans:
        assert [plans.take().hash for _ in range(len(steps))] == [
            steps.plan(k).hash for k in range(len(steps))
        ]


def test_the_loader_gives_the_steps_that_indexing_gives() -> None:
    steps = make_steps()
    assert taken(Loader(steps)) == [(k, steps[k].plan.hash) for k in range(len(steps))]


def test_a_resumed_loader_goes_on_with_the_same_steps() -> None:
    steps = make_steps()
    first = Loader(steps)
    for step in first:
        if step.index == 1:
            break
    resumed = Loader(make_steps())
    resumed.load_state_dict(first.state_dict())
    assert taken(resumed) == taken(Loader(steps))[2:]


@pytest.mark.parametrize(("lengths", "words"), [([10**9], "step 2: no plan fits"), ([5, -3], "-3")])
def test_a_fault_arrives_at_its_step(lengths: list[int], words: str) -> None:
    steps = make_steps(Broken)
    steps.broken = lengths
    seen = []
    with pytest.raises(RuntimeError, match=words):
        for step in Loader(steps):
            seen.append(step.index)
    assert seen == [0, 1]


def test_a_fault_of_planning_is_told_to_the_other_ranks() -> None:
    steps = make_steps(Broken)
    steps.broken = [-3]
    told: list[str] = []

    class Channel(Agreement):
        def compare(self, entry: Any) -> int:
            told.append(entry.failure)
            return super().compare(entry)

    steps.context.agreement = lambda what, remedy: Channel(
        dist.HashStore(), what, 0, 1, timedelta(seconds=60), REMEDY
    )
    with pytest.raises(RuntimeError, match="rank 0 failed: ValueError"):
        list(Loader(steps))
    assert told[:2] == ["", ""]
    assert told[2].startswith("ValueError: lengths")


def test_an_early_end_leaves_no_thread() -> None:
    coming = iter(Loader(make_steps()))
    assert next(coming).index == 0
    coming.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "nsp-loader"]


def test_close_wakes_who_waits_for_a_plan() -> None:
    steps = make_steps()
    plans = PlansAhead(steps, len(steps))  # no step is left: nothing ever comes
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(plans.take)
        plans.close()
        with pytest.raises(RuntimeError, match="closed"):
            waiting.result()


def test_another_epoch_under_a_running_loader_is_refused() -> None:
    steps = make_steps()
    with PlansAhead(steps, 0) as plans:
        plans.take()
        steps.set_epoch(1)
        with pytest.raises(RuntimeError, match="end its loader first"):
            plans.take()
