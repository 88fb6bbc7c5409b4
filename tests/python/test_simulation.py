"""`nsp.simulate`: without torch."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")

import nsp  # noqa: E402

MACHINE: dict[str, Any] = {"model": "tiny", "profile": "cpu-gloo"}


def plan() -> nsp.Plan:
    return nsp.plan([16000, 3, 40, 700, 1, 900, 5000], world=8, sp_max=8, **MACHINE)


def test_the_parts_add_up_to_the_step() -> None:
    step = nsp.simulate(plan(), **MACHINE)
    assert step.step_seconds > 0
    assert sum(astuple(step.slowest)) == pytest.approx(step.step_seconds)
    assert step == nsp.simulate(plan(), **MACHINE)


def test_checkpointing_recomputes_and_holds_less() -> None:
    without = nsp.simulate(plan(), **MACHINE)
    full = nsp.simulate(plan(), checkpoint="full", **MACHINE)
    assert without.mean.recompute == 0
    assert full.mean.recompute == pytest.approx(full.mean.attention_forward)
    assert full.memory_bytes < without.memory_bytes


def test_a_trace_is_written(tmp_path: Path) -> None:
    nsp.simulate(plan(), trace=str(tmp_path / "trace.json"), **MACHINE)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="none, full or marks"):
        nsp.simulate(plan(), checkpoint="some", **MACHINE)
    with pytest.raises(ValueError, match="must be a power of two that divides the world"):
        nsp.simulate(plan(), ep=3, **MACHINE)


def test_a_plan_is_played_with_the_presets_it_was_made_for() -> None:
    made = nsp.plan([900, 300, 40], world=4, sp_max=4, model="tiny", profile="cpu-gloo")
    assert nsp.simulate(made) == nsp.simulate(made, model="tiny", profile="cpu-gloo")
    assert nsp.simulate(made).step_seconds > 10 * nsp.simulate(made, profile="h200").step_seconds
