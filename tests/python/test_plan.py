"""`nsp.plan` and the plan value: without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")

import nsp  # noqa: E402

SETTINGS: dict[str, Any] = {"world": 8, "sp_max": 8, "model": "tiny", "profile": "cpu-gloo"}


def test_every_sequence_is_placed_once_and_the_plan_checks() -> None:
    lengths = [16000, 3, 40, 700, 1, 900, 5000]
    plan = nsp.plan(lengths, **SETTINGS)
    placed = sorted((p.sequence, p.tokens) for placements in plan.rounds for p in placements)
    assert placed == list(enumerate(lengths))
    assert plan.feasible
    assert plan.num_tokens == sum(lengths)
    assert sum(plan.degrees.values()) == len(lengths)
    assert plan.check() == []


def test_the_same_lengths_give_the_same_plan() -> None:
    first, again = (nsp.plan([900, 3, 77], **SETTINGS) for _ in range(2))
    assert first.hash == again.hash


def test_json_keeps_the_exact_bytes() -> None:
    plan = nsp.plan([900, 3, 77], **SETTINGS)
    assert nsp.Plan.from_json(plan.to_json()) == plan
    assert json.loads(plan.to_json())["format"] == "nsp-plan/1"


def test_no_lengths_are_a_valid_empty_plan() -> None:
    plan = nsp.plan([], **SETTINGS)
    assert plan.feasible
    assert plan.num_sequences == 0


def test_too_long_a_sequence_is_an_answer() -> None:
    plan = nsp.plan([10, 5000], **SETTINGS, token_budget=100)
    assert not plan.feasible
    assert "5000" in plan.why
    assert "800" in plan.why


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sp_max": 3}, "sp_max"),
        ({"world": 6}, "sp_max"),
        ({"model": "no-such-model"}, "no-such-model"),
        ({"profile": "no-such-profile"}, "no-such-profile"),
        ({"planner": "no-such-planner"}, "no-such-planner"),
    ],
)
def test_bad_settings_are_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        nsp.plan([5], **{**SETTINGS, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, -3])
def test_a_length_below_one_is_bad_input(length: int) -> None:
    with pytest.raises(ValueError, match=str(length)):
        nsp.plan([5, length], **SETTINGS)


def test_what_is_not_a_plan_is_bad_input() -> None:
    for text in ("{", "[]", '{"format": "nsp-plan/9"}'):
        with pytest.raises(ValueError, match="nsp-plan/1"):
            nsp.Plan.from_json(text)


def test_planning_does_not_import_torch() -> None:
    code = f"import nsp, sys; nsp.plan([5, 9], **{SETTINGS!r}); nsp.Plan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
