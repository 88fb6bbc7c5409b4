"""Recomputation by the plan's marks: the gradients of one process, the launches and exchanges of the marks,
and nothing held after a step.
"""

from __future__ import annotations

import pytest
from launch import value

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")
pytest.importorskip("torch", reason="torch is not installed")

LIMIT = 1e-10


def test_every_budget_gives_the_gradients_of_one_process() -> None:
    for name, found in value(4, "stash: budgets").items():
        assert found["error"] <= LIMIT, name


def test_launches_and_exchanges_of_backward_are_those_of_the_marks() -> None:
    for name, found in value(4, "stash: budgets").items():
        assert found["counted"] == found["wanted"], name


def test_a_step_keeps_what_the_formula_says_and_leaves_nothing() -> None:
    for name, found in value(4, "stash: budgets").items():
        assert found["kept"] == found["formula"], name
        assert found["held"] == [0] * 4, name


def test_saving_more_launches_less() -> None:
    found = value(4, "stash: budgets")
    launches = [
        sum(rank["forward_launches"] for rank in found[f"mixed a, {budget}"]["counted"])
        for budget in ("0", "tiny", "half", "unlimited")
    ]
    assert launches == sorted(launches, reverse=True)
    assert launches[0] > launches[-1] == 0


def test_a_budget_of_the_context_marks_plans() -> None:
    found = value(2, "stash: planner_budget")
    assert found["error"] <= LIMIT
    assert 0 < found["saved"] < found["placements"]
    assert found["counted"]
    assert "saved attention output up to" in found["report"]


def test_a_host_budget_of_the_context_marks_plans() -> None:
    found = value(2, "stash: host_budget")
    assert found["error"] <= LIMIT
    assert found["marks"] == ["offload", "recompute"]
    assert found["counted"]
    assert found["kept"]
    assert "in memory of the host up to" in found["report"]
    assert found["host_bytes"] > 0


@pytest.mark.parametrize(
    "how",
    [
        "none",
        "every second layer",
        "offloaded inputs",
        "without early stop",
        "switched on",
        "and off",
        "and on again",
        "own contexts",
        "own selection",
    ],
)
def test_the_switch_is_the_models(how: str) -> None:
    found = value(2, "stash: switches")[how]
    assert found["error"] <= LIMIT
    assert found["counted"]
    assert found["kept"]
    assert found["held"] == 0


def test_own_contexts_are_entered_by_both_passes() -> None:
    forward, recomputation = value(2, "stash: switches")["own contexts"]["entered"]
    assert forward == recomputation > 0


@pytest.mark.parametrize("how", ["by hand", "wrapped"])
def test_other_ways_to_checkpoint_take_the_contexts(how: str) -> None:
    found = value(2, "stash: own_checkpoints")[how]
    assert found["error"] <= LIMIT
    assert found["counted"]


@pytest.mark.parametrize("how", ["thread", "twice", "two models"])
def test_loops_of_all_kinds_are_exact_and_leave_nothing(how: str) -> None:
    error, held = value(2, "stash: loops")[how]
    assert error <= LIMIT
    assert held == 0


def test_a_graph_that_is_retained_keeps_its_stash() -> None:
    assert value(2, "stash: loops")["twice counts"] == [True, True]


def test_evaluation_leaves_nothing() -> None:
    assert value(2, "stash: loops")["evaluation"] == [True, 0]


def test_partly_frozen_models() -> None:
    for name, (parameters, error, held) in value(2, "stash: frozen").items():
        assert parameters > 0, name
        assert error <= LIMIT, name
        assert held == 0, name


@pytest.mark.parametrize("budget", ["0", "half", "unlimited"])
def test_adapters_of_frozen_projections(budget: str) -> None:
    parameters, error, held = value(2, "stash: adapters")[budget]
    assert parameters == 8  # two layers, q and v, two matrices each
    assert error <= LIMIT
    assert held == 0


def test_nested_autocast_is_bitwise_equal() -> None:
    assert value(2, "stash: narrow") == {"half": True, "unlimited": True, "on the host": True}


@pytest.mark.parametrize("budget", ["0", "half", "all four", "unlimited"])
def test_compiled_layers(budget: str) -> None:
    found = value(2, "stash: compiled")[budget]
    assert found["error"] <= LIMIT
    assert found["counted"]
    assert found["held"] == 0


def test_memory_stays_flat_over_changing_marks() -> None:
    found = value(2, "stash: many_plans")
    assert found["held"] == [0, 0]
    for early, late in zip(found["at 100"], found["at 300"], strict=True):
        assert late - early < 16 << 20


def test_faults_leave_nothing_behind() -> None:
    found = value(2, "stash: faults")
    assert found["forward"] == ["broken", 0]
    assert found["recomputation"] == ["broken again", 0]
    assert found["backward"] == ["broken in backward", 0]
    assert all(held == 0 for _, held in found.values())


def test_edits_of_the_output_are_errors() -> None:
    found = value(2, "stash: faults")
    for budget in ("0", "half", "unlimited"):
        assert "modified by an inplace operation" in found[f"edit, {budget}"][0]


def test_reentrant_checkpointing_is_refused() -> None:
    assert "use_reentrant: True cannot keep" in value(2, "stash: faults")["reentrant"][0]
