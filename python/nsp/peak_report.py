"""Predicted beside measured peak of device memory, over the steps of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from nsp.context import Context
from nsp.footprint import step_memory
from nsp.model_bytes import resident_bytes
from nsp.planning import Plan
from nsp.sharding import decoder_layers
from nsp.sizes import format_bytes
from nsp.step_memory import OUTSIDE, Peak, plan_peak


@dataclass(frozen=True)
class PeakReport:
    """Of the rank with the largest measured peak (predicted, where nothing is measured: on CPU), bytes.

    Both sides leave out what lies outside torch's allocator, and tensors that were there before and are not
    the model's. measured_state: allocated between steps
    (parameters, optimizer, and gradients if they stay).
    """

    rank: int
    predicted: int
    measured: int | None
    moment: str
    kinds: dict[str, int]
    measured_state: int | None
    measured_saved: int  # attention output in the stash, most at once
    upper_bound: bool  # layers are compiled: they hold less than the eager ones that are counted

    def line(self) -> dict[str, Any]:
        """For JSON; `ratio`: predicted over measured."""
        ratio = self.predicted / self.measured if self.measured else None
        return {**vars(self), "ratio": ratio}

    def __str__(self) -> str:
        found, most = "not measured on cpu", "at most " if self.upper_bound else ""
        if self.measured:
            found = f"measured {format_bytes(self.measured)} ({self.predicted / self.measured - 1:+.1%})"
        parts = ", ".join(f"{kind} {format_bytes(count)}" for kind, count in self.kinds.items() if count)
        return (
            f"peak memory of rank {self.rank}: predicted {most}{format_bytes(self.predicted)}, {found}; "
            f"at {self.moment}: {parts}"
        )


class PeakWatch:
    """Begins to measure when it is made. The model is sharded and checkpointed as it will run."""

    def __init__(self, context: Context, model: Any) -> None:
        self.context, self.memory = context, step_memory(context, model)
        self._compiled = any("forward" in vars(layer) for layer in decoder_layers(model))
        self._peak: Peak | None = None
        self._measured_saved = self._state = self._others = 0
        if self._cuda:
            held = torch.cuda.memory_allocated(context.device)
            self._others = max(0, held - resident_bytes(model, context.device))
        self._reset()

    def add(self, plan: Plan | bytes) -> None:
        """A step that has just run, its gradients gone again."""
        peak = plan_peak(self.memory, plan, self.context.rank)
        if peak is not None and (self._peak is None or peak.allocated > self._peak.allocated):
            self._peak = peak
        self._measured_saved = max(self._measured_saved, self.context.world.counters()["stash_bytes_most"])
        if self._cuda:
            held = torch.cuda.memory_allocated(self.context.device) - self._others
            self._state = max(self._state, held)

    def report(self) -> PeakReport | None:
        """Collective. Of all steps since the last report, whose measurement then begins anew; None without
        any.
        """
        measured, mine = None, None
        if self._cuda:
            measured = torch.cuda.max_memory_allocated(self.context.device) - self._others
        if self._peak is not None:
            kinds = {name: count for name, count in self._peak.kinds.items() if name not in OUTSIDE}
            mine = PeakReport(
                self.context.rank, self._peak.allocated, measured, self._peak.moment, kinds,
                self._state if self._cuda else None, self._measured_saved, self._compiled,
            )  # fmt: skip
        found: list[PeakReport | None] = [None] * self.context.world_size
        dist.all_gather_object(found, mine, group=self.context.group)
        self._peak, self._measured_saved, self._state = None, 0, 0
        self._reset()
        reports = [report for report in found if report is not None]
        return max(reports, key=lambda r: (r.measured or 0, r.predicted, -r.rank)) if reports else None

    @property
    def _cuda(self) -> bool:
        return self.context.device.type == "cuda"

    def _reset(self) -> None:
        self.context.world.reset_counters()
        if self._cuda:
            torch.cuda.reset_peak_memory_stats(self.context.device)
