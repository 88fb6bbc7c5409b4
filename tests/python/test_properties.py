"""What holds for every plan, over random batches and worlds, seen through the package's own front door."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

core = pytest.importorskip("nsp._core", reason="nsp._core is not built")

PLANNERS = ["nsp", "algorithm1", "static", "nsp-2l", "megatron-dcp"]
WORLDS = [(1, 1), (2, 2), (4, 4), (6, 2), (8, 8), (8, 4), (12, 4), (16, 8)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 4000), min_size=1, max_size=40),
    world=st.sampled_from(WORLDS),
    planner=st.sampled_from(PLANNERS),
)
def test_every_token_has_one_owner_and_budgets_are_kept(
    lengths: list[int], world: tuple[int, int], planner: str
) -> None:
    import nsp

    ranks, sp_max = world
    budget = max(-(-max(lengths) // sp_max), -(-2 * sum(lengths) // ranks)) + len(lengths)
    plan = nsp.plan(
        lengths,
        world=ranks,
        sp_max=sp_max,
        model="tiny",
        profile="cpu-gloo",
        planner=planner,
        token_budget=budget,
    )
    assert plan.feasible, plan.why
    assert core.check(plan.json) == []
    load = plan.predicted.forward + plan.predicted.backward
    assert plan.bound_seconds <= load * (1 + 1e-9)
    seen: dict[int, list[tuple[int, int]]] = {}
    for index in range(len(plan.rounds)):
        assert max(core.rank_tokens(plan.json, index)) <= budget
        for rank in range(ranks):
            for sequence, begin, end in core.rank_row(plan.json, index, rank):
                if sequence >= 0:
                    seen.setdefault(sequence, []).append((begin, end))
    for sequence, length in enumerate(lengths):
        ends = [0, *sorted(end for _, end in seen[sequence])]
        begins = sorted(begin for begin, _ in seen[sequence])
        assert begins == ends[:-1], "pieces neither overlap nor leave gaps"
        assert ends[-1] == length


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 3000), min_size=2, max_size=24), order=st.randoms(use_true_random=False)
)
def test_the_order_of_the_batch_moves_the_load_by_less_than_two_per_cent(
    lengths: list[int], order: object
) -> None:
    import nsp

    def load(batch: list[int]) -> float:
        plan = nsp.plan(batch, world=8, sp_max=8, model="tiny", profile="cpu-gloo", token_budget=10**6)
        return plan.predicted.forward + plan.predicted.backward

    other = sorted(lengths)
    order.shuffle(other)  # type: ignore[attr-defined]
    assert load(other) == pytest.approx(load(lengths), rel=0.02)
