"""One progress line and one JSON line a step, on the rank that has a run's name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsp.planning import Plan

if TYPE_CHECKING:
    from nsp.data import PlannedSteps
    from nsp.step import Step


class Metrics:
    """Writes runs/<name>/metrics.jsonl anew. name None: does nothing."""

    def __init__(self, name: str | None, folder: str = "runs") -> None:
        self._file = None
        if name is not None:
            path = Path(folder, name, "metrics.jsonl")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8")

    def write(self, index: int, loss: float, step: Step, seconds: float, steps: PlannedSteps) -> None:
        """seconds: of the step, waiting for data not included; planning was done ahead."""
        if self._file is None:
            return
        line = measured(index, loss, step.plan, seconds, _static_seconds(steps, step))
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        print(progress(line), flush=True)


def measured(
    index: int, loss: float, plan: Plan, seconds: float, static_seconds: float | None
) -> dict[str, Any]:
    """A step's JSON line. Seconds are of a step: measured, predicted, of the best static degree, and of the
    bound.
    """
    return {
        "step": index,
        "loss": loss,
        "tokens": plan.num_tokens,
        "seconds": round(seconds, 4),
        "planning_ms": plan.planning_ms,
        "degrees": {str(degree): number for degree, number in plan.degrees.items()},
        "predicted": plan.predicted.seconds,
        "predicted_static": static_seconds,
        "bound": plan.bound_step_seconds,
    }


def progress(line: dict[str, Any]) -> str:
    """The same for eyes: sequences on each degree as degree x number."""
    degrees = " ".join(f"{degree}x{number}" for degree, number in line["degrees"].items())
    static = "none fits" if line["predicted_static"] is None else f"{line['predicted_static']:.2f}"
    return (
        f"step {line['step']:4d}  loss {line['loss']:.4f}  "
        f"{line['tokens'] / max(line['seconds'], 1e-9):7.0f} tokens/s  "
        f"{line['seconds']:6.2f} s  predicted {line['predicted']:.2f} static {static} bound "
        f"{line['bound']:.2f}  "
        f"degrees {degrees}  planning {line['planning_ms']:.1f} ms"
    )


def format_lengths(lengths: Sequence[int]) -> str:
    """Median, 99th percentile and longest."""
    ordered = sorted(lengths)
    return (
        f"median {ordered[len(ordered) // 2]}, p99 {ordered[len(ordered) * 99 // 100]}, longest {ordered[-1]}"
    )


def _static_seconds(steps: PlannedSteps, step: Step) -> float | None:
    """Predicted seconds of the best static degree that fits the same batch; None when none does."""
    try:
        return steps.plan(step.index, "static").predicted.seconds
    except RuntimeError:
        return None
