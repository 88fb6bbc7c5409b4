"""`nsp.plan` and the plan value: without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")

from nsp._native import core  # noqa: E402

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


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "numpy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
import nsp
from nsp._native import core

settings = dict(world=8, sp_max=8, model="tiny", profile="cpu-gloo")
plan = nsp.plan([900, 3, 77], **settings)
again = nsp.Plan.from_json(plan.to_json())
assert again == plan and again.check() == [] and sum(again.degrees.values()) == 3
queue = core().PlanQueue(1, 1, **settings, planner="nsp")
queue.push([900, 3, 77])
assert nsp.Plan.from_json(*queue.take()).hash == plan.hash
try:
    nsp.init
except ModuleNotFoundError as error:
    assert error.name == "torch", error
else:
    raise AssertionError("nsp.init imported without torch")
"""


def test_plans_work_where_torch_is_not_installed() -> None:
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_other_threads_run_while_a_plan_is_made() -> None:
    """No thread switch but where the interpreter lock is given up: only planning does that here."""
    lengths = [1 + 37 * i % 4000 for i in range(1500)]
    go, advanced = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(), advanced.set()))
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        go.set()
        for _ in range(20):
            core().plan(lengths, **SETTINGS, planner="nsp")
            if advanced.is_set():
                break
        found = advanced.is_set()
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert found


def test_saved_bytes_keep_the_budget() -> None:
    lengths = [1600, 3, 40, 700, 1, 900, 500]
    none = nsp.plan(lengths, **SETTINGS)
    some = nsp.plan(lengths, **SETTINGS, byte_budget=1 << 17, mark_order="tree")
    assert none.predicted.bytes_max == 0
    assert {p.mark for placements in none.rounds for p in placements} == {"recompute"}
    assert 0 < some.predicted.bytes_max <= 1 << 17
    assert "save" in {p.mark for placements in some.rounds for p in placements}
    assert some.check() == []
    with pytest.raises(ValueError, match="mark_order"):
        nsp.plan(lengths, **SETTINGS, mark_order="upwards")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"colour": 1}, "'colour' is unknown"), ({"world": "x"}, "'world' is 'x'")],
)
def test_wrong_keywords_of_the_native_planner_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        core().plan([5], **{**SETTINGS, **changes})


def test_the_native_planner_has_the_defaults_of_the_command_line() -> None:
    lengths = [900, 3, 77]
    native = nsp.Plan.from_json(*core().plan(lengths, **SETTINGS))
    assert native.planner == "nsp"
    assert native.hash == nsp.plan(lengths, **SETTINGS).hash


def test_a_plan_that_does_not_fit_says_why() -> None:
    found = nsp.plan([7], world=8, sp_max=8, token_budget=1, backends=["ring"])
    assert not found.feasible
    assert "token_budget 1 allows fewer; raise it" in found.why


def test_a_length_beyond_all_bounds_is_named() -> None:
    with pytest.raises(ValueError, match=r"lengths\[3\]: 1180591620717411303424"):
        nsp.plan([5, 5, 5, 2**70])


def test_backends_are_a_list() -> None:
    with pytest.raises(ValueError, match="backends: 'all' is text"):
        nsp.plan([5], backends="all")
