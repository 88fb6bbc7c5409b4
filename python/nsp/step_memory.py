"""The most that a rank holds in a training step, predicted from a plan. Shapes: R rounds, W ranks, C counts,
M moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from nsp._native import core
from nsp.planning import Plan
from nsp.sizes import format_bytes
from nsp.step_moments import Counts, StepMemory, moments

OUTSIDE = ("arena", "communicators")  # of torch's allocator


@dataclass(frozen=True)
class Peak:
    """The most that a rank holds in a step, bytes by kind, and when."""

    rank: int
    round: int
    tokens: int
    moment: str
    kinds: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    @property
    def allocated(self) -> int:
        """In torch's allocator: without arena and communicators."""
        return self.total - sum(self.kinds.get(kind, 0) for kind in OUTSIDE)

    def __str__(self) -> str:
        parts = ", ".join(f"{kind} {format_bytes(count)}" for kind, count in self.kinds.items() if count)
        return f"{format_bytes(self.total)} ({self.moment}: {parts})"


def plan_peak(memory: StepMemory, plan: Plan | bytes, rank: int | None = None) -> Peak | None:
    """Of a rank, or of the fullest one; None for a plan without rounds."""
    data = plan.json if isinstance(plan, Plan) else plan
    return step_peak(memory, core().rank_rows(data, memory.shape["kv_heads"]), rank)


def step_peak(memory: StepMemory, rounds: Sequence[Sequence[Counts]], rank: int | None = None) -> Peak | None:
    """From the counts of each round and rank. Of equal ranks the first, of equal rounds and moments, too."""
    if not rounds:
        return None
    found = list(moments(memory, gradients_stay=len(rounds) > 1))
    counts_RWC = torch.tensor(rounds, dtype=torch.int64)
    if rank is not None:
        counts_RWC = counts_RWC[:, rank : rank + 1]
    sums = [moment.sum() for moment in found]
    of_CM = torch.tensor([part.of for part in sums], dtype=torch.int64).T
    fixed_M = torch.tensor([part.fixed for part in sums], dtype=torch.int64)
    bytes_WRM = (counts_RWC @ of_CM + fixed_M).transpose(0, 1).contiguous()
    index = int(bytes_WRM.argmax())
    column, rest = divmod(index, len(rounds) * len(found))
    fullest, (round_, at) = rank if rank is not None else column, divmod(rest, len(found))
    counts = rounds[round_][fullest]
    kinds = {kind: part.at(counts) for kind, part in found[at].kinds.items()}
    return Peak(fullest, round_, counts[0], found[at].name, kinds)


def most_bytes(memory: StepMemory, counts: Counts) -> int:
    """Of one rank with these counts, in a round among others."""
    return max(moment.sum().at(counts) for moment in moments(memory, gradients_stay=True))
