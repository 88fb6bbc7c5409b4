"""PlannedSteps as one rank reads it: no process group, the plan alone decides."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("nsp._core", reason="nsp._core is not built")

import one_rank  # noqa: E402
from nsp._native import core  # noqa: E402
from one_rank import Rank, Tokens  # noqa: E402

import nsp  # noqa: E402


class Given(nsp.PlannedSteps):
    given: bytes = b""

    def plan(self, k: int, planner: str | None = None) -> nsp.Plan:
        return nsp.Plan.from_json(self.given) if self.given else super().plan(k, planner)


def steps_of(rank: int, dataset: Any, world: int = 2, tokens: int = 64, **settings: Any) -> Given:
    return Given(dataset, Rank(rank, one_rank.settings(world, **settings)), tokens)  # type: ignore[arg-type]


def test_the_label_of_token_4_is_5_and_the_last_is_ignored() -> None:
    given = core().make_plan(2, 2, 2, 0, [[(0, 8, 0, 2)]], "given")
    rows = []
    for rank in range(2):
        steps = steps_of(rank, Tokens([8]))
        steps.given = given
        rows.append(steps[0].rounds[0].inputs)
    assert rows[0]["input_ids"].tolist() == [[1, 2, 3, 4]]
    assert rows[0]["shift_labels"].tolist() == [[2, 3, 4, 5]]
    assert rows[1]["input_ids"].tolist() == [[5, 6, 7, 8]]
    assert rows[1]["shift_labels"].tolist() == [[6, 7, 8, -100]]
    assert rows[1]["position_ids"].tolist() == [[4, 5, 6, 7]]
    assert rows[1]["nsp_plan"].targets == 7


def test_positions_restart_in_each_sequence() -> None:
    steps = steps_of(0, Tokens([5, 3, 4]), world=1)
    (row,) = steps[0].rounds
    expected = sorted(t for n in (5, 3, 4) for t in range(n))
    assert sorted(row.inputs["position_ids"][0].tolist()) == expected
    starts = (row.inputs["position_ids"][0] == 0).nonzero()[1:, 0]
    assert row.inputs["shift_labels"][0][starts - 1].tolist() == [-100, -100]


def test_a_rank_reads_its_own_slices_and_one_label_more() -> None:
    data = Tokens([9])
    steps = steps_of(0, data)
    steps.given = core().make_plan(2, 2, 2, 0, [[(0, 9, 0, 2)]], "given")
    assert steps[0].rounds[0].tokens == 4
    assert data.reads == [(0, 0, 5)]


def test_an_idle_rank_gets_a_dummy_token_that_is_no_target() -> None:
    data = Tokens([9])
    steps = steps_of(1, data)
    steps.given = core().make_plan(2, 2, 2, 0, [[(0, 9, 0, 1)]], "given")
    (row,) = steps[0].rounds
    assert (row.tokens, row.inputs["input_ids"].shape, row.targets, data.reads) == (0, (1, 1), 0, [])


def test_batches_take_samples_until_the_next_would_pass() -> None:
    lengths = [20, 30, 10, 40, 5, 9, 33]
    steps = steps_of(0, Tokens(lengths), tokens=50)
    order = core().permutation(7, 0, 0)
    assert [i for k in range(len(steps)) for i in steps.samples(k)] == list(order)
    for k in range(len(steps) - 1):
        assert sum(steps.lengths(k)) <= 50 < sum(steps.lengths(k)) + steps.lengths(k + 1)[0]


def test_another_epoch_is_another_order_of_the_same_samples() -> None:
    steps = steps_of(0, Tokens([3] * 50), tokens=200)
    first = steps.samples(0)
    steps.set_epoch(1)
    assert steps.samples(0) != first
    assert sorted(steps.samples(0)) == sorted(first)


def test_drop_last_drops_the_batch_the_end_cut_short() -> None:
    kept = steps_of(0, Tokens([30] * 5), tokens=64)
    dropped = nsp.PlannedSteps(kept.dataset, kept.context, 64, drop_last=True)
    assert (len(kept), len(dropped)) == (3, 2)


def test_over_long_samples_follow_the_policy() -> None:
    lengths = [5, 90, 7]
    with pytest.raises(ValueError, match="sample 1 has 90 tokens but a step holds samples of at most 64"):
        steps_of(0, Tokens(lengths))
    skipped = steps_of(0, Tokens(lengths), over_length="skip")
    assert sorted(i for k in range(len(skipped)) for i in skipped.samples(k)) == [0, 2]
    cut = steps_of(0, Tokens(lengths), over_length="truncate")
    assert sorted(n for k in range(len(cut)) for n in cut.lengths(k)) == [5, 7, 64]


def test_targets_count_labels_or_wait_for_the_readers() -> None:
    data = Tokens([9, 5])
    steps = steps_of(0, data, world=1)
    assert steps[0].targets == 12
    data.targets = [3, 2]  # type: ignore[attr-defined]
    assert steps[0].targets == 5
    del data.targets  # type: ignore[attr-defined]
    data.masked = True  # type: ignore[attr-defined]
    assert steps[0].targets is None


def test_labels_without_a_word_about_them_are_refused() -> None:
    data = Tokens([9])
    plain = data.read
    data.read = lambda *slice: (plain(*slice), plain(*slice))  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="set masked = True"):
        steps_of(0, data, world=1)[0]


def test_a_read_of_another_size_is_refused() -> None:
    data = Tokens([9])
    data.read = lambda *slice: [1, 2]  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"gave \(2,\) tokens"):
        steps_of(0, data, world=1)[0]
