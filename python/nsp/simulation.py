"""A plan's step, simulated: what `nsp simulate` shows, as a typed value. No torch here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from nsp._native import core
from nsp.planning import Plan


@dataclass(frozen=True)
class Breakdown:
    """Seconds of one rank's step; the parts add up to it."""

    attention_forward: float
    attention_backward: float
    recompute: float
    dense: float
    head: float
    optimizer: float
    exposed_exchange: float  # compute stands still while the rank's own exchange runs
    exposed_fsdp: float
    waiting: float  # for other ranks


@dataclass(frozen=True)
class Simulated:
    """A simulated optimizer step."""

    step_seconds: float
    mean: Breakdown  # over the ranks
    slowest: Breakdown  # of the rank that waits least
    slowest_rank: int
    memory_bytes: int  # beside model state, estimated, most of a rank
    memory_rank: int


def simulate(
    plan: Plan,
    *,
    model: str = "",
    profile: str = "",
    checkpoint: str = "none",
    ep: int = 1,
    overlap: bool = True,
    fsdp: bool = True,
    trace: str = "",
) -> Simulated:
    """Plays a plan's step with profile times.

    model, profile: a preset's name, a JSON file's path, or JSON text; by default the presets that the plan
    was made for. checkpoint: none, full or marks.
    trace: a path for a Chrome trace (ui.perfetto.dev), gzipped if it ends in .gz.
    ValueError: a plan that breaks a rule, or a bad argument.
    """
    value: dict[str, Any] = json.loads(
        core().simulate(
            plan.json,
            model=model,
            profile=profile,
            checkpoint=checkpoint,
            ep=ep,
            overlap=overlap,
            fsdp=fsdp,
            trace=trace,
        )
    )
    value["mean"] = Breakdown(**value["mean"])
    value["slowest"] = Breakdown(**value["slowest"])
    return Simulated(**value)
